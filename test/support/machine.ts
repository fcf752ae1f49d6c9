import { writeSync } from "node:fs";
import { type AuditOptions, createAudit } from "../../src/audit/audit.js";
import { openFiles } from "../../src/audit/files.js";
import { requestsOf } from "../../src/audit/requests.js";
import { readRows } from "../../src/audit/rows.js";
import { createShared, type Lease } from "../../src/audit/shared/shared.js";
import { createClient } from "../../src/client.js";
import type { Existing } from "../../src/existing.js";

/** The task of a machine, as JSON in its only argument. */
export interface Orders {
  /** Where the queue and the service are. `folder`: it audits alone, and keeps its files there. */
  queue: string;
  folder?: string;
  service: string;
  apiKey: string;
  node: string;
  batch: string;
  /** The list that it adds first. */
  pages?: string[];
  existing?: Existing;
  share: number;
  lease: Lease;
  reconcile?: string;
  /** The machine dies once it has reported the end. */
  dies?: boolean;
}

/** The lines that a machine prints. */
export type Said =
  | { result: { index: number; outcome: string; repeated: boolean; error?: string } }
  | { finished: boolean; repeated: boolean; done: number; total: number }
  | { error: string };

const orders = JSON.parse(process.argv[2] ?? "{}") as Orders;
const say = (said: Said) => writeSync(1, `${JSON.stringify(said)}\n`);

/** A process of its own that audits pages with others. It ends when it is killed, or its input ends. */
const { queue, folder, service, apiKey, node, lease, reconcile = "5" } = orders;
const client = createClient({ baseUrl: service, apiKey, reconcile, concurrency: "8" });
const options: Omit<AuditOptions, "open"> = {
  connect: (changed) => requestsOf(client, orders.share, changed),
  share: orders.share,
  result({ index, outcome, repeated = false, error }) {
    say({ result: { index, outcome, repeated, ...(error && { error: error.message }) } });
  },
  progress({ finished, repeated = false, done, total }) {
    if (finished) say({ finished, repeated, done, total });
    if (finished && orders.dies) process.kill(process.pid, "SIGKILL");
  },
  failed: ({ message }) => say({ error: message }),
};
const audit =
  folder === undefined
    ? createShared({ url: queue }, { lease }).createAudit({ ...options, node, service: node, standBy() {} })
    : createAudit({ ...options, open: (lost) => openFiles(folder, node, lost) });
if (orders.pages) {
  const settings = { existing: orders.existing ?? "create" };
  await audit
    .add({ batch: orders.batch, settings, rows: readRows(orders.pages) })
    .catch(({ message }) => say({ error: message }));
}
process.stdin.on("end", async () => {
  await audit.close();
  await client.close();
  process.exit();
});
process.stdin.resume();

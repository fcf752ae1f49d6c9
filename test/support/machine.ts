import { writeSync } from "node:fs";
import { createAudit } from "../../src/audit/audit.js";
import { openFiles } from "../../src/audit/files.js";
import { requestsOf } from "../../src/audit/requests.js";
import { readRows } from "../../src/audit/rows.js";
import { createClient } from "../../src/client.js";

/** The task of a process, as JSON in its only argument. */
export interface Orders {
  folder: string;
  service: string;
  /** The list that it adds first. */
  pages?: string[];
}

/** The lines that a process prints. */
export type Said =
  | { result: { index: number; outcome: string; repeated: boolean } }
  | { finished: true }
  | { error: string };

const { folder, service, pages } = JSON.parse(process.argv[2] ?? "{}") as Orders;
const say = (said: Said) => writeSync(1, `${JSON.stringify(said)}\n`);

/** A process of its own that audits pages. It ends when it is killed, or its input ends. */
const client = createClient({ baseUrl: service, apiKey: "key", reconcile: "3", concurrency: "8" });
const audit = createAudit({
  open: (lost) => openFiles(folder, "node", lost),
  connect: (changed) => requestsOf(client, 4, changed),
  share: 4,
  result: ({ index, outcome, repeated = false }) => say({ result: { index, outcome, repeated } }),
  progress: ({ finished }) => finished && say({ finished }),
  failed: ({ message }) => say({ error: message }),
});
if (pages)
  await audit
    .add({ batch: "spring", settings: { existing: "create" }, rows: readRows(pages) })
    .catch(({ message }) => say({ error: message }));
process.stdin.on("end", async () => {
  await audit.close();
  await client.close();
  process.exit();
});
process.stdin.resume();

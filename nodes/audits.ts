import type { Request, Response } from "express";
import type { NodeAPI } from "node-red";
import type { Failures } from "../src/audit/failures.js";
import type { Progress } from "../src/audit/progress.js";
import { onlyJson } from "./admin.js";
import type { AuditStatus } from "./progress.js";
import { reasonOf } from "./sources.js";

export const controls = ["pause", "resume", "retry", "reset"] as const;
export type Control = (typeof controls)[number];

/** An audit node, as the sidebar sees it. */
export interface Watched extends Pick<AuditStatus, "errors"> {
  /** Of a node in a subflow, its ID in the subflow's template. */
  readonly alias: string | undefined;
  control(how: Control, batch: string, from: string): Promise<void>;
  failures(): Promise<Failures>;
}

/** A node, or one that a deploy has closed and may start again. */
interface Entry {
  node?: Watched | undefined;
  alias?: string | undefined;
  /** By name. */
  batches: Map<string, Progress>;
  /** Finished batches that can be retried, as far as they were read. */
  kept: Progress[];
  isReading?: boolean;
}

type Values = Record<string, unknown>;

/** Rows at a time. */
const ROWS = 100;
/** Milliseconds for which a closed node is shown. */
const DEPLOY = 10_000;
const TYPE = "/seo-report-audit";

/** The routes of the tab “SEO audits”, and the nodes that it shows. */
export class Sidebar {
  readonly #entries = new Map<string, Entry>();

  constructor({ httpAdmin, auth }: NodeAPI) {
    const read = auth.needsPermission("seo-report-audit.read");
    const write = auth.needsPermission("seo-report-audit.write");
    httpAdmin.get(`${TYPE}/batches`, read, (_request, response) => {
      response.set("cache-control", "no-store").json(Array.from(this.#entries, (entry) => this.#view(...entry)));
    });
    httpAdmin.get(`${TYPE}/rows`, read, (request, response) => this.#answer(request.query, response, sendRows));
    httpAdmin.post(`${TYPE}/control`, write, onlyJson, (request: Request, response: Response) =>
      this.#answer(Object(request.body), response, control),
    );
  }

  /** Shows a node. Returns its batches before a deploy. */
  open(id: string, node: Watched): Map<string, Progress> {
    const entry = this.#entries.get(id) ?? { batches: new Map(), kept: [] };
    this.#entries.set(id, Object.assign(entry, { node, alias: node.alias }));
    return entry.batches;
  }

  close(id: string, node: Watched, isGone: boolean): void {
    const entry = this.#entries.get(id);
    if (entry?.node !== node) return;
    entry.node = undefined;
    const remove = () => entry.node === undefined && this.#entries.get(id) === entry && this.#entries.delete(id);
    if (isGone) remove();
    else setTimeout(remove, DEPLOY).unref();
  }

  #view(id: string, entry: Entry) {
    void this.#read(entry);
    const { batches, node, alias, kept } = entry;
    const isKept = (name: string) => kept.some(({ batch }) => batch === name);
    const all = [...kept.filter(({ batch }) => !batches.has(batch)), ...batches.values()];
    return {
      id,
      alias,
      errors: node?.errors() ?? [],
      batches: all.map((one) => ({ ...one, kept: isKept(one.batch) })),
    };
  }

  /** Reads what is kept, for the next request: no request waits for a disk or a server. */
  async #read(entry: Entry): Promise<void> {
    if (entry.isReading || !entry.node) return;
    entry.isReading = true;
    try {
      entry.kept = await (await entry.node.failures()).kept();
    } catch {
      // The node's own error says why.
    }
    entry.isReading = false;
  }

  async #answer(values: Values, response: Response, work: typeof control): Promise<void> {
    try {
      const node = this.#entries.get(String(values.node))?.node;
      if (!node) throw new Error("There is no such node.");
      await work(node, values, response.set("cache-control", "no-store"));
    } catch (cause) {
      response.status(400).json({ message: reasonOf(cause) });
    }
  }
}

async function sendRows(node: Watched, { batch, from, csv }: Values, response: Response): Promise<void> {
  const all = await (await node.failures()).read(String(batch));
  const { toCsv } = await import("../src/audit/failures.js");
  const start = Number(from) || 0;
  if (csv) response.type("csv").send(toCsv(all));
  else response.json({ total: all.length, rows: all.slice(start, start + ROWS) });
}

async function control(node: Watched, values: Values, response: Response): Promise<void> {
  const how = controls.find((one) => one === values.do);
  if (!how || typeof values.batch !== "string") throw new Error("The request is not valid.");
  await node.control(how, values.batch, "batch");
  response.json({});
}

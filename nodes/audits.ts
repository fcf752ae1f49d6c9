import type { Response } from "express";
import type { NodeAPI } from "node-red";
import { type Control, controls } from "../src/audit/entries.js";
import type { FindJournals, Kept } from "../src/audit/failures.js";
import type { Progress } from "../src/audit/progress.js";
import type { Json } from "../src/json.js";
import { onlyJson } from "./admin.js";
import type { AuditStatus } from "./progress.js";
import { type Message, thrownText } from "./sources.js";

/** How a message controls a batch: only by `true`, because other nodes leave values, such as the http request node's `retry: 0`. */
export const controlIn = (msg: Message) => controls.find((name) => msg[name] === true);

/** An audit node, as the sidebar sees it. */
export interface Watched extends Pick<AuditStatus, "errors"> {
  batches(): readonly Progress[];
  /** By a deploy, which may start it again. */
  readonly isClosed: boolean;
  control(how: Control, batch: string, from: string): Promise<void>;
  journals(): Promise<FindJournals>;
}

interface NodeCards {
  node: Watched;
  /** Finished batches that can be retried, as far as they were read. */
  kept: Kept;
  isReading: boolean;
}

/** The maximum number of rows that the tab shows. The CSV has all. */
const MOST_ROWS = 1000;
/** Milliseconds for which a closed node is shown. */
const DEPLOY = 10_000;
const TYPE = "/seo-report-audit";

/** By node. If the package is installed again, the routes of the first time still respond, and show the new nodes. */
let nodes = new Map<string, NodeCards>();

/** Shows a node. Returns its batches before a deploy. */
export function openCards(id: string, node: Watched): readonly Progress[] {
  const { node: earlier, kept = new Map() } = nodes.get(id) ?? {};
  nodes.set(id, { node, kept, isReading: false });
  return earlier?.batches() ?? [];
}

/** Removes the cards of a closed node, but after a deploy not those of its successor. */
export function closeCards(id: string, node: Watched, isGone: boolean): void {
  setTimeout(() => nodes.get(id)?.node === node && nodes.delete(id), isGone ? 0 : DEPLOY).unref();
}

/** Reads what is kept. */
async function read(shown: NodeCards): Promise<void> {
  shown.isReading = true;
  try {
    const { readKept } = await import("../src/audit/failures.js");
    shown.kept = await readKept(await shown.node.journals(), shown.kept);
  } catch {
    // The node's own error says why.
  }
  shown.isReading = false;
}

/** The cards of a node: its errors and batches. That of an error of a batch is shown only if there is no other of the batch. */
function cardsOf([node, shown]: [string, NodeCards]): object[] {
  // For the next request: none waits for a disk or a server.
  if (!shown.isReading && !shown.node.isClosed) void read(shown);
  const kept = [...shown.kept.values()].flatMap((progress) => progress ?? []);
  const all = [...shown.node.errors(), ...kept, ...shown.node.batches()];
  const cards = new Map(all.map((one) => [one.batch, { ...one, node }]));
  const isFinished = (one: object) => Number("finished" in one && one.finished);
  return [...cards.values()].sort((a, b) => isFinished(a) - isFinished(b));
}

async function sendRows({ node }: NodeCards, { batch, csv }: Json, response: Response): Promise<void> {
  const { readFailures, toCsv } = await import("../src/audit/failures.js");
  const rows = await readFailures(await node.journals(), String(batch));
  if (csv) response.type("csv").send(toCsv(rows));
  else response.json(rows.slice(0, MOST_ROWS));
}

async function control(shown: NodeCards, values: Json, response: Response): Promise<void> {
  const how = controls.find((one) => one === values.do);
  if (!how || typeof values.batch !== "string") throw new Error("The request is not valid.");
  await shown.node.control(how, values.batch, "batch");
  await read(shown);
  response.json({});
}

async function answer(values: Json, response: Response, work: typeof control): Promise<void> {
  try {
    const shown = nodes.get(String(values.node));
    if (!shown || shown.node.isClosed) throw new Error("There is no such node.");
    await work(shown, values, response.set("cache-control", "no-store"));
  } catch (cause) {
    response.status(400).json({ message: thrownText(cause) });
  }
}

/** The routes of the tab “SEO audits”. */
export function registerCards({ httpAdmin, auth }: NodeAPI): void {
  nodes = new Map();
  const mayRead = auth.needsPermission("seo-report-audit.read");
  const mayWrite = auth.needsPermission("seo-report-audit.write");
  httpAdmin.get(`${TYPE}/batches`, mayRead, (_request, response) => {
    response.set("cache-control", "no-store").json([...nodes].flatMap(cardsOf));
  });
  httpAdmin.get(`${TYPE}/rows`, mayRead, ({ query }, response) => answer(query, response, sendRows));
  httpAdmin.post(`${TYPE}/control`, mayWrite, onlyJson, ({ body }, response) =>
    answer(Object(body), response, control),
  );
}

import type { Response } from "express";
import type { NodeAPI } from "node-red";
import type { FindJournals, Kept } from "../src/audit/failures.js";
import type { Progress } from "../src/audit/progress.js";
import type { Json } from "../src/json.js";
import { onlyJson } from "./admin.js";
import type { AuditStatus } from "./progress.js";
import { thrownText } from "./sources.js";

export const controls = ["pause", "resume", "retry", "reset"] as const;
export type Control = (typeof controls)[number];

/** An audit node, as the sidebar sees it. */
export interface Watched extends Pick<AuditStatus, "errors"> {
  batches(): readonly Progress[];
  /** By a deploy, which may start it again. */
  readonly isClosed: boolean;
  control(how: Control, batch: string, from: string): Promise<void>;
  journals(): Promise<FindJournals>;
}

interface Entry {
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
let entries = new Map<string, Entry>();

/** Shows a node. Returns its batches before a deploy. */
export function openCards(id: string, node: Watched): readonly Progress[] {
  const { node: earlier, kept = new Map() } = entries.get(id) ?? {};
  entries.set(id, { node, kept, isReading: false });
  return earlier?.batches() ?? [];
}

/** Removes the cards of a closed node, but after a deploy not those of its successor. */
export function closeCards(id: string, node: Watched, isGone: boolean): void {
  setTimeout(() => entries.get(id)?.node === node && entries.delete(id), isGone ? 0 : DEPLOY).unref();
}

/** Reads what is kept. */
async function read(entry: Entry): Promise<void> {
  entry.isReading = true;
  try {
    const { readKept } = await import("../src/audit/failures.js");
    entry.kept = await readKept(await entry.node.journals(), entry.kept);
  } catch {
    // The node's own error says why.
  }
  entry.isReading = false;
}

/** The cards of a node: its errors and batches. That of an error of a batch is shown only if there is no other of the batch. */
function cardsOf([node, entry]: [string, Entry]): object[] {
  // For the next request: none waits for a disk or a server.
  if (!entry.isReading && !entry.node.isClosed) void read(entry);
  const kept = [...entry.kept.values()].flatMap((progress) => progress ?? []);
  const all = [...entry.node.errors(), ...kept, ...entry.node.batches()];
  const cards = new Map(all.map((one) => [one.batch, { ...one, node }]));
  const isFinished = (one: object) => Number("finished" in one && one.finished);
  return [...cards.values()].sort((a, b) => isFinished(a) - isFinished(b));
}

async function sendRows({ node }: Entry, { batch, csv }: Json, response: Response): Promise<void> {
  const { readFailures, toCsv } = await import("../src/audit/failures.js");
  const rows = await readFailures(await node.journals(), String(batch));
  if (csv) response.type("csv").send(toCsv(rows));
  else response.json(rows.slice(0, MOST_ROWS));
}

async function control(entry: Entry, values: Json, response: Response): Promise<void> {
  const how = controls.find((one) => one === values.do);
  if (!how || typeof values.batch !== "string") throw new Error("The request is not valid.");
  await entry.node.control(how, values.batch, "batch");
  await read(entry);
  response.json({});
}

async function answer(values: Json, response: Response, work: typeof control): Promise<void> {
  try {
    const entry = entries.get(String(values.node));
    if (!entry || entry.node.isClosed) throw new Error("There is no such node.");
    await work(entry, values, response.set("cache-control", "no-store"));
  } catch (cause) {
    response.status(400).json({ message: thrownText(cause) });
  }
}

/** The routes of the tab “SEO audits”. */
export function registerCards({ httpAdmin, auth }: NodeAPI): void {
  entries = new Map();
  const mayRead = auth.needsPermission("seo-report-audit.read");
  const mayWrite = auth.needsPermission("seo-report-audit.write");
  httpAdmin.get(`${TYPE}/batches`, mayRead, (_request, response) => {
    response.set("cache-control", "no-store").json([...entries].flatMap(cardsOf));
  });
  httpAdmin.get(`${TYPE}/rows`, mayRead, ({ query }, response) => answer(query, response, sendRows));
  httpAdmin.post(`${TYPE}/control`, mayWrite, onlyJson, ({ body }, response) =>
    answer(Object(body), response, control),
  );
}

import { hash } from "node:crypto";
import { setImmediate as breathe } from "node:timers/promises";
import { type Code, cancelled, SeoError } from "../../errors.js";
import type { Audit } from "../audit.js";
import { type Control, type Entry, FORMAT, type Settings } from "../entries.js";
import { toJSON } from "../requests.js";
import type { Row } from "../rows.js";
import { apply, State } from "../state.js";
import { deposed, Trouble } from "../trouble.js";
import { entriesIn, type Line, newName, readLines } from "./log.js";
import type { Queue } from "./server.js";

type ControlCommand = { do: Control; name?: string | undefined };

/** A list; its job becomes the batch. */
interface ListCommand<Rows> {
  do: "list";
  name: string;
  settings: Settings;
  rows: Rows;
}

/** The command of a message. */
export type Command = ControlCommand | ListCommand<Iterable<Row>>;

/** The same as plain data, which a job has. */
export type Letter = ControlCommand | ListCommand<string>;

/** How many rows or batches a message was about, or why it has failed. */
export type Reply = { count: number } | { error: { code: string; message: string } };

/**
 * An entry of a job's journal: one of a batch (`letter`: the message that has caused it, which counts once); the reply to the
 * letter; or that nothing is left to do.
 */
export type JobEntry =
  | (Entry & { letter?: string | undefined })
  /** The names are those of the log. */
  | { type: "answer"; answer: Reply }
  | { type: "removed" };

const digest = (text: string) => hash("sha256", text, "hex").slice(0, 16);

/** The beginning of the IDs of a node's jobs, or of those of one batch. */
export const prefixOf = (node: string, name?: string): string =>
  name === undefined ? `${digest(node)}-` : `${digest(node)}-${digest(name)}-`;
export const newId = (node: string, { name = "" }: Command): string => prefixOf(node, name) + newName();

type JobState = "wait" | "prioritized";

/** The jobs of a node, or those of one batch. Those that are kept for msg.retry are `prioritized`. */
export async function idsIn(queue: Queue, node: string, states: JobState[], name?: string): Promise<string[]> {
  const ids = await queue.getRanges(states, 0, -1, true);
  return ids.filter((id) => id.startsWith(prefixOf(node, name)));
}

/** The data of a letter's job: texts, because PostgreSQL rejects some characters in JSON. */
export interface Packed {
  format: number;
  name: string;
  text: string;
}

/** Rows that become a text at once: the process has other things to do, too. */
const ROWS = 1000;

async function toText(list: Iterable<Row>): Promise<string> {
  let text = "";
  let count = 0;
  for (const row of list) {
    text += `${JSON.stringify(row)}\n`;
    if (++count % ROWS === 0) await breathe();
  }
  return text;
}

export async function pack(command: Command): Promise<Packed> {
  const letter: Letter = command.do === "list" ? { ...command, rows: await toText(command.rows) } : command;
  return { format: FORMAT, name: JSON.stringify(letter.name ?? ""), text: JSON.stringify(letter) };
}

/** The reply to a letter, if there is one; of a list that has become a batch, it is the number of its rows. */
function replyIn(entries: readonly JobEntry[]): Reply | undefined {
  const entry = entries.find(({ type }) => type === "answer" || type === "list");
  if (entry?.type === "list") return { count: entry.rows };
  return entry?.type === "answer" ? entry.answer : undefined;
}

/** The reply to a letter, if there is one. */
export const readReply = async (queue: Queue, id: string): Promise<Reply | undefined> =>
  replyIn(entriesIn(await readLines<JobEntry>(queue, id)));

/** The kind of a job, and the state of its batch. Throws if an entry cannot follow those before it. */
export function readJob(lines: readonly Line<JobEntry>[]) {
  const entries = entriesIn(lines);
  const state = new State();
  const letters = new Set<string>();
  for (const entry of entries) {
    if (entry.type === "answer" || entry.type === "removed") continue;
    if (entry.letter !== undefined) letters.add(entry.letter);
    apply(state, entry);
  }
  const isOver = replyIn(entries) !== undefined || "back" in (lines[0] ?? {});
  let is: "letter" | "batch" | "kept" | "done" = isOver ? "done" : "letter";
  if (state.lists.length > 0) is = state.finished ? "kept" : "batch";
  if (entries.some(({ type }) => type === "removed")) is = "done";
  return { is, state, letters };
}

/** Whether a job is a batch that has not finished, or a letter that has no reply and was not withdrawn. A damaged one is. */
export function isUnfinished(lines: readonly Line<JobEntry>[]): boolean {
  try {
    return ["letter", "batch"].includes(readJob(lines).is);
  } catch {
    return true;
  }
}

/** The number in a reply. Throws its error. */
export function countIn(reply: Reply): number {
  if ("count" in reply) return reply.count;
  const { code, message, ...details } = reply.error;
  throw new SeoError(code as Code, message, details);
}

function* rowsIn(text: string): Generator<Row> {
  for (const row of text.split("\n").slice(0, -1)) yield JSON.parse(row);
}

/** Does what a letter says. Rejects if it is to be handled again. */
export async function obey(letter: Letter, audit: Audit): Promise<Reply> {
  try {
    if (letter.do !== "list") return { count: await audit[letter.do](letter.name) };
    const { name: batch, settings, rows } = letter;
    return { count: await audit.add({ batch, settings, rows: rowsIn(rows) }) };
  } catch (cause) {
    if (cause instanceof Trouble || cause === deposed || cause === cancelled) throw cause;
    return { error: toJSON(cause instanceof SeoError ? cause : new SeoError("SEO_INPUT", String(cause))) };
  }
}

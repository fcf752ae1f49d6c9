import { hash } from "node:crypto";
import { type Code, SeoError } from "../../errors.js";
import type { Entry } from "../ledger.js";
import type { Settings } from "../list.js";
import { keyOf, type Row } from "../rows.js";
import { entriesIn, newName, readLines } from "./journal.js";
import type { Queue } from "./server.js";

/** What is done with a list; its job becomes the batch. */
export interface ListLetter {
  do: "list";
  name: string;
  settings: Settings;
  rows: string;
}

/** What a machine has been told by a message. `work`: nothing, but the machine can lead. */
export type Letter = ListLetter | { do: "pause" | "resume" | "retry" | "reset" | "work"; name?: string | undefined };

/** How many rows or batches a message was about, or why it has failed. */
export type Answer = { count: number } | { error: { code: string; message: string } };

/** What a job's journal says. `letter`: the message that it is about, which counts once. */
export type JobEntry =
  | (Entry & { letter?: string | undefined })
  | { list: Settings; rows: string; letter: string }
  | { begin: true; answer: Answer }
  | { answer: Answer }
  | { finished: boolean };

/** Of letters and journals. A machine with another version of the package must not misread them. */
export const FORMAT = 2;

const digest = (text: string) => hash("sha256", text, "hex").slice(0, 16);

/** The beginning of the IDs of a node's jobs, or of those of one batch. */
export const prefixOf = (node: string, name?: string): string =>
  name === undefined ? `${digest(node)}-` : `${digest(node)}-${digest(name)}-`;
export const newId = (node: string, { name = "" }: Letter): string => prefixOf(node, name) + newName();

/** As a text, because PostgreSQL rejects some characters in JSON. */
export const pack = (letter: Letter) => ({
  format: FORMAT,
  name: JSON.stringify(letter.name ?? ""),
  text: JSON.stringify(letter),
});
export const answerIn = (entries: readonly JobEntry[]): Answer | undefined =>
  entries.flatMap((entry) => ("answer" in entry ? [entry.answer] : []))[0];

/** The answer to a letter, if there is one. */
export const readAnswer = async (queue: Queue, id: string): Promise<Answer | undefined> =>
  answerIn(entriesIn(await readLines<JobEntry>(queue, id, 0)));

/** Whether a job is a batch that has not finished, or a letter that was neither answered nor taken back. */
export async function isOpen(queue: Queue, id: string): Promise<boolean> {
  const lines = await readLines<JobEntry>(queue, id, 0);
  const entries = entriesIn(lines);
  if (!entries.some((entry) => "begin" in entry)) return !answerIn(entries) && !(lines[0] && "back" in lines[0]);
  const end = entries.findLast((entry) => "finished" in entry || "retry" in entry);
  return !(end && "finished" in end);
}

/** The number in an answer. Throws its error. */
export function countIn(answer: Answer): number {
  if ("count" in answer) return answer.count;
  const { code, message, ...details } = answer.error;
  throw new SeoError(code as Code, message, details);
}

export const textOf = (rows: Iterable<Row>): string => Array.from(rows, ({ text }) => `${text}\n`).join("");

export function* rowsIn(text: string): Generator<Row> {
  for (let start = 0, end = text.indexOf("\n"); end >= 0; start = end + 1, end = text.indexOf("\n", start)) {
    const row = text.slice(start, end);
    yield { key: keyOf(JSON.parse(row)), text: row };
  }
}

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isObject } from "../json.js";
import type { Ended } from "./entries.js";
import { folderOf } from "./folder.js";
import { openFile, readEnds } from "./journal.js";
import { type Progress, progressOf } from "./progress.js";
import { apply, hasFailed, inputOf, rowsOf, State } from "./state.js";
import { type Blocked, blockedBy, Trouble } from "./trouble.js";

/** A journal that somebody may be working on. */
interface StoredJournal {
  /** Changes with the journal. */
  key: string;
  /** Undefined if there is none any more. */
  read(): Promise<State | Blocked | undefined>;
}

/** Finds the journals of a node: those that are kept for msg.retry, or those of the batch of a name, beginning with the newest. */
export type FindJournals = (name?: string) => AsyncIterable<StoredJournal>;

/** How kept batches ended, by the keys of their journals; undefined if one is gone. */
export type Kept = ReadonlyMap<string, Progress | Blocked | undefined>;

/** A row that has failed, or is uncertain. `index` is from 0. */
type Failure = ReturnType<typeof failureOf>;

function failureOf(index: number, input: unknown, { outcome, error }: Ended) {
  const { candidates = [] } = { ...error } as { candidates?: { id: unknown; url: unknown }[] };
  const text = isObject(input) ? input.url : input;
  const url = typeof text === "string" && text !== "" ? text : JSON.stringify(input);
  /** The reports that an uncertain request may have created or updated, such as `https://example.com (#7)`. */
  const named = candidates.map(({ id, url }) => `${url} (#${id})`);
  return { index, url, outcome, message: error?.message ?? "", candidates: named };
}

/** A spreadsheet calculates a cell that begins like a formula. It begins new cells at tabs and lines, and some also at semicolons. */
const cell = (value: unknown) =>
  `"${String(value)
    .replace(/\s+/g, " ")
    .replace(/(^|;) ?(?=[=+\-@])/g, "$&'")
    .replace(/"/g, '""')}"`;

export function toCsv(failures: readonly Failure[]): string {
  const rows = failures.map((one) => [one.index, one.url, one.outcome, one.message, one.candidates.join(", ")]);
  const all = [["index", "url", "outcome", "error", "candidates"], ...rows];
  return all.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** How the batches of kept journals ended. Those that are in `before` are not read again. */
export async function readKept(journals: FindJournals, before: Kept): Promise<Kept> {
  const kept = new Map<string, Progress | Blocked | undefined>();
  for await (const { key, read } of journals()) {
    const state = before.has(key) ? undefined : await read();
    kept.set(key, state instanceof State ? progressOf(state) : (state ?? before.get(key)));
  }
  return kept;
}

/** The failed and uncertain rows of a batch, in order. */
export async function readFailures(journals: FindJournals, name: string): Promise<Failure[]> {
  for await (const { read } of journals(name)) {
    const state = await read();
    if (!(state instanceof State)) continue;
    const ended = [...state.ended].filter(([, one]) => hasFailed(one));
    return ended
      .flatMap(([page, one]) => rowsOf(state, page).map((row) => failureOf(row, inputOf(state, row), one)))
      .sort((a, b) => a.index - b.index);
  }
  return [];
}

async function readFile(path: string): Promise<State | Blocked | undefined> {
  const state = new State();
  try {
    await (await openFile(path, false, (entry) => apply(state, entry))).close();
    return state.lists.length > 0 ? state : undefined;
  } catch (cause) {
    const isDamaged = cause instanceof Trouble && cause.kind === "damaged";
    return isDamaged ? blockedBy(state.name, cause) : undefined;
  }
}

/** The journals of a node in a folder. */
export function journalsIn(folder: string, node: string): FindJournals {
  const own = folderOf(folder, node);
  return async function* (name) {
    const files = (await readdir(own).catch(() => [])).filter((file) => file.endsWith(".jsonl"));
    for (const file of files.sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10))) {
      const path = join(own, file);
      // A file can be removed meanwhile.
      const ends = await readEnds(path).catch(() => undefined);
      const isMeant = name === undefined ? ends?.finished : ends?.name === name;
      if (isMeant) yield { key: `${path} ${ends?.size}`, read: () => readFile(path) };
    }
  };
}

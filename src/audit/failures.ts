import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Ended } from "./entries.js";
import { folderOf } from "./folder.js";
import { nameOfFinished, openFile } from "./journal.js";
import type { Progress } from "./progress.js";
import { urlOf } from "./rows.js";
import { createReading, done, hasFailed, inputOf, rowsOf, type State, total } from "./state.js";

/** Reads a journal; undefined if there is none any more, or it is damaged: then something else says so. */
type Read = () => Promise<State | undefined>;

/** Where the journals of a node can be read, whoever works on them. */
export interface Journals {
  /** The finished ones that are kept for msg.retry, by keys that change with them. */
  kept(): Promise<[key: string, read: Read][]>;
  /** The batch of a name. */
  find(name: string): ReturnType<Read>;
}

/** A row that has failed, or is uncertain. */
export interface Failure {
  /** From 0. */
  index: number;
  url: string;
  outcome: string;
  message: string;
  /** The reports that an uncertain request may have created or updated, such as `https://example.com (#7)`. */
  candidates: string[];
}

function failureOf(index: number, input: unknown, { outcome, error }: Ended): Failure {
  const { candidates = [] } = { ...error } as { candidates?: { id: unknown; url: unknown }[] };
  const url = typeof input === "object" && Object(input).url === undefined ? JSON.stringify(input) : urlOf(input);
  const named = candidates.map(({ id, url }) => `${url} (#${id})`);
  return { index, url, outcome, message: error?.message ?? "", candidates: named };
}

/** A spreadsheet would calculate a cell that begins like a formula. */
const cell = (value: unknown) =>
  `"${String(value)
    .replace(/^[=+\-@\t\r]/, "'$&")
    .replace(/"/g, '""')}"`;

/** As a spreadsheet reads it: rows are counted from 1. */
export function toCsv(failures: readonly Failure[]): string {
  const rows = failures.map((one) => [one.index + 1, one.url, one.outcome, one.message, one.candidates.join(", ")]);
  const all = [["row", "url", "outcome", "error", "candidates"], ...rows];
  return all.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function progressOf(state?: State): Progress | undefined {
  if (!state) return undefined;
  const { name: batch, counts } = state;
  const rest = { waiting: 0, reconciling: 0, dropped: 0, perMinute: 0, paused: false, finished: true } as const;
  return { batch, total: total(state), done: done(state), ...counts, ...rest };
}

/** A node's journals, read for batches that have finished, and for pages that have failed. */
export class Failures {
  readonly #journals: Journals;
  #kept = new Map<string, Progress | undefined>();

  constructor(journals: Journals) {
    this.#journals = journals;
  }

  /** How the batches ended that are kept for msg.retry. A journal is read when somebody looks, once. */
  async kept(): Promise<Progress[]> {
    const kept = new Map<string, Progress | undefined>();
    for (const [key, read] of await this.#journals.kept())
      kept.set(key, this.#kept.has(key) ? this.#kept.get(key) : progressOf(await read()));
    this.#kept = kept;
    return [...kept.values()].flatMap((progress) => progress ?? []);
  }

  /** The failed and uncertain rows of a batch, in order. */
  async read(name: string): Promise<Failure[]> {
    const state = await this.#journals.find(name);
    const ended = [...(state?.ended ?? [])].filter(([, one]) => hasFailed(one));
    return ended
      .flatMap(([page, one]) =>
        rowsOf(state as State, page).map((row) => failureOf(row, inputOf(state as State, row), one)),
      )
      .sort((a, b) => a.index - b.index);
  }
}

/** The journals of a node in a folder. */
export function journalsIn(folder: string, node: string): Journals {
  const own = folderOf(folder, node);

  async function read(path: string, name?: string): Promise<State | undefined> {
    const { state, take } = createReading();
    try {
      const file = await openFile(path, false, (entry) => {
        take(entry);
        if (name !== undefined && state.name !== name) throw new Error("it is of another batch");
      });
      await file.close();
      return state.lists.length > 0 ? state : undefined;
    } catch {
      return undefined;
    }
  }

  /** The newest first. */
  async function paths(): Promise<string[]> {
    const names = (await readdir(own).catch(() => [])).filter((name) => name.endsWith(".jsonl"));
    return names.sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10)).map((name) => join(own, name));
  }

  return {
    async kept() {
      const all = (await paths()).map(async (path): Promise<[string, Read][]> => {
        if ((await nameOfFinished(path)) === undefined) return [];
        return [[`${path} ${(await stat(path)).size}`, () => read(path)]];
      });
      // A file that is not there any more is not kept.
      return (await Promise.allSettled(all)).flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    },

    async find(name) {
      for (const path of await paths()) {
        const state = await read(path, name);
        if (state) return state;
      }
    },
  };
}

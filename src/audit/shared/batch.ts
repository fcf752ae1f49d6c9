import { createBatch } from "../batch.js";
import { createLedger, type Entry } from "../ledger.js";
import type { List, Settings } from "../list.js";
import { createPages } from "../pages.js";
import type { Batch } from "../store.js";
import type { Journal } from "./journal.js";
import { type JobEntry, type ListLetter, rowsIn, textOf } from "./letter.js";

/** A list in memory. A page's offset is that of its row in `data`. */
interface JobList extends List {
  data: Buffer;
}

export interface JobBatch extends Batch {
  /** Those that have changed it. */
  letters: ReadonlySet<string>;
}

const NEWLINE = 10;

/**
 * The batch that a job is. Throws if its list or its journal is damaged. `current`: the letter that is handled. `left` is
 * called when it has finished.
 */
export function openBatch(
  { name, settings, rows }: ListLetter,
  journal: Pick<Journal<JobEntry>, "append" | "close">,
  entries: readonly JobEntry[],
  current: () => string,
  left: (complete: boolean) => Promise<void>,
): JobBatch {
  const pages = createPages();
  const ledger = createLedger(pages);
  const lists: JobList[] = [];
  const reports: string[] = [];
  const letters = new Set<string>();

  function addList(settings: Settings, text: string): void {
    const first = pages.count();
    let offset = 0;
    for (const { key, text: row } of rowsIn(text)) {
      if (key.startsWith(" ") && pages.find(key) === undefined) ledger.reject();
      pages.add(key, offset);
      offset += Buffer.byteLength(row) + 1;
    }
    lists.push({ ...settings, first, end: pages.count(), data: Buffer.from(text) });
  }

  function input(row: number): { input: unknown; error?: string } {
    const { data } = lists.findLast(({ first }) => first <= row) as JobList;
    const start = pages.offset(row);
    return JSON.parse(data.toString("utf8", start, data.indexOf(NEWLINE, start)));
  }

  addList(settings, rows);
  for (const entry of entries) {
    if ("letter" in entry && entry.letter !== undefined) letters.add(entry.letter);
    if ("ended" in entry && entry.report !== undefined) reports.push(entry.report);
    if ("list" in entry) addList(entry.list, entry.rows);
    else if (!("answer" in entry || "finished" in entry)) ledger.apply(entry);
  }

  /** Does what a letter says, once. */
  const once =
    <Args extends unknown[], Value>(work: (...args: Args) => Promise<Value>, done: Value) =>
    async (...args: Args): Promise<Value> => {
      const letter = current();
      if (letters.has(letter)) return done;
      const value = await work(...args);
      letters.add(letter);
      return value;
    };
  const isControl = (entry: Entry) => "paused" in entry || "retry" in entry || "reset" in entry;
  const batch = createBatch(
    {
      name,
      lists,
      append: (entry) => journal.append(isControl(entry) ? { ...entry, letter: current() } : entry),
      input: async (row) => input(row),
      async join(settings, given) {
        const text = textOf(Array.from(given).filter(({ key }) => pages.find(key) === undefined));
        if (text === "") return 0;
        const before = pages.count();
        await journal.append({ list: settings, rows: text, letter: current() });
        addList(settings, text);
        return pages.count() - before;
      },
      check: () => journal.append(),
      async finish() {
        await journal.append({ finished: false });
        await left(false);
      },
      async remove() {
        await journal.append({ finished: true });
        await left(true);
      },
      close: journal.close,
    },
    pages,
    ledger,
    reports,
  );
  const { join, pause, retry, reset } = batch;
  return {
    ...batch,
    letters,
    join: once(join, 0),
    pause: once(pause, undefined),
    retry: once(retry, 0),
    reset: once(reset, undefined),
  };
}

import type { List } from "./list.js";
import { outcomes, type Pages, type State } from "./pages.js";
import type { Ended, Plan, Sent } from "./store.js";
import { createStreaks } from "./streaks.js";

/** A line of the log. */
export type Entry =
  | ({ row: number; at?: string } & Sent)
  | ({ row: number } & Ended)
  | { row: number; told: true }
  | { row: number; again: true }
  | { letGo: true }
  | { retry: true }
  | { paused: boolean }
  | { reset: true };

function takeFirst(rows: Set<number>): number | undefined {
  const [row] = rows;
  if (row !== undefined) rows.delete(row);
  return row;
}

/**
 * What is known of a batch's pages. Everything that changes it is an entry of the log, so that reading the log again leads
 * to the same state.
 */
export function createLedger(pages: Pages) {
  const sent = new Map<number, Sent>();
  const ended = new Map<number, Ended>();
  /** Pages to go on with: sent or ended in an earlier process, or failures that are to be told. */
  const begun = new Set<number>();
  /** Rows that cannot be audited, and those of them that are still to be told. */
  const invalid = new Set<number>();
  const rejected = new Set<number>();
  const busy = new Set<number>();
  let paused = false;
  let dropped = false;
  let cursor = 0;
  const streaks = createStreaks({
    ended,
    inFlight: () => [...sent.keys()].filter((page) => pages.state(page) === "sent"),
    tell: (page) => begun.add(page),
    again: wait,
  });

  function check(row: number, repeats: boolean): void {
    const known = Number.isInteger(row) && row >= 0 && row < pages.count();
    if (!known || !(repeats || pages.pageOf(row) === row)) throw new Error("there is no such row");
  }

  function end(page: number, entry: Ended): void {
    ended.set(page, entry);
    rejected.delete(page);
    pages.set(page, "ended");
    if (entry.ended !== "uncertain" && sent.has(page))
      sent.set(page, { ...(sent.get(page) as Sent), intent: undefined });
    if (entry.ended !== "fresh" && !invalid.has(page)) streaks.end(page, entry);
  }

  function tell(row: number): void {
    const page = pages.pageOf(row);
    const entry = ended.get(page);
    // msg.retry came between the result and its note.
    if (!entry || isTold(row)) return;
    pages.set(row, entry.ended);
    if (untold(page).length > 0) return;
    ended.delete(page);
    begun.delete(page);
    streaks.told(page);
    if (!entry.error) sent.delete(page);
  }

  function wait(page: number): void {
    for (const row of pages.rowsOf(page)) pages.set(row, "waiting");
    ended.delete(page);
    if (invalid.has(page)) rejected.add(page);
    cursor = Math.min(cursor, page);
  }

  const isTold = (row: number) => (outcomes as readonly State[]).includes(pages.state(row));
  const untold = (page: number) => [...pages.rowsOf(page)].filter((row) => !isTold(row));
  const isFailed = (row: number) => pages.state(row) === "failed" || pages.state(row) === "uncertain";

  const isNew = (row: number) =>
    pages.state(row) === "waiting" && pages.pageOf(row) === row && !invalid.has(row) && !busy.has(row);

  return {
    sent,
    ended,
    untold,
    isTold,
    streak: streaks.streak,
    held: streaks.held,
    counts: pages.counts,
    total: pages.count,
    paused: () => paused,
    dropped: () => dropped,

    /** How many pages of a list are new. */
    countNew({ first, end }: List): number {
      let count = 0;
      for (let row = first; row < end; row++) if (isNew(row)) count++;
      return count;
    },

    /** The page of a key, if it is new and in the list. */
    find({ first, end }: List, key: string): number | undefined {
      const page = pages.find(key);
      return page !== undefined && page >= first && page < end && isNew(page) ? page : undefined;
    },

    /** What was sent for a page, or what is to be sent. */
    requestOf(page: number, plan: Plan | undefined): Sent {
      const before = sent.get(page);
      // A later plan can have found another report.
      if (before && before.report !== plan?.report) return before;
      return { sent: plan ? "regenerate" : "create", ...before, ...plan };
    },

    /** The row that is added next cannot be audited. */
    reject(): void {
      const row = pages.count();
      invalid.add(row);
      rejected.add(row);
    },

    /** Throws if the entry cannot follow those before it. */
    apply(entry: Entry): void {
      if ("row" in entry) check(entry.row, "told" in entry);
      if ("sent" in entry) {
        const { row, sent: action, report, generatedAt, intent } = entry;
        sent.set(row, { sent: action, report, generatedAt, intent });
        streaks.sent(row);
        pages.set(row, "sent");
      } else if ("ended" in entry) {
        const { row, ...rest } = entry;
        if (!outcomes.includes(rest.ended)) throw new Error("the outcome is unknown");
        end(row, rest);
      } else if ("told" in entry) tell(entry.row);
      else if ("again" in entry) streaks.probe(entry.row);
      else if ("letGo" in entry) streaks.letGo();
      else if ("retry" in entry) {
        // A page that is being told has not ended.
        for (let row = 0; row < pages.count(); row++)
          if (isFailed(row) && pages.pageOf(row) === row && !ended.has(row)) wait(row);
      } else if ("paused" in entry) paused = entry.paused;
      else if ("reset" in entry) dropped = true;
      else throw new Error("the line has an unknown meaning");
    },

    /** After a log was read: the pages that were begun in an earlier process. */
    restore(): void {
      for (const page of ended.keys()) if (!streaks.holds(page)) begun.add(page);
      for (const page of sent.keys()) if (pages.state(page) === "sent") begun.add(page);
    },

    failed: () => pages.counts.failed + pages.counts.uncertain,

    takeRejected: () => takeFirst(rejected),

    isInvalid: (row: number) => invalid.has(row),
    isDone: () => outcomes.reduce((done, outcome) => done + pages.counts[outcome], 0) === pages.count(),

    /** Whether `takeRejected`, `takeBegun` or `takeNew` would return something. */
    has(which: "invalid" | "begun" | "new", end: number): boolean {
      if (which === "invalid") return rejected.size > 0;
      if (dropped) return false;
      if (which === "begun") return begun.size > 0;
      while (cursor < end && !isNew(cursor)) cursor++;
      return cursor < end;
    },

    takeBegun(): number | undefined {
      const page = dropped ? undefined : takeFirst(begun);
      if (page !== undefined) busy.add(page);
      return page;
    },

    /** The next page before the row `end` that is new. */
    takeNew(end: number): number | undefined {
      for (; cursor < end && !dropped; cursor++) {
        if (!isNew(cursor)) continue;
        busy.add(cursor);
        return cursor++;
      }
      return undefined;
    },

    release(page: number): void {
      busy.delete(page);
      const state = pages.state(page);
      if (state === "waiting" && invalid.has(page)) rejected.add(page);
      else if (state === "waiting") cursor = Math.min(cursor, page);
      else if (state === "sent" || (ended.has(page) && !streaks.holds(page))) begun.add(page);
    },
  };
}

export type Ledger = ReturnType<typeof createLedger>;

import type { Code } from "../errors.js";
import { outcomes, type Pages, type State } from "./pages.js";
import type { Ended, Sent, Streak } from "./store.js";

/** A line of the log. */
export type Entry =
  | ({ row: number; at?: string } & Sent)
  | ({ row: number } & Ended)
  | { row: number; told: true }
  | { row: number; again: true }
  | { retry: true }
  | { paused: boolean }
  | { reset: true };

function takeFirst(rows: Set<number>): number | undefined {
  const [row] = rows;
  if (row !== undefined) rows.delete(row);
  return row;
}

/** After so many failures in a row with the same code, a machine stops. */
const STREAK = 5;

/** Failures that no page causes, and that had no effect. */
const blameless: (string | undefined)[] = [
  "SEO_UNAUTHORIZED",
  "SEO_FORBIDDEN",
  "SEO_RATE_LIMITED",
  "SEO_NETWORK",
] satisfies Code[];

/** The owner of the streaks of machines that are gone. A batch in files has one machine, which has this name. */
export const NOBODY = "";

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
  const streaks = new Map<string, Streak>();
  /** Pages that were requested again after they were held, which happens once. */
  const repeats = new Set<number>();
  /** Machines that have succeeded. */
  const working = new Set<string>();
  let paused = false;
  let dropped = false;
  let cursor = 0;

  function check(row: number, repeats: boolean): void {
    const known = Number.isInteger(row) && row >= 0 && row < pages.count();
    if (!known || !(repeats || pages.pageOf(row) === row)) throw new Error("there is no such row");
  }

  const held = () => [...streaks.values()].flatMap((streak) => streak.pages);
  const holderOf = (page: number) => [...streaks.values()].find((streak) => streak.pages.includes(page));

  function drop(page: number): Streak | undefined {
    const streak = holderOf(page);
    if (streak) streak.pages = streak.pages.filter((other) => other !== page);
    return streak;
  }

  /** The machine's own, or that of machines that are gone, as long as no success of this one is known. */
  function streakOf(machine: string): Streak | undefined {
    return streaks.get(machine) ?? (working.has(machine) ? undefined : streaks.get(NOBODY));
  }

  /** Held pages are told, or requested again: all, or those of a machine that has stopped which did not cause their failure. */
  function resolve(streak: Streak, all = false): void {
    for (const page of streak.pages.splice(0)) {
      const { ended: outcome, error } = ended.get(page) as Ended;
      const again = streak.before && outcome === "failed" && blameless.includes(error?.code) && !repeats.has(page);
      if (all || again) waitAgain(page);
      else begun.add(page);
    }
  }

  /** Failures are held as long as they may be the account's. */
  function fail(page: number, error: Ended["error"], machine: string): void {
    let streak = streaks.get(machine);
    if (!streak) {
      streak = streakOf(machine);
      if (streak) streaks.delete(NOBODY);
    }
    if (streak && !streak.before && streak.error?.code !== error?.code) {
      resolve(streak);
      streak = undefined;
    }
    streak ??= { pages: [], count: 0, error };
    streaks.set(machine, streak);
    streak.pages.push(page);
    streak.count++;
    streak.error = error;
    if (streak.before && streak.probe === page) {
      streaks.delete(machine);
      for (const other of streak.pages) begun.add(other);
    } else if (!streak.before && streak.pages.length >= STREAK)
      streak.before = new Set([...sent.keys()].filter((other) => pages.state(other) === "sent"));
  }

  /**
   * Ends the machine's streak if it sent the request, rather than found the effect of one that another process sent. A probe
   * also shows that the account can be used, so that no page has to be held.
   */
  function succeed(page: number, machine: string, sent: boolean): void {
    if (sent) working.add(machine);
    for (const [owner, streak] of streaks) {
      if (streak.before?.has(page) || !(streak.before || (sent && owner === machine))) continue;
      resolve(streak, streak.probe === page);
      if (owner === machine || owner === NOBODY) streaks.delete(owner);
    }
  }

  function end(page: number, entry: Ended, machine: string): void {
    const { error } = entry;
    ended.set(page, entry);
    rejected.delete(page);
    pages.set(page, "ended");
    if (entry.ended !== "uncertain" && sent.has(page))
      sent.set(page, { ...(sent.get(page) as Sent), intent: undefined });
    if (entry.ended === "fresh" || invalid.has(page)) return;
    if (error) fail(page, error, machine);
    else succeed(page, machine, entry.attempts > 0);
    for (const { before } of streaks.values()) before?.delete(page);
  }

  function tell(row: number): void {
    const page = pages.pageOf(row);
    const entry = ended.get(page);
    if (!entry) throw new Error("the result was sent before the page ended");
    pages.set(row, entry.ended);
    if (untold(page).length > 0) return;
    ended.delete(page);
    begun.delete(page);
    repeats.delete(page);
    // It was let go, which a log in a file does not say.
    const streak = drop(page);
    if (streak) streak.before = undefined;
    if (!entry.error) sent.delete(page);
  }

  function wait(page: number): void {
    for (const row of pages.rowsOf(page)) pages.set(row, "waiting");
    ended.delete(page);
    drop(page);
    if (invalid.has(page)) rejected.add(page);
    cursor = Math.min(cursor, page);
  }

  function waitAgain(page: number): void {
    wait(page);
    repeats.add(page);
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
    isNew,
    held,
    streakOf,
    /** The machines that have a streak. */
    machines: () => [...streaks.keys()].filter((machine) => machine !== NOBODY),

    /** Held pages are told, or requested again by a machine that has not stopped. */
    letGo(): void {
      for (const [owner, streak] of streaks) {
        resolve(streak);
        if (!streak.before || owner === NOBODY) streaks.delete(owner);
      }
    },

    /** A machine is gone. If it had stopped, it stays open whose failures these are. */
    gone(machine: string): void {
      const streak = streaks.get(machine);
      streaks.delete(machine);
      if (!streak) return;
      const other = streaks.get(NOBODY);
      if (!streak.before) resolve(streak);
      else if (other) other.pages.push(...streak.pages);
      else if (streak.pages.length > 0) streaks.set(NOBODY, streak);
    },

    /** What a batch says of itself. */
    readings: {
      counts: pages.counts,
      total: pages.count,
      paused: () => paused,
      dropped: () => dropped,
      held,
      untold,
    },
    paused: () => paused,
    dropped: () => dropped,

    /** The row that is added next cannot be audited. */
    reject(): void {
      const row = pages.count();
      invalid.add(row);
      rejected.add(row);
    },

    /** Throws if the entry cannot follow those before it. */
    apply(entry: Entry, machine = NOBODY): void {
      if ("row" in entry) check(entry.row, "told" in entry);
      if ("sent" in entry) {
        const { row, sent: action, report, intent } = entry;
        sent.set(row, { sent: action, report, intent });
        for (const { before } of streaks.values()) before?.delete(row);
        pages.set(row, "sent");
      } else if ("ended" in entry) {
        const { row, ...rest } = entry;
        if (!outcomes.includes(rest.ended)) throw new Error("the outcome is unknown");
        end(row, rest, machine);
      } else if ("told" in entry) tell(entry.row);
      else if ("again" in entry) {
        const streak = holderOf(entry.row);
        if (streak) streak.probe = entry.row;
        waitAgain(entry.row);
      } else if ("retry" in entry) {
        // A page that is being told has not ended.
        for (let row = 0; row < pages.count(); row++)
          if (isFailed(row) && pages.pageOf(row) === row && !ended.has(row)) wait(row);
      } else if ("paused" in entry) paused = entry.paused;
      else if ("reset" in entry) dropped = true;
      else throw new Error("the line has an unknown meaning");
    },

    /** After a log was read: the pages that were begun in an earlier process. */
    restore(): void {
      for (const page of ended.keys()) if (!holderOf(page)) begun.add(page);
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
      else if (state === "sent" || (ended.has(page) && !holderOf(page))) begun.add(page);
    },
  };
}

export type Ledger = ReturnType<typeof createLedger>;

import { createLedger, type Entry, type Ledger } from "../ledger.js";
import type { List, Settings } from "../list.js";
import { createPages } from "../pages.js";
import { keyOf, urlOf } from "../rows.js";
import type { Plan } from "../store.js";

/** What a machine can take: a page, an invalid row, the plan of the next list, or the end of the batch. */
export type Kind = "begun" | "new" | "invalid" | "plan" | "end";

/** What a machine has taken that is no page. */
export const PLAN = -1;
export const END = -2;

/**
 * An entry of a shared log. `by` is the claim: the machine, a slash, and a number. What a machine writes for a page that it
 * has not, or no longer, is void.
 */
export type GroupEntry =
  | { list: Settings; rows: string }
  | { take: Kind; by: string }
  | { left: number; by: string }
  | { planned: number; plans: [page: number, plan: Plan][]; by: string }
  | { gone: string }
  | { finished: boolean; by: string }
  | (Entry & { by?: string });

/** A list in memory. A page's offset is that of its row in `data`. */
interface SharedList extends List {
  data: Buffer;
}

const NEWLINE = 10;
export const machineOf = (by: string): string => by.slice(0, by.indexOf("/"));

/**
 * What all machines know of a batch: a ledger, and which machine has which page. Entries lead to the same state everywhere,
 * because all machines apply them in the same order.
 */
export function createGroup() {
  const pages = createPages();
  const ledger: Ledger = createLedger(pages);
  const lists: SharedList[] = [];
  const owners = new Map<number, string>();
  const dead = new Set<string>();
  const plans = new Map<number, Plan>();
  /** Pages that their owner tells, and those that one may have told before it left. */
  const telling = new Set<number>();
  const repeated = new Set<number>();
  /** The lists that have a plan. */
  let planned = 0;
  let finished: boolean | undefined;

  const planEnd = () => lists[planned - 1]?.end ?? 0;
  const isPage = (key: number) => key >= 0;
  const isBusy = () => [...owners.keys()].some(isPage);
  const isOver = () => finished === undefined && lists.length > 0 && (ledger.dropped() ? !isBusy() : ledger.isDone());
  const listOf = (row: number) => lists.findLast(({ first }) => first <= row) as SharedList;

  /** Lists of pages that are created anyway need no plan. */
  function skipPlans(): void {
    while (lists[planned]?.existing === "create") planned++;
  }

  /** A row as JSON: its input, and why it is not valid. */
  function rowOf(row: number): { input: unknown; error?: string } {
    const { data } = listOf(row);
    const start = pages.offset(row);
    return JSON.parse(data.toString("utf8", start, data.indexOf(NEWLINE, start)));
  }

  function addList(settings: Settings, text: string): number | undefined {
    if (finished !== undefined || ledger.dropped() || owners.has(END)) return undefined;
    const data = Buffer.from(text);
    const first = pages.count();
    for (let start = 0, end = data.indexOf(NEWLINE); end >= 0; start = end + 1, end = data.indexOf(NEWLINE, start)) {
      const row = JSON.parse(data.toString("utf8", start, end));
      const key = keyOf(row);
      const known = pages.find(key);
      if (known !== undefined && known < first) continue;
      if (row.error !== undefined && known === undefined) ledger.reject();
      pages.add(key, start);
    }
    const added = pages.count() - first;
    if (added > 0) lists.push({ ...settings, first, end: pages.count(), data });
    skipPlans();
    return added;
  }

  function take(kind: Kind, by: string): number | undefined {
    if (dead.has(machineOf(by))) return undefined;
    const found = {
      begun: ledger.takeBegun,
      new: () => ledger.takeNew(planEnd()),
      invalid: ledger.takeRejected,
      plan: () => (planned < lists.length && !owners.has(PLAN) ? PLAN : undefined),
      end: () => (isOver() && !owners.has(END) ? END : undefined),
    }[kind]();
    if (found === undefined) return undefined;
    owners.set(found, by);
    if (ledger.ended.has(found)) telling.add(found);
    return found;
  }

  function release(key: number): void {
    owners.delete(key);
    if (telling.delete(key)) repeated.add(key);
    if (isPage(key)) ledger.release(key);
  }

  /** Who plans ends the pages that need no request, without taking each. */
  function ownerOf(row: number): string | undefined {
    const list = lists[planned];
    return owners.get(row) ?? (list && row >= list.first && row < list.end ? owners.get(PLAN) : undefined);
  }

  function applyToRow(entry: Extract<Entry, { row: number }>, by: string | undefined): boolean {
    const { row } = entry;
    if ("again" in entry) {
      if (!ledger.held().includes(row)) return false;
      repeated.delete(row);
    } else {
      const page = "told" in entry ? pages.pageOf(row) : row;
      if (by === undefined || ownerOf(page) !== by) return false;
      if ("sent" in entry && ledger.ended.has(page)) return false;
      if ("told" in entry && !ledger.ended.has(page)) return false;
      if ("ended" in entry) {
        if (ledger.ended.has(page)) return false;
        owners.set(page, by);
        repeated.delete(page);
        if (!entry.error || ledger.dropped() || ledger.isInvalid(page)) telling.add(page);
      }
    }
    ledger.apply(entry, by && machineOf(by));
    if ("told" in entry) {
      const page = pages.pageOf(row);
      if (ledger.ended.has(page)) return true;
      telling.delete(page);
      release(page);
    }
    return true;
  }

  return {
    ledger,
    pages,
    lists,
    owners,
    dead,
    plans,
    repeated,
    planEnd,
    isOver,
    listOf,
    rowOf,
    urlOf: (row: number) => urlOf(rowOf(row).input),
    /** Undefined as long as it is worked on; true if nothing is left for msg.retry. */
    finished: () => finished,
    /** The next list that has no plan. */
    unplanned: () => planned,

    /** Returns what a take got, how many rows were added or wait again, or whether the entry counts. Throws if it has no meaning. */
    apply(entry: GroupEntry): number | boolean | undefined {
      if ("list" in entry) return addList(entry.list, entry.rows);
      if ("take" in entry) return take(entry.take, entry.by);
      if ("left" in entry) {
        if (owners.get(entry.left) !== entry.by) return false;
        release(entry.left);
      } else if ("planned" in entry) {
        if (owners.get(PLAN) !== entry.by || entry.planned !== planned) return false;
        for (const [page, plan] of entry.plans) plans.set(page, plan);
        owners.delete(PLAN);
        planned++;
        skipPlans();
      } else if ("gone" in entry) {
        dead.add(entry.gone);
        ledger.gone(entry.gone);
        for (const [key, by] of owners) {
          if (machineOf(by) !== entry.gone) continue;
          if (key === END) repeated.add(key);
          release(key);
        }
      } else if ("finished" in entry) {
        if (owners.get(END) !== entry.by) return false;
        finished = entry.finished;
      } else if ("row" in entry) {
        const { by, ...rest } = entry;
        return applyToRow(rest as Extract<Entry, { row: number }>, by);
      } else if ("retry" in entry) {
        const before = ledger.failed();
        ledger.apply(entry);
        const again = before - ledger.failed();
        if (again > 0 && finished !== true) {
          finished = undefined;
          owners.delete(END);
          repeated.delete(END);
        }
        return again;
      } else {
        ledger.apply(entry);
        if ("reset" in entry && finished !== undefined) finished = true;
      }
      return true;
    },
  };
}

export type Group = ReturnType<typeof createGroup>;

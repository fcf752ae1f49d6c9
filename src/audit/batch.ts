import { createDelivery } from "./delivery.js";
import type { Entry, Ledger } from "./ledger.js";
import type { List, Settings } from "./list.js";
import type { Pages } from "./pages.js";
import { type Row, urlOf } from "./rows.js";
import type { Batch, Plan } from "./store.js";

/** Where a batch is kept: its lists, and the log of what was done. */
export interface Keeper {
  readonly name: string;
  readonly lists: readonly List[];
  /** Resolves when the entry is saved; with `synced` false, when it is written. */
  append(entry: Entry, synced?: boolean): Promise<void>;
  input: Batch["input"];
  /** Saves the rows whose pages are new. Returns how many. */
  join(settings: Settings, rows: Iterable<Row>): Promise<number>;
  /** Rejects if another machine leads. */
  check?(): Promise<void>;
  finish(): Promise<void>;
  remove(): Promise<void>;
  close(): Promise<void>;
}

/** A batch that was read. `reports`: those that it got. */
export function createBatch(keeper: Keeper, pages: Pages, ledger: Ledger, reports: string[]): Batch {
  const plans = new Map<number, Plan>();
  let planEnd = 0;
  ledger.restore();
  const earlier = new Set(ledger.ended.keys());
  /** Its rows had been told before it was opened. An invalid one that is left ends at once. */
  let wasOver = pages.counts.sent === 0 && !ledger.has("new", pages.count());
  // If a note is lost, the row is told again.
  const delivery = createDelivery((row) => {
    if (ledger.isTold(row)) void keeper.append({ row, told: true }, false).catch(() => {});
  });

  /** Nothing counts before it is saved. */
  async function write(entry: Entry): Promise<void> {
    await keeper.append(entry);
    ledger.apply(entry);
  }

  return {
    name: keeper.name,
    reports,
    counts: ledger.counts,
    total: ledger.total,
    paused: ledger.paused,
    dropped: ledger.dropped,
    held: ledger.held,
    streak: ledger.streak,
    untold: ledger.untold,
    find: ledger.find,

    async take(which) {
      const page = which === "begun" ? ledger.takeBegun() : ledger.takeNew(planEnd);
      if (page === undefined) return undefined;
      try {
        return {
          page,
          url: urlOf((await keeper.input(page)).input),
          settings: keeper.lists.findLast(({ first }) => first <= page) as List,
          request: ledger.requestOf(page, plans.get(page)),
          ended: ledger.ended.get(page),
          repeated: earlier.has(page),
        };
      } catch (cause) {
        ledger.release(page);
        throw cause;
      }
    },
    takeInvalid: ledger.takeRejected,
    release: ledger.release,

    sent: (page, sent) => write({ row: page, at: new Date().toISOString(), ...sent }),
    ended(page, ended) {
      wasOver = false;
      earlier.delete(page);
      return write({ row: page, ...ended });
    },
    input: keeper.input,
    told(row) {
      ledger.apply({ row, told: true });
      delivery.add(row);
    },
    again: (page) => write({ row: page, again: true }),
    letGo: () => write({ letGo: true }),

    unplanned() {
      for (const list of keeper.lists) {
        if (list.end <= planEnd) continue;
        const count = list.existing === "create" ? 0 : ledger.countNew(list);
        if (count > 0) return { list, pages: count };
        planEnd = list.end;
      }
      return undefined;
    },
    plan(page, plan) {
      plans.set(page, plan);
    },
    planned(list) {
      planEnd = list.end;
    },

    join: keeper.join,
    pause: (paused) => write({ paused }),
    async retry() {
      const before = ledger.failed();
      if (before === 0) return 0;
      delivery.flush();
      await write({ retry: true });
      return before - ledger.failed();
    },
    reset: () => write({ reset: true }),
    async last() {
      await keeper.check?.();
      return { repeated: wasOver };
    },
    async finish() {
      await delivery.settled();
      await keeper.finish();
    },
    async remove() {
      await delivery.settled();
      await keeper.remove();
    },
    close() {
      delivery.close();
      return keeper.close();
    },
  };
}

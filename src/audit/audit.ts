/**
 * How a list travels from a message to its results. entries.ts has all that can happen to it.
 *
 * 1. rows.ts reads the list, and batch.ts saves it in a journal: a file (journal.ts) in the node's folder (files.ts, folder.ts, lock.ts),
 *    or the log of a job in a queue (shared/).
 * 2. state.ts has what a journal says, and the state of each page. Every change is an entry, which is saved first; only
 *    the delivery of a result, and when the journal was opened, are noted afterwards.
 * 3. access.ts opens the store of the batches. If that cannot be done, or nothing can be saved (trouble.ts), it holds everything up.
 * 4. The engine (engine.ts) works on the batches, the oldest first.
 * 5. run.ts does what is next in a batch. breaker.ts decides whether it waits for its account, progress.ts reports how far it is.
 * 6. plan.ts reads the account's reports for the lists that wait, and decides which pages to create, to regenerate, or to leave as they are.
 * 7. page.ts requests a page through the client (requests.ts), with an entry before and after. Then its result is sent to the flow.
 */
import { cancelled, type SeoError } from "../errors.js";
import { createSequence } from "../turns.js";
import type { Batch, List, Store } from "./batch.js";
import { clock } from "./clock.js";
import { Engine } from "./engine.js";
import type { AuditOptions } from "./options.js";
import type { Progress } from "./progress.js";
import type { Row } from "./rows.js";
import type { Run } from "./run.js";
import { failedPages, total } from "./state.js";
import { Trouble } from "./trouble.js";

export type { AuditOptions };

/** The batches of one node. */
export function createAudit(options: AuditOptions) {
  const engine = new Engine({ clock, ...options });
  const { access } = engine;
  const inOrder = createSequence();

  /** Messages change batches one after the other. */
  const withStore = <Value>(work: (store: Store) => Promise<Value>): Promise<Value> =>
    inOrder(async () => {
      if (access.closed) throw cancelled;
      return work(await access.ready());
    });

  const changeAll = (name: string | undefined, how: (run: Run) => Promise<unknown>) =>
    withStore(() => engine.change(name, how));

  function* untilClosed(rows: Iterable<Row>): Generator<Row> {
    for (const row of rows) {
      if (access.closed) throw cancelled;
      yield row;
    }
  }

  return {
    /**
     * Adds a list: as a new batch, or the pages that are new to a batch that is not finished. Resolves when it is on disk,
     * with the number of rows. Rejects if it cannot be read or saved.
     */
    add: ({ batch: name, settings, rows: all }: List & { batch: string }) =>
      withStore(async (store) => {
        const { error } = access;
        if (error instanceof Trouble)
          throw new Trouble(error.kind, `The list was not saved: ${error.message}`, error.details);
        for (const one of store.broken) if (one.name === name) throw one.error;
        const list = { settings, rows: untilClosed(all) };
        let count = 0;
        const joined = await engine.change(name, async ({ batch, breaker }) => {
          count = await batch.add(list);
          // Not with new pages, because a flow that adds a page at a time would send a probe for each.
          if (count === 0) breaker.setDue();
          // The last list can have other settings for the pages whose plan could not be made.
          if (breaker.byPlan && !batch.needsPlan()) breaker.end(true);
        });
        if (joined > 0) return count;
        await engine.endings();
        const batch = await store.create(name, list);
        engine.add(batch);
        return total(batch.state);
      }),

    /** Like the next ones, returns how many batches were meant. Without a name, all are. */
    pause: (name?: string) =>
      changeAll(name, async ({ batch }) => batch.state.paused || batch.write({ type: "pause" })),

    async resume(name?: string) {
      await access.probe();
      return changeAll(name, async ({ batch, breaker }) => {
        if (batch.state.paused) await batch.write({ type: "resume" });
        breaker.setDue();
      });
    },

    /** Has failed and uncertain pages requested again. */
    retry: (name?: string) =>
      withStore(async (store) => {
        const retry = async (batch: Batch) => {
          const isNeeded = failedPages(batch.state).length > 0;
          if (isNeeded) await batch.write({ type: "retry" });
          return isNeeded;
        };
        let count = await engine.change(name, async ({ batch, breaker }) => (await retry(batch)) && breaker.setDue());
        await engine.endings();
        for await (const batch of store.reopen(name)) {
          count++;
          // If it fails, the engine closes the batch again.
          await retry(batch).finally(() => engine.add(batch));
        }
        return count;
      }),

    /** Drops waiting pages. The result of a page in flight is still sent. */
    reset: (name?: string) =>
      withStore(async (store) => {
        const forgotten = engine.forget(name);
        const count = await engine.change(name, ({ batch }) => batch.write({ type: "reset" }));
        await engine.endings();
        return count + (await store.forget(name)) || forgotten;
      }),

    /** How far the last 20 batches are that have finished, and then all others. */
    latest: (): readonly Progress[] => engine.latest(),

    /** The same, once the batches can be read. */
    progress: (): Promise<readonly Progress[]> => access.ready().then(() => engine.latest()),

    /** Begins nothing more, and waits for the responses to what is in flight. */
    drain: () => engine.drain(),

    /** Ends everything at once; the progress says why. The next audit continues. Returns how many rows wait for it. */
    async close(why?: SeoError): Promise<number> {
      const count = engine.latest().reduce((sum, { waiting }) => sum + waiting, 0);
      if (why) access.error = why;
      if (why) engine.changed();
      await access.close(inOrder(() => {}));
      return count;
    },
  };
}

export type Audit = ReturnType<typeof createAudit>;

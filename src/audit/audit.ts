/**
 * How a list travels from a message to its results:
 *
 * 1. rows.ts reads the list, and batch.ts saves it in a journal: a file (journal.ts) in the node's folder (files.ts, folder.ts, lock.ts),
 *    or the log of a job in a queue (shared/).
 * 2. state.ts has what a journal says, and the state of each page. Every change is an entry, which is saved first.
 * 3. The engine (engine.ts) decides which page of which batch is next, the oldest batch first; opener.ts begins and replaces it. run.ts
 *    has what is in flight of a batch, and why it waits; progress.ts reports how far it is. Timers are those of clock.ts.
 * 4. plan.ts reads the account's reports once per list, and decides which pages to create, to regenerate, or to leave as they are.
 * 5. work.ts does what is next. page.ts requests a page through the client (requests.ts), with an entry before and after. Then its
 *    result is sent to the flow.
 * 6. If nothing can be saved, disk.ts stops all batches until it can (trouble.ts).
 */
import { cancelled, type SeoError } from "../errors.js";
import type { Batch, List } from "./batch.js";
import { Opener, type OpenOptions, type Parts } from "./opener.js";
import type { Progress } from "./progress.js";
import type { Row } from "./rows.js";
import type { Run } from "./run.js";
import { hasFailed, total } from "./state.js";
import { Trouble } from "./trouble.js";

export type AuditOptions = OpenOptions;

/** The batches of one node. */
export function createAudit(options: AuditOptions) {
  const place = new Opener(options);
  let turn: Promise<unknown> = Promise.resolve();

  /** Messages change batches one after the other. */
  function inTurn<Value>(work: (parts: Parts) => Promise<Value>): Promise<Value> {
    const result = turn.then(async () => {
      if (place.closed) throw cancelled;
      return work(await place.opened);
    });
    turn = result.catch(() => {});
    return result;
  }

  /** The batches of a name, or all. One that was reset has no name any more. */
  const runsOf = ({ engine }: Parts, name?: string) =>
    [...engine.runs].filter(({ batch }) => !batch.state.dropped && (name === undefined || batch.state.name === name));

  function* untilClosed(rows: Iterable<Row>): Generator<Row> {
    for (const row of rows) {
      if (place.closed) throw cancelled;
      yield row;
    }
  }

  /** Changes each batch of a name, or all. Returns how many. */
  async function changeRuns(parts: Parts, name: string | undefined, how: (run: Run) => Promise<unknown>) {
    const runs = runsOf(parts, name);
    for (const run of runs) await parts.engine.change(run, () => how(run));
    return runs.length;
  }

  const changeAll = (name: string | undefined, how: (run: Run) => Promise<unknown>) =>
    inTurn((parts) => changeRuns(parts, name, how));

  return {
    /**
     * Adds a list: as a new batch, or the pages that are new to a batch that is not finished. Resolves when it is on disk,
     * with the number of rows. Rejects if it cannot be read or saved.
     */
    add: ({ batch: name, settings, rows: all }: List & { batch: string }) =>
      inTurn(async (parts) => {
        const { engine, store } = parts;
        const trouble = engine.disk.trouble();
        if (trouble) throw new Trouble(trouble.kind, `The list was not saved: ${trouble.message}`, trouble.details);
        for (const one of store.broken) if (one.name === name) throw one.error;
        const rows = untilClosed(all);
        const [run] = runsOf(parts, name);
        if (run)
          return engine.change(run, async () => {
            const count = await run.batch.add({ settings, rows });
            // Not with new pages, because a flow that adds a page at a time would send a probe for each.
            if (count === 0) run.setDue();
            return count;
          });
        await Promise.allSettled(engine.endings);
        const batch = await store.create(name, { settings, rows });
        engine.add(batch);
        return total(batch.state);
      }),

    /** These return how many batches were meant. Without a name, all are. */
    pause: (name?: string) => changeAll(name, async ({ batch }) => batch.state.paused || batch.change("pause")),

    async resume(name?: string) {
      const count = await changeAll(name, async (run) => {
        if (run.batch.state.paused) await run.batch.change("resume");
        run.setDue();
      });
      await place.parts?.engine.disk.retry();
      return count;
    },

    /** Has failed and uncertain pages requested again. */
    retry: (name?: string) =>
      inTurn(async (parts) => {
        const retry = async (batch: Batch) => {
          if ([...batch.state.ended.values()].some(hasFailed)) await batch.change("retry");
        };
        let count = await changeRuns(parts, name, ({ batch }) => retry(batch));
        await Promise.allSettled(parts.engine.endings);
        for await (const batch of parts.store.reopen(name)) {
          count++;
          // If it fails, the engine closes the batch again.
          await retry(batch).finally(() => parts.engine.add(batch));
        }
        return count;
      }),

    /** Drops waiting pages. The result of a page in flight is still sent. */
    reset: (name?: string) =>
      inTurn(async (parts) => {
        const count = await changeRuns(parts, name, ({ batch }) => batch.change("reset"));
        await Promise.allSettled(parts.engine.endings);
        return count + (await parts.store.forget(name));
      }),

    /** How far each batch is that is not finished. */
    progress: async (): Promise<Progress[]> => runsOf(await place.opened).map((run) => run.reporter.read()),

    /** Begins nothing more, and waits for the responses to what is in flight. */
    drain: async () => place.parts?.engine.drain(),

    /** Ends everything at once; the progress says why. The next audit continues. Returns how many rows wait for it. */
    async close(why?: SeoError): Promise<number> {
      const { parts } = place;
      const waiting = parts ? runsOf(parts).reduce((sum, run) => sum + run.reporter.read().waiting, 0) : 0;
      if (why) parts?.engine.lose(why);
      await place.close(turn);
      return waiting;
    },
  };
}

export type Audit = ReturnType<typeof createAudit>;

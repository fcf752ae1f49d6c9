/**
 * How a list travels from a message to its results:
 *
 * 1. rows.ts reads the list, and batch.ts saves it in a journal: a file (journal.ts) in the node's folder (files.ts, folder.ts, lock.ts),
 *    or the log of a job in a queue (shared/).
 * 2. state.ts has what a journal says, and the state of each page. Every change is an entry, which is saved first.
 * 3. The engine (engine.ts) works on the batches of a store, the oldest first; opener.ts opens the store. Timers are those of clock.ts.
 * 4. run.ts does what is next in a batch. pause.ts decides whether it waits for its account, progress.ts reports how far it is.
 * 5. plan.ts reads the account's reports once per list, and decides which pages to create, to regenerate, or to leave as they are.
 * 6. page.ts requests a page through the client (requests.ts), with an entry before and after. Then its result is sent to the flow.
 * 7. If nothing can be saved, disk.ts stops all batches until it can (trouble.ts).
 */
import { cancelled, type SeoError } from "../errors.js";
import { createSequence } from "../turns.js";
import type { Batch, List } from "./batch.js";
import type { Engine } from "./engine.js";
import { Opener, type OpenOptions } from "./opener.js";
import type { Progress } from "./progress.js";
import type { Row } from "./rows.js";
import type { Run } from "./run.js";
import { hasFailed, total } from "./state.js";
import { Trouble } from "./trouble.js";

export type AuditOptions = OpenOptions;

function* untilClosed(place: Opener, rows: Iterable<Row>): Generator<Row> {
  for (const row of rows) {
    if (place.closed) throw cancelled;
    yield row;
  }
}

/** The batches of one node. */
export function createAudit(options: AuditOptions) {
  const place = new Opener(options);
  const inOrder = createSequence();

  /** Messages change batches one after the other. */
  const inTurn = <Value>(work: (engine: Engine) => Promise<Value>): Promise<Value> =>
    inOrder(async () => {
      if (place.closed) throw cancelled;
      return work(await place.opened);
    });

  /** Changes each batch of a name, or all. Returns how many. */
  async function changeRuns(engine: Engine, name: string | undefined, how: (run: Run) => Promise<unknown>) {
    const runs = engine.named(name);
    for (const run of runs) await engine.change(run, () => how(run));
    return runs.length;
  }

  const changeAll = (name: string | undefined, how: (run: Run) => Promise<unknown>) =>
    inTurn((engine) => changeRuns(engine, name, how));

  return {
    /**
     * Adds a list: as a new batch, or the pages that are new to a batch that is not finished. Resolves when it is on disk,
     * with the number of rows. Rejects if it cannot be read or saved.
     */
    add: ({ batch: name, settings, rows: all }: List & { batch: string }) =>
      inTurn(async (engine) => {
        const { store } = engine;
        const { trouble } = engine.disk;
        if (trouble) throw new Trouble(trouble.kind, `The list was not saved: ${trouble.message}`, trouble.details);
        for (const one of store.broken) if (one.name === name) throw one.error;
        const rows = untilClosed(place, all);
        const [run] = engine.named(name);
        if (run)
          return engine.change(run, async () => {
            const count = await run.batch.add({ settings, rows });
            // Not with new pages, because a flow that adds a page at a time would send a probe for each.
            if (count === 0) run.pause.setDue();
            return count;
          });
        await engine.ended();
        const batch = await store.create(name, { settings, rows });
        engine.add(batch);
        return total(batch.state);
      }),

    /** Like the next ones, returns how many batches were meant. Without a name, all are. */
    pause: (name?: string) => changeAll(name, async ({ batch }) => batch.state.paused || batch.change("pause")),

    async resume(name?: string) {
      const count = await changeAll(name, async ({ batch, pause }) => {
        if (batch.state.paused) await batch.change("resume");
        pause.setDue();
      });
      await place.engine?.disk.probe();
      return count;
    },

    /** Has failed and uncertain pages requested again. */
    retry: (name?: string) =>
      inTurn(async (engine) => {
        const retry = async (batch: Batch) => {
          if ([...batch.state.ended.values()].some(hasFailed)) await batch.change("retry");
        };
        let count = await changeRuns(engine, name, ({ batch }) => retry(batch));
        await engine.ended();
        for await (const batch of engine.store.reopen(name)) {
          count++;
          // If it fails, the engine closes the batch again.
          await retry(batch).finally(() => engine.add(batch));
        }
        return count;
      }),

    /** Drops waiting pages. The result of a page in flight is still sent. */
    reset: (name?: string) =>
      inTurn(async (engine) => {
        const count = await changeRuns(engine, name, ({ batch }) => batch.change("reset"));
        await engine.ended();
        return count + (await engine.store.forget(name));
      }),

    /** How far each batch is that is not finished. */
    progress: async (): Promise<Progress[]> => (await place.opened).named().map((run) => run.reporter.read()),

    /** Begins nothing more, and waits for the responses to what is in flight. */
    drain: async () => place.engine?.drain(),

    /** Ends everything at once; the progress says why. The next audit continues. Returns how many rows wait for it. */
    async close(why?: SeoError): Promise<number> {
      const { engine } = place;
      const waiting = engine?.named().reduce((sum, run) => sum + run.reporter.read().waiting, 0) ?? 0;
      if (why) engine?.lose(why);
      await place.close(inOrder(() => {}));
      return waiting;
    },
  };
}

export type Audit = ReturnType<typeof createAudit>;

/**
 * How a list travels from a message to its results:
 *
 * 1. rows.ts reads the list. A store (store.ts) saves it as a batch (batch.ts): files.ts and filed.ts on this machine, shared/ in a
 *    queue.
 * 2. A ledger (ledger.ts) has the state of each page. Every change is a line of the batch's log, which is saved first.
 * 3. The engine (engine.ts) works on the batches, the oldest first, with a run (run.ts) for each. slots.ts limits what is in flight.
 * 4. plan.ts reads the account's reports once per list, and decides which pages to create, to regenerate, or to leave as they are.
 * 5. work.ts requests a page: request.ts sends it through the client (requests.ts), with a line in the log before and after.
 * 6. The result is sent to the flow, and delivery.ts notes that. streaks.ts holds failures until they are certainly not the account's.
 * 7. If nothing can be saved, disk.ts stops all batches until it can (trouble.ts). A batch that is done is removed, or kept for msg.retry.
 */
import { cancelled, SeoError } from "../errors.js";
import { type Clock, clock as realClock } from "./clock.js";
import { createEngine, type Engine, type EngineOptions } from "./engine.js";
import type { Settings } from "./list.js";
import type { Progress } from "./progress.js";
import type { Requests } from "./requests.js";
import type { Row } from "./rows.js";
import type { Run } from "./run.js";
import type { Store } from "./store.js";
import { Trouble } from "./trouble.js";

export interface AuditOptions extends Omit<EngineOptions, "store" | "clock" | "requests"> {
  /** Makes the requests of one engine, which cancels them at its end. */
  connect(): Requests;
  /** Opens the place where the jobs are kept. `lost` is called if they are taken over. */
  open(lost: (error: SeoError) => void): Promise<Store>;
  clock?: Clock;
}

/** A list of pages, as a message brings it. */
export interface NewList {
  batch: string;
  settings: Settings;
  rows: Iterable<Row>;
}

interface Parts {
  store: Store;
  engine: Engine;
}

const MINUTE = 60_000;
const SOON = 1000;

/** The batches of one node. If the place where they are kept cannot be opened, this is retried: a server soon, files in a minute. */
export function createAudit({ open, connect, clock = realClock, ...surroundings }: AuditOptions) {
  const { failed, recovered } = surroundings;
  let closed = false;
  let cancel = () => {};
  /** The code of the error that was told. */
  let told: string | undefined;
  let parts: Parts | undefined;
  let opened = start();
  let turn: Promise<unknown> = Promise.resolve();

  async function load(): Promise<Parts> {
    let gone: SeoError | undefined;
    const store = await open((error) => {
      if (gone) return;
      gone = error;
      if (!parts) return;
      failed(error);
      parts.engine.lose(error);
      told = error.code;
      opened = Promise.reject(error);
      opened.catch(() => {});
      void end()
        .catch(() => {})
        .finally(() => later());
    });
    if (closed || gone) {
      await store.close();
      throw gone ?? cancelled;
    }
    recovered?.(true);
    const engine = createEngine({ ...surroundings, requests: connect(), store, clock });
    for (const { name, error } of store.broken) failed(error, name);
    for (const batch of store.batches) engine.add(batch);
    told = undefined;
    parts = { store, engine };
    return parts;
  }

  function start(): Promise<Parts> {
    const loading = load();
    loading.catch((cause) => {
      if (closed) return;
      const error = cause instanceof SeoError ? cause : new SeoError("SEO_INPUT", String(cause));
      if (told !== error.code) failed(error);
      told = error.code;
      later(error instanceof Trouble && error.kind === "server" ? SOON : MINUTE);
    });
    return loading;
  }

  function later(ms = MINUTE): void {
    if (closed) return;
    cancel = clock.later(ms, () => {
      opened = start();
    });
  }

  /** Does not wait for what is not open yet: that ends by itself. */
  async function end(): Promise<void> {
    const { engine, store } = parts ?? {};
    parts = undefined;
    // What a message saves is saved before the store closes, which would not know of it.
    await Promise.all([engine?.close(), closed && engine && turn]);
    await store?.close();
  }

  /** Messages change batches one after the other. */
  function inTurn<Value>(work: (parts: Parts) => Promise<Value>): Promise<Value> {
    const result = turn.then(async () => {
      if (closed) throw cancelled;
      return work(await opened);
    });
    turn = result.catch(() => {});
    return result;
  }

  /** The batches of a name, or all. One that was reset has no name any more. */
  const runsOf = ({ engine }: Parts, name?: string) =>
    [...engine.runs].filter(({ batch }) => !batch.dropped() && (name === undefined || batch.name === name));

  function* untilClosed(rows: Iterable<Row>): Generator<Row> {
    for (const row of rows) {
      if (closed) throw cancelled;
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
    add: ({ batch: name, settings, rows: all }: NewList) =>
      inTurn(async (parts) => {
        const { engine, store } = parts;
        const trouble = engine.disk.trouble();
        if (trouble) throw new Trouble(trouble.kind, `The list was not saved: ${trouble.message}`, trouble.details);
        for (const one of store.broken) if (one.name === name) throw one.error;
        const rows = untilClosed(all);
        const [run] = runsOf(parts, name);
        if (run)
          return engine.change(run, async () => {
            const count = await run.batch.join(settings, rows);
            // Not with new pages, because a flow that adds a page at a time would send a probe for each.
            if (count === 0 && run.stopped()) run.setDue();
            return count;
          });
        await Promise.allSettled(engine.endings);
        const batch = await store.create(name, settings, rows);
        engine.add(batch);
        return batch.total();
      }),

    /** These return how many batches were meant. Without a name, all are. */
    pause: (name?: string) => changeAll(name, async ({ batch }) => batch.paused() || batch.pause(true)),

    async resume(name?: string) {
      const count = await changeAll(name, async (run) => {
        if (run.batch.paused()) await run.batch.pause(false);
        if (!run.stopped()) run.goOn();
        run.setDue();
      });
      await parts?.engine.disk.retry();
      return count;
    },

    /** Has failed and uncertain pages requested again. */
    retry: (name?: string) =>
      inTurn(async (parts) => {
        let count = await changeRuns(parts, name, ({ batch }) => batch.retry());
        await Promise.allSettled(parts.engine.endings);
        for await (const batch of parts.store.reopen(name)) {
          count++;
          parts.engine.add(batch);
        }
        return count;
      }),

    /** Drops waiting pages. The result of a page in flight is still sent. */
    reset: (name?: string) =>
      inTurn(async (parts) => {
        const count = await changeRuns(parts, name, ({ batch }) => batch.reset());
        await Promise.allSettled(parts.engine.endings);
        return count + (await parts.store.forget(name));
      }),

    /** How far each batch is that is not finished. */
    progress: async (): Promise<Progress[]> => runsOf(await opened).map((run) => run.progress()),

    /** Begins nothing more, and waits for the responses to what is in flight. */
    drain: async () => parts?.engine.drain(),

    /** Ends everything at once; the progress says why. The next audit continues. Returns how many rows wait for it. */
    async close(why?: SeoError): Promise<number> {
      closed = true;
      cancel();
      if (why) parts?.engine.lose(why);
      const waiting = parts ? runsOf(parts).reduce((sum, run) => sum + run.progress().waiting, 0) : 0;
      await end();
      return waiting;
    },
  };
}

export type Audit = ReturnType<typeof createAudit>;

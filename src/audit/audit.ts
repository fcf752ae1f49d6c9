import { cancelled, SeoError } from "../errors.js";
import { type Clock, clock as realClock } from "./clock.js";
import { createEngine, type Engine, type Surroundings } from "./engine.js";
import type { Settings } from "./list.js";
import type { Progress } from "./progress.js";
import { type Row, readRows } from "./rows.js";
import type { Store } from "./store.js";
import type { Trouble } from "./trouble.js";

export interface AuditOptions extends Omit<Surroundings, "store" | "clock"> {
  /** Opens the place where the jobs are kept. `lost` is called if another process takes it over. */
  open(lost: (error: Trouble) => void): Promise<Store>;
  clock?: Clock;
}

/** A list of pages, as a message brings it. */
export interface NewList {
  batch: string;
  settings: Settings;
  pages: unknown;
  /** Where the pages came from, for error messages: `msg.payload`. */
  from?: string;
}

interface Parts {
  store: Store;
  engine: Engine;
  broken: Set<Store["broken"][number]>;
}

const MINUTE = 60_000;

/** The batches of one node. If the place where they are kept cannot be opened, that is tried again every minute. */
export function createAudit({ open, clock = realClock, ...surroundings }: AuditOptions) {
  const { failed } = surroundings;
  let closed: "close" | "remove" | undefined;
  let cancel = () => {};
  let told = false;
  let parts: Parts | undefined;
  let opened = start();
  let turn: Promise<unknown> = Promise.resolve();

  async function load(): Promise<Parts> {
    const store = await open((error) => {
      if (!closed) failed(error);
      void end().finally(later);
    });
    if (closed) {
      await store[closed]();
      throw cancelled;
    }
    const engine = createEngine({ ...surroundings, store, clock });
    const broken = new Set(store.broken);
    for (const { name, error } of broken) failed(error, name);
    for (const batch of store.batches) engine.add(batch);
    told = false;
    parts = { store, engine, broken };
    return parts;
  }

  function start(): Promise<Parts> {
    const loading = load();
    loading.catch((error) => {
      if (closed) return;
      if (!told) failed(error instanceof SeoError ? error : new SeoError("SEO_INPUT", String(error)));
      told = true;
      later();
    });
    return loading;
  }

  function later(): void {
    if (closed) return;
    cancel = clock.later(MINUTE, () => {
      opened = start();
    });
  }

  /** Does not wait for what is not open yet: that ends by itself. */
  async function end(how: "close" | "remove" = "close"): Promise<void> {
    const { engine, store } = parts ?? {};
    parts = undefined;
    await engine?.close();
    await store?.[how]();
  }

  function shut(how: "close" | "remove"): Promise<unknown> {
    closed = how;
    cancel();
    return Promise.all([parts && turn, end(how)]);
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
    [...engine.runs].filter(({ batch }) => !batch.dropped && (name === undefined || batch.name === name));

  function* untilClosed(rows: Iterable<Row>): Generator<Row> {
    for (const row of rows) {
      if (closed) throw cancelled;
      yield row;
    }
  }

  return {
    /**
     * Adds a list: as a new batch, or the pages that are new to a batch that is not finished. Resolves when it is on disk,
     * with the number of rows. Rejects if it cannot be read or saved.
     */
    add: ({ batch: name, settings, pages, from }: NewList) =>
      inTurn(async (parts) => {
        const { engine, store, broken } = parts;
        for (const one of broken) if (one.name === name) throw one.error;
        const rows = untilClosed(readRows(pages, from));
        const [run] = runsOf(parts, name);
        if (!run || run.over()) {
          const batch = await store.create(name, settings, rows);
          engine.add(batch);
          if (run) engine.runs.delete(run);
          // If that fails, it is removed when the jobs are opened again.
          await run?.batch.remove().catch(() => {});
          return batch.total;
        }
        const added = await engine.during(run, () => run.batch.join(settings, rows));
        engine.reject(run);
        run.changed();
        return added;
      }),

    /** Each returns the number of batches that were meant. Without a name, all are. */
    pause: (name?: string) =>
      inTurn(async (parts) => {
        const runs = runsOf(parts, name).filter((run) => !run.over());
        for (const run of runs) {
          if (!run.batch.paused) await run.batch.pause(true);
          run.changed();
        }
        return runs.length;
      }),

    resume: (name?: string) =>
      inTurn(async (parts) => {
        const runs = runsOf(parts, name).filter((run) => !run.over());
        for (const run of runs) {
          if (run.batch.paused) await run.batch.pause(false);
          if (run.trouble) parts.engine.probe(run);
          else run.measureAnew();
          run.changed();
        }
        await parts.engine.disk.retry();
        parts.engine.fill();
        return runs.length;
      }),

    /** Has failed and uncertain pages requested again. */
    retry: (name?: string) =>
      inTurn(async (parts) => {
        const runs = runsOf(parts, name);
        for (const run of runs) {
          if ((await parts.engine.during(run, run.batch.retry)) === 0) continue;
          run.restart();
          parts.engine.reject(run);
        }
        return runs.length;
      }),

    /** Drops what waits. What is in flight is told. */
    reset: (name?: string) =>
      inTurn(async (parts) => {
        const { engine, broken } = parts;
        const lost = [...broken].filter((one) => name === undefined || one.name === name);
        for (const one of lost) {
          await one.remove();
          broken.delete(one);
        }
        const runs = runsOf(parts, name);
        for (const run of runs) {
          await run.batch.reset();
          if (run.over()) {
            engine.runs.delete(run);
            await run.batch.remove();
          }
        }
        engine.fill();
        return runs.length + lost.length;
      }),

    /** How far each batch is that is not finished. */
    async progress(): Promise<Progress[]> {
      return runsOf(await opened)
        .filter((run) => !run.over())
        .map((run) => run.progress());
    },

    /** Ends everything at once. The next audit goes on. */
    close: () => shut("close"),

    /** Ends everything for good. Returns how many rows were not done. */
    async remove(): Promise<number> {
      const runs = parts ? runsOf(parts).filter((run) => !run.over()) : [];
      await shut("remove");
      return runs.reduce((sum, run) => sum + run.progress().waiting, 0);
    },
  };
}

export type Audit = ReturnType<typeof createAudit>;

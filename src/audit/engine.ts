import { setTimeout as sleep } from "node:timers/promises";
import { SeoError } from "../errors.js";
import type { Clock } from "./clock.js";
import { createDisk } from "./disk.js";
import type { Progress } from "./progress.js";
import { createRun, type Run } from "./run.js";
import { createSlots, type Hold } from "./slots.js";
import type { Batch, Claim, Store } from "./store.js";
import { Trouble, taken } from "./trouble.js";
import { createWork, type Tools } from "./work.js";

export interface EngineOptions extends Omit<Tools, "disk" | "isClosed"> {
  store: Store;
  /** So many requests are in flight at most. */
  share: number;
  clock: Clock;
  progress(progress: Progress): void;
  /** An error that a person must see; it is reported once. */
  failed(error: SeoError, batch?: string): void;
  /** A batch waits until its account can go on, also if that was reported. */
  stopped?(error: SeoError): void;
  /** The jobs can be kept again. `opened`: they were read again, and some batches may be gone. */
  recovered?(opened: boolean): void;
}

type Job = (hold: Hold) => Promise<void>;

/** For each slot, so many pages can be in work without a request in flight: most of them look for a response that was lost. */
const MOST_ASIDE = 10;
/** Milliseconds: for so long, responses are waited for, and so often they are looked for. */
const DRAIN = 10_000;
const BETWEEN = 50;
/** Milliseconds after which it is noted what was delivered. */
const NOTED = 200;

/** Works through batches, the oldest first. One request per page and batch, whatever happens. */
export function createEngine({ store, share, clock, ...surroundings }: EngineOptions) {
  const runs = new Set<Run>();
  const jobs = new Set<Promise<void>>();
  /** Batches whose final progress was told, and that are not removed yet. */
  const endings = new Set<Promise<void>>();
  const slots = createSlots(share, fill);
  /** Nothing is begun any more: this engine was closed, or its service. */
  let closed = false;
  let draining = false;
  /** Why no batch can go on until the store is opened again. */
  let gone: SeoError | undefined;
  let filling: Promise<void> | undefined;
  let more = false;
  const disk = createDisk(clock, store, {
    failed: surroundings.failed,
    changed() {
      for (const run of runs) run.changed();
      if (!disk.trouble()) surroundings.recovered?.(false);
      fill();
    },
  });
  const work = createWork({ ...surroundings, disk, isClosed: () => closed });

  function fail(run: Run, cause: unknown): void {
    if (closed || cause === taken) return;
    if (cause instanceof Trouble) disk.stall(cause);
    else if (!(cause instanceof SeoError)) run.stop(new SeoError("SEO_INPUT", `The batch cannot continue: ${cause}`));
    else if (cause.code !== "SEO_CANCELLED") run.stop(cause);
    // The service was closed, and this engine will be.
    else if (!run.batch.dropped()) closed = true;
  }

  /** Does something for a batch, which is not finished before. */
  function start(run: Run, job: () => Promise<void>): void {
    run.active++;
    const ended = job()
      .catch((cause: unknown) => fail(run, cause))
      .finally(() => {
        run.active--;
        jobs.delete(ended);
        fill();
      });
    jobs.add(ended);
  }

  /** What is to be done next for a batch. */
  async function next(run: Run): Promise<Job | undefined> {
    const { batch } = run;
    if (batch.paused() || (run.stopped() && !run.due)) return undefined;
    const streak = batch.streak();
    const begun = streak?.before ? undefined : await batch.take("begun");
    if (begun) return pageOf(run, begun);
    const wanted = run.planning ? undefined : batch.unplanned();
    if (wanted) {
      run.planning = true;
      run.begin();
      return async () => {
        // Otherwise another plan could begin before the failure of this one has stopped the batch.
        await work.plan(run, wanted).catch((cause: unknown) => fail(run, cause));
        run.planning = false;
      };
    }
    if (slots.aside() >= share * MOST_ASIDE || (run.stopped() && run.planning)) return undefined;
    const fresh = await batch.take("new");
    if (fresh) return pageOf(run, fresh);
    if (!streak?.before || run.active > 0) return undefined;
    const [held] = streak.pages;
    if (held !== undefined) await disk.keep(() => batch.again(held));
    const last = await batch.take(held === undefined ? "begun" : "new");
    return last && pageOf(run, last);
  }

  /** The first page after a batch was stopped is the probe, unless the batch was stopped while the page was taken. */
  function pageOf(run: Run, claim: Claim): Job {
    if (run.stopped() && run.due) run.probe = claim.page;
    run.begin();
    return (hold) => work.page(run, claim, hold);
  }

  function isOver({ batch, progress }: Run): boolean {
    const { done, total } = progress();
    return batch.dropped() || done === total;
  }

  /** Nothing is in flight: tells the last failures if nothing else is left, and at the end that the batch is finished. */
  async function settle(run: Run): Promise<void> {
    const { batch } = run;
    if (isOver(run)) return finish(run);
    const { done, total } = run.progress();
    if (run.stopped() || batch.paused()) return;
    const last = batch.held().reduce((sum, page) => sum + batch.untold(page).length, 0);
    if (done + last === total) await disk.keep(batch.letGo);
  }

  async function finish(run: Run): Promise<void> {
    const { batch } = run;
    const last = await disk.keep(batch.last);
    // Meanwhile, a message can change the batch.
    if (closed || run.active > 0 || !isOver(run)) return;
    const { failed, uncertain } = batch.counts;
    runs.delete(run);
    run.end(last);
    const complete = batch.dropped() || failed + uncertain === 0;
    const ending = disk.keep(complete ? batch.remove : batch.finish).finally(() => endings.delete(ending));
    endings.add(ending);
    return ending;
  }

  async function begin(run: Run): Promise<void> {
    if (run.active === 0 && !disk.trouble()) await settle(run);
    while (!closed && !draining && !disk.trouble() && runs.has(run)) {
      const hold = slots.take();
      if (!hold) break;
      let job: Job | undefined;
      try {
        job = await next(run);
      } finally {
        if (!job) hold.end();
      }
      if (!job) break;
      const chosen = job;
      start(run, () => chosen(hold).finally(hold.end));
    }
    // Now it is certain whether anything else is in flight.
    if (run.lost.size > 0) run.changed();
  }

  async function beginAll(): Promise<void> {
    await Promise.resolve();
    while (more && !closed) {
      more = false;
      for (const run of runs) await begin(run).catch((cause) => fail(run, cause));
    }
    filling = undefined;
  }

  /** Begins as much as can be in flight. */
  function fill(): void {
    more = true;
    filling ??= beginAll();
  }

  return {
    runs,
    endings,
    disk,
    fill,

    /** Works on a batch. */
    add(batch: Batch): void {
      if (closed) return;
      const run = createRun(batch, { ...surroundings, clock, stalled: () => gone ?? disk.trouble(), due: fill });
      runs.add(run);
      surroundings.requests.claim(batch.reports);
      start(run, () => work.reject(run));
      run.changed();
    },

    /** Changes a batch, which is not finished before, and continues it. */
    async change<Value>(run: Run, how: () => Promise<Value>): Promise<Value> {
      run.active++;
      try {
        return await how();
      } finally {
        run.active--;
        if (!closed) start(run, () => work.reject(run));
        run.changed();
      }
    },

    /** The store is gone: tells the progress of its batches. */
    lose(error: SeoError): void {
      gone = error;
      for (const run of runs) run.changed();
    },

    /** Begins nothing more, waits for the responses to what is in flight, and until their delivery is noted. */
    async drain(): Promise<void> {
      draining = true;
      for (const end = clock.now() + DRAIN; slots.inFlight() > 0 && clock.now() < end; ) await sleep(BETWEEN);
      await sleep(NOTED);
    },

    /** Ends what is in flight; its effects are looked for by the next engine. */
    async close(): Promise<void> {
      closed = true;
      disk.close();
      surroundings.requests.cancel();
      await filling;
      await Promise.all(jobs);
      for (const run of runs) run.close();
    },
  };
}

export type Engine = ReturnType<typeof createEngine>;

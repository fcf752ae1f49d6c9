import { setTimeout as sleep } from "node:timers/promises";
import { SeoError } from "../errors.js";
import type { Batch } from "./batch.js";
import { createDisk, type Disk } from "./disk.js";
import type { Requests } from "./requests.js";
import { type Job, Run, type RunOptions } from "./run.js";
import { listOf, stageOf } from "./state.js";
import { Trouble, taken } from "./trouble.js";
import { outdated, type Tools, Work } from "./work.js";

export interface EngineOptions extends Pick<RunOptions, "clock" | "progress" | "stopped">, Pick<Tools, "result"> {
  /** Makes the requests of one engine, which cancels them at its end; `changed` is called when a response is lost or found. */
  connect(changed: () => void): Requests;
  /** So many requests are in flight at most. */
  share: number;
  /** An error that a person must see; it is reported once. */
  failed(error: SeoError, batch?: string): void;
  /** The journals can be kept again. `opened`: they were read again, and some batches may be gone. */
  recovered?(opened: boolean): void;
  store: Parameters<typeof createDisk>[1];
}

/** For each request in flight, so many lost responses can be looked for. */
const MOST_LOST = 10;
/** So many failures are reported at once. */
const MOST_REPORTED = 100;
/** Milliseconds: for so long, responses are waited for, and so often they are looked for. */
const DRAIN = 10_000;
const BETWEEN = 50;
/** Milliseconds after which it is noted what was delivered. */
const NOTED = 200;

const isInFlight = ({ inFlight, task }: Job) => inFlight && !task.isLost;

/** Works through batches, the oldest first. One request per page and batch, whatever happens. */
export class Engine {
  readonly runs = new Set<Run>();
  /** Batches whose final progress was reported, and that are not removed yet. */
  readonly endings = new Set<Promise<void>>();
  readonly disk: Disk;
  readonly #options: EngineOptions;
  readonly #requests: Requests;
  readonly #work: Work;
  readonly #working = new Set<Promise<void>>();
  /** Nothing is begun or reported any more: this engine was closed, or its service. */
  #closed = false;
  #draining = false;
  /** Why no batch can go on until the store is opened again. */
  #gone: SeoError | undefined;
  #filling = false;

  constructor(options: EngineOptions) {
    const { connect, store, clock, failed, recovered, result } = options;
    const changed = () => {
      for (const run of this.runs) run.reporter.changed();
      if (!this.disk.trouble()) recovered?.(false);
      this.#fill();
    };
    this.#options = options;
    this.disk = createDisk(clock, store, { failed, changed });
    this.#requests = connect(() => {
      for (const run of this.runs) if (run.jobs.size > 0) run.reporter.changed();
      this.#fill();
    });
    const { disk } = this;
    this.#work = new Work({
      requests: this.#requests,
      disk,
      isClosed: () => this.#closed,
      result,
      freed: () => this.#fill(),
    });
  }

  /** Works on a batch. */
  add(batch: Batch): void {
    if (this.#closed) return;
    const { clock, progress, failed, stopped } = this.#options;
    const stalled = () => this.#gone ?? this.disk.trouble();
    const due = () => this.#fill();
    const run = new Run(batch, { clock, progress, failed, stopped, requests: this.#requests, stalled, due });
    this.runs.add(run);
    this.#requests.claim(batch.reports);
    run.reporter.changed();
    this.#fill();
  }

  /** Changes a batch, which is not finished before, and continues it. */
  async change<Value>(run: Run, how: () => Promise<Value>): Promise<Value> {
    run.active++;
    try {
      return await how();
    } finally {
      run.active--;
      run.reporter.changed();
      this.#fill();
    }
  }

  /** The store is gone: reports the progress of its batches. */
  lose(error: SeoError): void {
    this.#gone = error;
    for (const run of this.runs) run.reporter.changed();
  }

  /** Begins nothing more, waits for the responses to what is in flight, and until their delivery is noted. */
  async drain(): Promise<void> {
    const { clock } = this.#options;
    this.#draining = true;
    for (const end = clock.now() + DRAIN; this.#count(isInFlight) > 0 && clock.now() < end; ) await sleep(BETWEEN);
    await sleep(NOTED);
  }

  /** Ends what is in flight; its effects are looked for by the next engine. */
  async close(): Promise<void> {
    this.#closed = true;
    this.disk.close();
    this.#requests.cancel();
    await Promise.all(this.#working);
    for (const run of this.runs) run.close();
  }

  #fail(run: Run, cause: unknown): void {
    if (this.#closed || cause === taken || cause === outdated) return;
    if (cause instanceof Trouble) this.disk.stall(cause);
    else if (!(cause instanceof SeoError)) run.stop(new SeoError("SEO_INPUT", `The batch cannot continue: ${cause}`));
    else if (cause.code !== "SEO_CANCELLED") run.stop(cause);
    // The service was closed, and this engine will be.
    else this.#closed = true;
  }

  #start(run: Run, work: () => Promise<unknown>, ended: () => void): void {
    const job = work()
      .catch((cause: unknown) => this.#fail(run, cause))
      .then(() => {
        ended();
        this.#working.delete(job);
        this.#fill();
      });
    this.#working.add(job);
  }

  #beginPage(run: Run, page: number, needsRequest: boolean): void {
    const job = run.begin(this.#requests.createTask(), page, needsRequest);
    let again = false;
    run.batch.take(page);
    const work = async () => {
      again = await this.#work.page(run, page, job);
    };
    this.#start(run, work, () => {
      run.batch.release(page, again);
      run.finish(job);
    });
  }

  #beginPlan(run: Run, list: number): void {
    const job = run.begin({});
    this.#start(
      run,
      () => this.#work.plan(run, list),
      () => run.finish(job),
    );
  }

  async #finish(run: Run): Promise<void> {
    await this.disk.keep(() => run.batch.check());
    // Meanwhile, a list can have been added.
    if (this.#closed || !run.isOver() || !this.runs.delete(run)) return;
    run.close();
    run.reporter.end(run.batch.isUnchanged);
    const ending = this.disk.keep(() => run.batch.finish()).finally(() => this.endings.delete(ending));
    this.endings.add(ending);
    await ending;
  }

  #beginEnd(run: Run): void {
    run.isEnding = true;
    this.#start(
      run,
      () => this.#finish(run),
      () => {
        run.isEnding = false;
      },
    );
  }

  #count(matches: (job: Job) => boolean): number {
    return [...this.runs].reduce((sum, { jobs }) => sum + [...jobs].filter(matches).length, 0);
  }

  /** Begins the next job of a batch. Returns whether there may be more. */
  #beginNext(run: Run): boolean {
    const { batch } = run;
    const { state } = batch;
    const { share } = this.#options;
    const next = batch.next();
    if (!next) return false;
    const { page, isLater } = next;
    const needsRequest = state.ended.get(page)?.error === undefined;
    if (needsRequest ? !run.isOpen() : run.reporting() >= MOST_REPORTED) return false;
    // What earlier processes have sent is looked for at once, or other pages' lost responses could not be explained.
    const isBegun = stageOf(state, page) !== "waiting";
    if (!isBegun) {
      const isLost = ({ task }: Job) => task.isLost === true;
      if (state.paused || this.#count(isInFlight) >= share || this.#count(isLost) >= share * MOST_LOST) return false;
      run.goOnIfOnlyLater(isLater);
    }
    if (isBegun || batch.settingsOf(page).planned) this.#beginPage(run, page, needsRequest);
    else if (run.isPlanning()) return false;
    else this.#beginPlan(run, listOf(state, page));
    return true;
  }

  /** Begins as much as can be in flight. */
  #fill(): void {
    if (this.#filling || this.#closed) return;
    this.#filling = true;
    queueMicrotask(() => {
      this.#filling = false;
      for (const run of this.runs) {
        if (run.isOver() && !run.isEnding && !this.disk.trouble()) this.#beginEnd(run);
        while (!this.#closed && !this.#draining && !this.disk.trouble() && this.#beginNext(run));
      }
    });
  }
}

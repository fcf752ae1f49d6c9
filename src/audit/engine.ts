import { setTimeout as sleep } from "node:timers/promises";
import { SeoError } from "../errors.js";
import type { Batch, Store } from "./batch.js";
import { Disk } from "./disk.js";
import type { Requests } from "./requests.js";
import { type Job, outdated, Run, type RunOptions } from "./run.js";
import { Trouble, taken } from "./trouble.js";

export interface EngineOptions extends Pick<RunOptions, "clock" | "progress" | "stopped" | "result"> {
  /** Makes the requests of one engine, which cancels them at its end; `changed` is called when a response is lost or found. */
  connect(changed: () => void): Requests;
  /** So many requests are in flight at most. */
  share: number;
  /** An error that a person must see; it is reported once. */
  failed(error: SeoError, batch?: string): void;
  /** The journals can be kept again. `opened`: they were read again, and some batches may be gone. */
  recovered?(opened: boolean): void;
}

/** For each request in flight, so many lost responses can be looked for. */
const MOST_LOST = 10;
/** Milliseconds: for so long, responses are waited for, and so often they are looked for. */
const DRAIN = 10_000;
const BETWEEN = 50;
/** Milliseconds after which it is noted what was delivered. */
const NOTED = 200;

const isInFlight = ({ inFlight, isLost }: Job) => inFlight && !isLost;
const isLost = (job: Job) => job.isLost === true;

/** Works through the batches of a store, the oldest first. One request per page and batch, whatever happens. */
export class Engine {
  readonly store: Store;
  readonly runs = new Set<Run>();
  readonly disk: Disk;
  readonly #options: EngineOptions;
  readonly #requests: Requests;
  readonly #working = new Set<Promise<void>>();
  /** Batches whose end is being reported, and which are then removed or kept. */
  readonly #endings = new Map<Run, Promise<void>>();
  /** Nothing is begun or reported any more: this engine was closed, or its service. */
  #closed = false;
  #draining = false;
  /** Why no batch can go on until the store is opened again. */
  #gone: SeoError | undefined;
  #filling = false;

  constructor(store: Store, options: EngineOptions) {
    const { connect, clock, failed, recovered } = options;
    const changed = () => {
      for (const run of this.runs) run.reporter.changed();
      if (!this.disk.trouble) recovered?.(false);
      this.#fill();
    };
    this.store = store;
    this.#options = options;
    this.disk = new Disk({ clock, store, failed, changed });
    this.#requests = connect(() => {
      for (const run of this.runs) if (run.jobs.size > 0) run.reporter.changed();
      this.#fill();
    });
    for (const { name, error } of store.broken) failed(error, name);
    for (const batch of store.batches) this.add(batch);
  }

  /** The batches of a name, or all. One that was reset has no name any more. */
  named(name?: string): Run[] {
    const isNamed = ({ batch: { state } }: Run) => !state.dropped && (name === undefined || state.name === name);
    return [...this.runs].filter(isNamed);
  }

  /** Works on a batch. */
  add(batch: Batch): void {
    if (this.#closed) return;
    const run = new Run(batch, {
      ...this.#options,
      requests: this.#requests,
      disk: this.disk,
      isClosed: () => this.#closed,
      stalled: () => this.#gone ?? this.disk.trouble,
      fill: () => this.#fill(),
    });
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

  /** Resolves when batches that are over are removed, or kept. */
  async ended(): Promise<void> {
    await Promise.all(this.#endings.values());
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

  /** Ends what is in flight; its effects are looked for by the next engine. `saved`: what messages still save. */
  async close(saved?: Promise<unknown>): Promise<void> {
    this.#closed = true;
    this.disk.close();
    this.#requests.cancel();
    await Promise.all(this.#working);
    for (const run of this.runs) run.close();
    // The store would not know of what is saved later.
    await saved;
    await this.store.close();
  }

  #fail({ pause }: Run, cause: unknown): void {
    if (this.#closed || cause === taken || cause === outdated) return;
    if (cause instanceof Trouble) this.disk.stall(cause);
    else if (!(cause instanceof SeoError)) pause.stop(new SeoError("SEO_INPUT", `The batch cannot continue: ${cause}`));
    else if (cause.code !== "SEO_CANCELLED") pause.stop(cause);
    // The service was closed, and this engine will be.
    else this.#closed = true;
  }

  #start(run: Run, work: Promise<unknown>, ended: () => unknown): Promise<void> {
    const working = work
      .catch((cause: unknown) => this.#fail(run, cause))
      .then(() => {
        ended();
        this.#working.delete(working);
        this.#fill();
      });
    this.#working.add(working);
    return working;
  }

  async #finish(run: Run): Promise<void> {
    await this.disk.keep(() => run.batch.check());
    // Meanwhile, a list can have been added.
    if (this.#closed || !run.isOver() || !this.runs.delete(run)) return;
    run.close();
    run.reporter.end(run.batch.isUnchanged);
    await this.disk.keep(() => run.batch.finish());
  }

  #count(matches: (job: Job) => boolean): number {
    return [...this.runs].reduce((sum, { jobs }) => sum + [...jobs].filter(matches).length, 0);
  }

  /** Begins a batch's next job. Returns whether there may be more. */
  #beginNext(run: Run): boolean {
    const { share } = this.#options;
    const job = run.begin(() => this.#count(isInFlight) < share && this.#count(isLost) < share * MOST_LOST);
    if (job) void this.#start(run, run.work(job), () => run.finish(job));
    return job !== undefined;
  }

  /** Begins as much as can be in flight. */
  #fill(): void {
    if (this.#filling || this.#closed) return;
    this.#filling = true;
    queueMicrotask(() => {
      this.#filling = false;
      for (const run of this.runs) {
        if (run.isOver() && !this.#endings.has(run) && !this.disk.trouble) {
          const ended = () => this.#endings.delete(run);
          this.#endings.set(run, this.#start(run, this.#finish(run), ended));
        }
        while (!this.#closed && !this.#draining && !this.disk.trouble && this.#beginNext(run));
      }
    });
  }
}

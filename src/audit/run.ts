import { cancelled, SeoError } from "../errors.js";
import type { Batch } from "./batch.js";
import type { Clock } from "./clock.js";
import type { Disk } from "./disk.js";
import type { Ended, PageRequest } from "./entries.js";
import { type End, requestPage, showReport } from "./page.js";
import { Pause, type PauseOptions } from "./pause.js";
import { makePlan } from "./plan.js";
import { type Progress, Reporter } from "./progress.js";
import type { Requests } from "./requests.js";
import { urlOf } from "./rows.js";
import { done, inputOf, listOf, rowsOf, stageOf, total } from "./state.js";
import { reasonOf, Trouble } from "./trouble.js";

/** One row's result. */
export interface Result extends Omit<Ended, "report"> {
  batch: string;
  index: number;
  /** The row as it was given, without a password. */
  input: unknown;
  /** The report, or null. */
  record: unknown;
  /** The result may have been sent before, by a process that died. */
  repeated?: true;
}

export interface RunOptions extends Pick<PauseOptions, "failed" | "stopped"> {
  clock: Clock;
  requests: Requests;
  disk: Disk;
  result(result: Result): void;
  progress(progress: Progress): void;
  /** Nothing is sent or reported any more. */
  isClosed(): boolean;
  /** Why no batch can go on. */
  stalled(): SeoError | undefined;
  /** More can begin. */
  fill(): void;
}

/** A page that is worked on, or the plan of a list. */
export interface Job {
  page?: number;
  list: number;
  /** The response is lost, and looked for. */
  isLost?: boolean;
  /** The job counts among the requests that can be in flight. */
  inFlight: boolean;
  number: number;
  /** The page is to wait behind all others. */
  isLast: boolean;
}

/** So many failures are reported at once. */
const MOST_REPORTED = 100;

/** A page is not sent: meanwhile, a message has changed its batch. */
export const outdated = new SeoError("SEO_CANCELLED", "The batch was changed.");

/** A batch that is worked on: what is in flight, and what is done next. */
export class Run {
  readonly batch: Batch;
  readonly jobs = new Set<Job>();
  readonly pause: Pause;
  readonly reporter: Reporter;
  /** Messages that change it. */
  active = 0;
  readonly #options: RunOptions;

  constructor(batch: Batch, options: RunOptions) {
    const { clock, failed, stopped, requests, fill, stalled, progress } = options;
    const { state } = batch;
    this.batch = batch;
    this.#options = options;
    const changed = () => this.reporter.changed();
    this.pause = new Pause(batch.failed, { name: state.name, clock, failed, stopped, changed, due: fill });
    this.reporter = new Reporter({
      state,
      clock,
      paused: () => {
        if (state.paused) return { reason: "message", message: "Paused by msg.pause." };
        const error = this.pause.error ?? stalled();
        return error && { reason: reasonOf(error), message: error.message };
      },
      jobs: this.jobs,
      wait: requests.waitingFor,
      send: progress,
    });
  }

  isOver(): boolean {
    const { state } = this.batch;
    const isDone = done(state) === total(state) || (state.dropped && this.batch.next() === undefined);
    return this.jobs.size === 0 && this.active === 0 && isDone;
  }

  /** Begins the next job, if there is one. `hasRoom`: another page can be requested. */
  begin(hasRoom: () => boolean): Job | undefined {
    const { batch, pause } = this;
    const { state } = batch;
    const next = batch.next();
    if (!next) return undefined;
    const { page, isLater } = next;
    const list = listOf(state, page);
    // Requests of earlier processes are looked for at once, or other pages' lost responses could not be explained.
    const isNew = stageOf(state, page) === "waiting";
    const inFlight = state.ended.get(page)?.error === undefined;
    const isFull = () => [...this.jobs].filter((job) => !job.inFlight).length >= MOST_REPORTED;
    if (inFlight ? !pause.isOpen() : isFull()) return undefined;
    if (isNew && (state.paused || !hasRoom())) return undefined;
    // Nothing is left but pages that have failed before: they would be probed for ever.
    if (isNew && isLater && this.jobs.size === 0) pause.end();
    const plans = isNew && !state.lists[list]?.planned;
    if (plans && [...this.jobs].some((job) => job.page === undefined)) return undefined;
    const job: Job = { list, inFlight, number: inFlight ? pause.begin() : 0, isLast: false };
    if (!plans) {
      job.page = page;
      batch.take(page);
    }
    this.jobs.add(job);
    return job;
  }

  /** Does a job. Rejects if the batch cannot go on. */
  async work(job: Job): Promise<void> {
    const { page } = job;
    if (page === undefined) return this.#plan(job.list);
    const { state } = this.batch;
    const ended = state.ended.get(page);
    if (!ended) return this.#request(page, job);
    this.#report(page, { ended, record: await showReport(this.#options.requests, ended) });
  }

  finish(job: Job): void {
    this.jobs.delete(job);
    if (job.page !== undefined) this.batch.release(job.page, job.isLast);
    this.pause.finish(job.number);
  }

  async #request(page: number, job: Job): Promise<void> {
    const { batch } = this;
    const { state } = batch;
    const { requests, disk, fill } = this.#options;
    const settings = batch.settingsOf(page);
    const waits = () => batch.write({ type: "waits", page });
    let refused: unknown;
    async function sending(request: PageRequest): Promise<void> {
      try {
        if (state.dropped || state.paused || batch.settingsOf(page) !== settings) throw outdated;
        await disk.try(() => batch.write({ type: "sent", page, ...request }));
      } catch (cause) {
        refused = cause;
        throw cause;
      }
    }
    const before = state.requests.get(page) ?? { action: "create" };
    const { privacy } = settings;
    const url = urlOf(inputOf(state, page));
    const end = await requestPage(requests, { url, privacy }, before, { task: job, sending });
    // The request that was sent before has had no effect.
    if (refused === outdated && stageOf(state, page) === "sent") await disk.keep(waits);
    if (refused !== undefined) throw refused;
    const { error, outcome } = end.ended;
    if (error?.code === "SEO_CANCELLED") {
      // Otherwise the next process would look for it until the end of the horizon.
      if (outcome === "failed" && stageOf(state, page) === "sent") await waits();
      throw cancelled;
    }
    this.reporter.requestEnded();
    // After a failure, the next request waits until it is saved, because the batch may be paused.
    job.isLast = this.pause.judge(page, job.number, end.ended) && !state.dropped;
    if (!error) {
      job.inFlight = false;
      fill();
    }
    if (job.isLast) await disk.keep(waits);
    else await this.#end(page, end);
  }

  /** Nothing is reported before it is saved. */
  async #end(page: number, end: End): Promise<void> {
    await this.#options.disk.keep(() => this.batch.write({ type: "ended", page, ...end.ended }));
    this.#report(page, end);
  }

  /** Reports how a page ended, unless it is to be requested again by now. */
  #report(page: number, { ended, record }: End): void {
    const { batch, reporter } = this;
    const { state } = batch;
    const { isClosed, result } = this.#options;
    if (isClosed()) throw cancelled;
    if (stageOf(state, page) !== "ended") return;
    const { report: _, ...rest } = ended;
    const repeated = batch.isEarlier(ended) && ({ repeated: true } as const);
    for (const index of rowsOf(state, page))
      result({ batch: state.name, index, input: inputOf(state, index), ...rest, record, ...repeated });
    batch.delivered(page);
    reporter.changed();
  }

  /** Finds out what the pages of a list need, and reports those that need nothing. */
  async #plan(list: number): Promise<void> {
    const { batch, pause } = this;
    const { requests, isClosed } = this.#options;
    const fresh = async (page: number, record: { id?: unknown }) => {
      if (!batch.isWaiting(page) || listOf(batch.state, page) !== list) return;
      batch.take(page);
      const ended: Ended = { outcome: "fresh", report: String(record.id), attempts: 0 };
      await this.#end(page, { ended, record }).finally(() => batch.release(page));
    };
    try {
      await makePlan(batch, list, requests, fresh);
      pause.planned();
    } catch (cause) {
      if (!(cause instanceof SeoError) || cause instanceof Trouble || cause.code === "SEO_CANCELLED") throw cause;
      if (!isClosed()) pause.stop(cause, { byPlan: true });
    }
  }

  close(): void {
    this.reporter.close();
    this.pause.close();
  }
}

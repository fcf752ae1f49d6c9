import { type Code, SeoError, ended as sentenceOf } from "../errors.js";
import type { Batch } from "./batch.js";
import type { Clock } from "./clock.js";
import type { Ended } from "./entries.js";
import { type Progress, Reporter } from "./progress.js";
import type { Requests } from "./requests.js";
import { done, total } from "./state.js";

export interface RunOptions {
  clock: Clock;
  progress(progress: Progress): void;
  failed(error: SeoError, batch: string): void;
  /** The batch waits until its account can go on. */
  stopped?: ((error: SeoError) => void) | undefined;
  requests: Pick<Requests, "waitingFor">;
  /** Why no batch can go on. */
  stalled(): SeoError | undefined;
  /** A probe can be sent. */
  due(): void;
}

/** A page that is worked on, or the plan of a list. */
export interface Job {
  page: number | undefined;
  /** Its response is lost, and looked for. */
  task: { isLost?: boolean };
  /** It counts among the requests that can be in flight. */
  inFlight: boolean;
  number: number;
  /** It shows whether the batch can go on, unless its request has failed. */
  isProbe: boolean;
}

interface Pause {
  error: SeoError;
  /** A probe can be sent. */
  isDue: boolean;
  /** The account's reports could not be read. */
  byPlan: boolean;
}

/** After so many failures in a row, a batch is paused; a probe is sent so many milliseconds later. */
const IN_A_ROW = 5;
const PROBE = 15 * 60_000;
/** Failures that no page causes, if they had certainly no effect. */
const ACCOUNT: readonly string[] = ["SEO_UNAUTHORIZED", "SEO_RATE_LIMITED", "SEO_NETWORK"] satisfies Code[];

export const isAccounts = ({ code }: { code: string }): boolean => ACCOUNT.includes(code);

/** A batch that is worked on: what is in flight, and why it waits. Nothing of this outlives the process. */
export class Run {
  readonly batch: Batch;
  readonly jobs = new Set<Job>();
  readonly reporter: Reporter;
  /** Messages that change it. */
  active = 0;
  /** Its end is being reported. */
  isEnding = false;
  readonly #options: RunOptions;
  #pause: Pause | undefined;
  /** The numbers of the last failed requests, of which no later one has succeeded. */
  #failures: number[] = [];
  #worked = 0;
  readonly #failedBefore: Set<number>;
  #last = 0;
  #cancelProbe = () => {};

  constructor(batch: Batch, options: RunOptions) {
    this.batch = batch;
    this.#options = options;
    this.#failedBefore = new Set(batch.failed);
    this.reporter = new Reporter({
      state: batch.state,
      clock: options.clock,
      paused: () => (batch.state.paused ? "Paused by msg.pause." : (this.#pause?.error ?? options.stalled())?.message),
      lost: () => {
        const lost = [...this.jobs].filter(({ task }) => task.isLost);
        const alone = lost.length > 0 && lost.length === this.jobs.size;
        return { pages: lost.flatMap(({ page }) => page ?? []), alone };
      },
      wait: options.requests.waitingFor,
      send: options.progress,
    });
  }

  isOver(): boolean {
    const { state } = this.batch;
    const isDone = done(state) === total(state) || (state.dropped && this.batch.next() === undefined);
    return this.jobs.size === 0 && this.active === 0 && isDone;
  }

  isPlanning(): boolean {
    return [...this.jobs].some(({ page }) => page === undefined);
  }

  /** Whether another job can begin; while it is paused, that is the probe, one at a time. */
  isOpen(): boolean {
    return !this.#pause || (this.#pause.isDue && ![...this.jobs].some(({ isProbe }) => isProbe));
  }

  /** Nothing is left but pages that have failed before: they would be probed for ever. */
  goOnIfOnlyLater(isLater: boolean): void {
    if (isLater && this.jobs.size === 0) this.#goOn();
  }

  /** How many pages are only saved or reported. */
  reporting(): number {
    return [...this.jobs].filter(({ inFlight }) => !inFlight).length;
  }

  /** `needsRequest`: it is not only reported. */
  begin(task: Job["task"], page?: number, needsRequest = true): Job {
    const isProbe = needsRequest && this.#pause !== undefined;
    const job: Job = { task, inFlight: needsRequest, number: ++this.#last, isProbe, page };
    this.jobs.add(job);
    if (this.#pause && isProbe) this.#pause.isDue = false;
    return job;
  }

  finish(job: Job): void {
    this.jobs.delete(job);
    if (this.#pause && job.isProbe) this.#pause.isDue = true;
  }

  /** A page's request has ended. Returns whether it is to be requested again, because the account has failed. */
  judge(page: number, { number }: Job, { outcome, error, attempts }: Ended): boolean {
    this.reporter.requestEnded();
    if (!error) {
      // Otherwise an earlier process has sent it.
      if (attempts > 0) this.#succeed(number);
      return false;
    }
    const isFirst = !this.#failedBefore.has(page);
    this.#failedBefore.add(page);
    const again = (isAccounts(error) && isFirst) || error.code === this.#pause?.error.code;
    if (isFirst && number > this.#worked) this.#failures.push(number);
    const { code, message, ...details } = error;
    if (this.#pause) this.#wait(this.#pause.error);
    else if (this.#failures.length >= IN_A_ROW)
      this.stop(new SeoError(code as Code, message, details), { inARow: true });
    return again && outcome === "failed";
  }

  #succeed(number: number): void {
    this.#worked = Math.max(this.#worked, number);
    this.#failures = this.#failures.filter((one) => one > this.#worked);
    this.#goOn();
  }

  /** A plan was made, which does not prove that pages can be requested. */
  planned(): void {
    if (this.#pause?.byPlan) this.#goOn();
  }

  /** Has the batch wait until its account can go on, which a probe finds out. The error is reported once. */
  stop(cause: SeoError, { inARow = false, byPlan = false } = {}): void {
    const { failed } = this.#options;
    const { name } = this.batch.state;
    const before = this.#pause;
    const error = this.#errorOf(cause, inARow);
    this.#pause = { error, isDue: before?.isDue ?? false, byPlan };
    if (!before) failed(error, name);
    this.#wait(error);
    this.reporter.changed();
  }

  #errorOf(cause: SeoError, inARow: boolean): SeoError {
    // No repair of the account ends it.
    if (!inARow && cause.code === "SEO_INPUT") return cause;
    const { code, message, ...details } = cause.toJSON() as { code: Code; message: string };
    const why = inARow ? `: ${IN_A_ROW} pages in a row failed` : "";
    const sentence = `The batch ${JSON.stringify(this.batch.state.name)} is paused${why}.`;
    const when = "It continues within 15 minutes of the repair, or at msg.resume.";
    return new SeoError(code, `${sentence} ${sentenceOf(message)} ${when}`, details);
  }

  /** Until the next probe. */
  #wait(error: SeoError): void {
    this.#options.stopped?.(error);
    for (const job of this.jobs) job.isProbe = false;
    this.#cancelProbe();
    this.#cancelProbe = this.#options.clock.later(PROBE, () => this.setDue());
  }

  setDue(): void {
    if (this.#pause) this.#pause.isDue = true;
    this.#options.due();
  }

  #goOn(): void {
    if (!this.#pause) return;
    this.#pause = undefined;
    this.#failures = [];
    this.#cancelProbe();
    this.reporter.changed();
  }

  close(): void {
    this.reporter.close();
    this.#cancelProbe();
  }
}

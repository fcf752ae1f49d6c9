import { type Code, SeoError, ended as sentenceOf } from "../errors.js";
import type { Batch } from "./batch.js";
import type { Ended } from "./entries.js";
import type { Options } from "./options.js";

/** After so many failures in a row, the next pages are checks. */
const DOUBTFUL = 3;
/** After so many, the last of them a check, a batch is paused; a probe is sent so many minutes later. */
const IN_A_ROW = 5;
const PROBE = 15;
const MINUTE = 60_000;
/** Failures that most often are those of single pages. */
const PAGES: readonly string[] = ["SEO_REJECTED", "SEO_SERVER"] satisfies Code[];
/** Failures that no page causes, if they certainly had no effect. */
const ACCOUNT: readonly string[] = ["SEO_UNAUTHORIZED", "SEO_RATE_LIMITED", "SEO_NETWORK"] satisfies Code[];

export const isAccounts = ({ code }: { code: string }): boolean => ACCOUNT.includes(code);

/** How long after a failure the next probe is sent. One that may have taken effect is not repeated soon. */
const minutesAfter = ({ code, uncertain }: { code: string; uncertain?: boolean }): number =>
  PAGES.includes(code) && !uncertain ? 1 : PROBE;

/**
 * Whether a batch waits until its account can go on (docs/audits.md). The rules:
 *
 * 1. A failure of the account has its page wait again, once. Any other failure is the page's result.
 * 2. Five failures in a row stop the batch, except those of pages that failed before, and of requests that began before a success.
 *    From the third on, one page at a time is a check, taken from anywhere: neighbors often fail together.
 * 3. Then such a page is the probe: after 15 minutes (one if pages fail themselves), at msg.resume, or at the same list. A success
 *    ends the pause. A probe that fails as the pause began has its page wait again.
 * 4. If only pages are left that have failed before, the next probe goes on with all of them.
 *
 * Nothing of this outlives the process.
 */
export class Breaker {
  /** Why the batch waits. */
  error: SeoError | undefined;
  readonly #batch: Batch;
  readonly #options: Options;
  /** Something can be reported, or begin. */
  readonly #changed: () => void;
  /** Pages that have failed before. */
  readonly #failedBefore: Set<number>;
  /** Requests are numbered as they begin: the last one, the last one that has succeeded, and those after it that have failed. */
  #begun = 0;
  #worked = 0;
  #failures: number[] = [];
  /** A probe can be sent. */
  #isDue = false;
  /** The check, or the probe: the request that shows whether the batch can go on. */
  #probe: number | undefined;
  /** The account's reports could not be read. */
  byPlan = false;
  #cancel = () => {};

  constructor(batch: Batch, options: Options, changed: () => void) {
    this.#batch = batch;
    this.#options = options;
    this.#changed = changed;
    this.#failedBefore = new Set(batch.failed);
  }

  /** The next page is to be one from anywhere: a check, or while it is paused, the probe. */
  get doubts(): boolean {
    return this.error !== undefined || this.#failures.length >= DOUBTFUL;
  }

  /** Whether another request can begin: checks and probes one at a time. */
  allows(): boolean {
    return !this.doubts || (this.#probe === undefined && (!this.error || this.#isDue));
  }

  /** A request begins. Returns its number. */
  begin(): number {
    const number = ++this.#begun;
    if (this.doubts) {
      this.#probe = number;
      this.#isDue = false;
    }
    return number;
  }

  /** Nothing more is done for a request. If it was the probe and shows nothing, another one can be sent. */
  finish(number: number): void {
    if (this.#probe !== number) return;
    this.#probe = undefined;
    this.#isDue = this.error !== undefined;
  }

  /** A page's request has ended. Returns whether it is to be requested again, because the account has failed. */
  judge(page: number, number: number, { outcome, error, attempts }: Ended): boolean {
    if (!error) {
      // Otherwise an earlier process has sent it.
      if (attempts > 0) this.#succeed(number);
      return false;
    }
    const isFirst = !this.#failedBefore.has(page);
    this.#failedBefore.add(page);
    const again = (isAccounts(error) && isFirst) || error.code === this.error?.code;
    // A request of an earlier process says nothing of the account now.
    const isPast = attempts === 0 && outcome === "uncertain";
    if (isFirst && number > this.#worked && !isPast) this.#failures.push(number);
    const isProbe = number === this.#probe;
    if (this.error && isProbe) this.#wait(this.error);
    if (!this.error && isProbe && this.#failures.length >= IN_A_ROW)
      this.#pause(this.#explain(error, `: ${IN_A_ROW} pages in a row failed`));
    return again && outcome === "failed";
  }

  #succeed(number: number): void {
    this.#worked = Math.max(this.#worked, number);
    this.#failures = this.#failures.filter((one) => one > this.#worked);
    // A request that began before others failed shows nothing of the account now.
    if (this.#failures.length === 0) this.end();
  }

  /** A plan was made, which does not prove that pages can be requested. */
  planned(): void {
    if (this.byPlan) this.end();
  }

  /** Has the batch wait. `byPlan`: the account's reports could not be read. */
  stop(cause: SeoError, byPlan = false): void {
    this.byPlan = byPlan;
    // No repair of the account ends what has another cause.
    this.#pause(cause.code === "SEO_INPUT" ? cause : this.#explain(cause.toJSON()));
  }

  #explain(error: { code: string; message: string; uncertain?: boolean }, why = ""): SeoError {
    const { code, message, ...details } = error;
    const sentence = `The batch ${JSON.stringify(this.#batch.state.name)} is paused${why}.`;
    const soon = minutesAfter(error) === 1 ? "a minute" : `${PROBE} minutes`;
    const when = `It continues within ${soon} of the repair, or at msg.resume.`;
    return new SeoError(code as Code, `${sentence} ${sentenceOf(message)} ${when}`, details);
  }

  #pause(error: SeoError): void {
    const isNew = !this.error;
    this.error = error;
    if (isNew) this.#options.failed(error, this.#batch.state.name);
    this.#wait(error);
    this.#changed();
  }

  /** Until the next probe. */
  #wait(error: SeoError): void {
    const { clock, stopped } = this.#options;
    stopped?.(error);
    this.#probe = undefined;
    this.#cancel();
    this.#cancel = clock.later(minutesAfter(error) * MINUTE, () => this.setDue());
  }

  setDue(): void {
    this.#isDue = this.error !== undefined;
    this.#changed();
  }

  end(): void {
    if (!this.error) return;
    this.error = undefined;
    this.byPlan = false;
    this.#failures = [];
    this.#isDue = false;
    this.#probe = undefined;
    this.#cancel();
    this.#changed();
  }

  close(): void {
    this.#cancel();
  }
}

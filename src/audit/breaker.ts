import { type Code, SeoError, sentenceOf } from "../errors.js";
import type { Batch } from "./batch.js";
import type { Ended } from "./entries.js";
import type { Options } from "./options.js";

/** After so many failures in a row, the next pages are checks: of these, so many failures pause a batch. */
const DOUBTFUL = 3;
const CHECKS = 2;
const MINUTE = 60_000;
/** Milliseconds until the next probe. */
const LATER = 15 * MINUTE;
/** So many probes can follow each other. */
const MOST_PROBES = 64;
/** Until so many can, a rejection has the next one follow in a minute: most often, it is the page's own. */
const MOST_SOON = 4;
/** Failures that no page causes, if they certainly had no effect. */
const ACCOUNT: readonly string[] = ["SEO_UNAUTHORIZED", "SEO_RATE_LIMITED", "SEO_NETWORK"] satisfies Code[];

export const isAccounts = ({ code }: { code: string }): boolean => ACCOUNT.includes(code);

/**
 * Whether a batch waits until its account can go on (docs/audits.md). The rules:
 *
 * 1. A failure of the account has its page wait again, once. Any other failure is the page's result.
 * 2. Five failures in a row stop the batch, except those of pages that failed before, and of requests that began before a success.
 *    Of these, the last two are checks: one page at a time, taken from anywhere, because neighbors often fail together.
 * 3. Then such a page is the probe: after 15 minutes, or at first one if the page was rejected, at msg.resume, or at the same list. A
 *    success ends the pause. A probe that fails as the pause began has its page wait again. Each time, twice as many follow each
 *    other, unless the account has caused the failure: perhaps only pages are left that cannot succeed.
 * 4. If only pages are left that have failed before, three failures stop it if the account has caused the last one, and the next
 *    probe goes on with all.
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
  /** The last request before the checks. */
  #doubted = 0;
  /** The last failure. */
  #last: Ended["error"];
  /** While it waits: how many probes can be sent now, and how many the next time. */
  #due = 0;
  #nextDue = 1;
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
    return !this.doubts || (this.#probe === undefined && (!this.error || this.#due > 0));
  }

  /** A request begins. Returns its number. */
  begin(): number {
    const number = ++this.#begun;
    if (this.doubts) {
      this.#probe = number;
      this.#due--;
    }
    return number;
  }

  /** Nothing more is done for a request. If it was the probe and shows nothing, another one can be sent. */
  finish(number: number): void {
    if (this.#probe !== number) return;
    this.#probe = undefined;
    this.#due++;
  }

  /** A page's request has ended. Returns whether it is to be requested again. */
  judge(page: number, number: number, { outcome, error, attempts }: Ended): boolean {
    if (!error) {
      // Otherwise an earlier process has sent it.
      if (attempts > 0) this.#succeed(number);
      return false;
    }
    this.#last = error;
    const isFirst = !this.#failedBefore.has(page);
    this.#failedBefore.add(page);
    const again = (isAccounts(error) && isFirst) || error.code === this.error?.code;
    // A request of an earlier process says nothing of the account now.
    const isPast = attempts === 0 && outcome === "uncertain";
    if (isFirst && number > this.#worked && !isPast && this.#failures.push(number) <= DOUBTFUL)
      this.#doubted = this.#begun;
    const checks = this.#failures.filter((one) => one > this.#doubted);
    if (this.error && number === this.#probe) this.#probed(this.error, error);
    if (!this.error && checks.length >= CHECKS)
      this.#pause(this.#explain(error, `: ${this.#failures.length} requests in a row failed`));
    return again && outcome === "failed";
  }

  #succeed(number: number): void {
    this.#worked = Math.max(this.#worked, number);
    this.#failures = this.#failures.filter((one) => one > this.#worked);
    // A request that began before others failed shows nothing of the account now.
    if (this.#failures.length === 0) this.end();
  }

  /** Has the batch wait. `byPlan`: the account's reports could not be read. */
  stop(cause: SeoError, byPlan = false): void {
    // A pause that pages began stays theirs.
    this.byPlan = byPlan && (this.byPlan || !this.error);
    const why = byPlan ? ": the list of reports could not be read" : "";
    // No repair of the account ends what has another cause.
    this.#pause(cause.code === "SEO_INPUT" ? cause : this.#explain(cause.toJSON(), why));
  }

  #explain({ code, message, ...details }: { code: string; message: string }, why = ""): SeoError {
    const sentence = `The batch ${JSON.stringify(this.#batch.state.name)} is paused${why}.`;
    const when = `It continues within ${LATER / MINUTE} minutes of the repair, or at msg.resume.`;
    const then = isAccounts({ code }) ? "" : " If no page waits by then, send msg.retry.";
    return new SeoError(code as Code, `${sentence} ${sentenceOf(message)} ${when}${then}`, details);
  }

  #pause(error: SeoError): void {
    if (!this.error) {
      [this.#due, this.#nextDue] = [0, 1];
      this.#options.failed(error, this.#batch.state.name);
    }
    this.error = error;
    this.#wait(error);
    this.#changed();
  }

  /** A probe has failed, as `last` says. */
  #probed(error: SeoError, last: { code: string }): void {
    this.#probe = undefined;
    const isPages = !isAccounts(last);
    if (isPages && this.#due > 0) return;
    this.#nextDue = isPages ? Math.min(2 * this.#nextDue, MOST_PROBES) : 1;
    // Not more than one at msg.resume.
    this.#due = Math.min(this.#due, 1);
    this.#wait(error, last);
  }

  /** Until the next probe. `last`: the failure before. */
  #wait(error: SeoError, last: { code: string } = error): void {
    const { clock, stopped } = this.#options;
    stopped?.(error);
    this.#probe = undefined;
    this.#cancel();
    const isSoon = last.code === "SEO_REJECTED" && this.#nextDue <= MOST_SOON;
    this.#cancel = clock.later(isSoon ? MINUTE : LATER, () => this.setDue());
  }

  /** Only pages are left that have failed before, which would be probed for ever. Returns whether all can be requested. */
  restart(): boolean {
    const last = this.#last;
    const stops = last !== undefined && isAccounts(last) && this.doubts && !this.error;
    if (stops) this.#pause(this.#explain(last));
    else this.end();
    return !stops;
  }

  setDue(): void {
    this.#due = this.#nextDue;
    this.#changed();
  }

  /** Ends a pause, unless that waits for something else. `byPlan`: a plan was made, which does not prove that pages can be requested. */
  end(byPlan = false): void {
    if (byPlan !== this.byPlan) return;
    this.#failures = [];
    if (!this.error) return;
    this.error = undefined;
    this.byPlan = false;
    this.#cancel();
    this.#changed();
  }

  close(): void {
    this.#cancel();
  }
}

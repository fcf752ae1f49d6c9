import { type Code, SeoError, ended as sentenceOf } from "../errors.js";
import type { Batch } from "./batch.js";
import type { Ended } from "./entries.js";
import type { Options } from "./options.js";

/** After so many failures in a row, a batch is paused; a probe is sent so many milliseconds later. */
const IN_A_ROW = 5;
const PROBE = 15 * 60_000;
/** Failures that no page causes, if they certainly had no effect. */
const ACCOUNT: readonly string[] = ["SEO_UNAUTHORIZED", "SEO_RATE_LIMITED", "SEO_NETWORK"] satisfies Code[];

export const isAccounts = ({ code }: { code: string }): boolean => ACCOUNT.includes(code);

/**
 * Whether a batch waits until its account can go on (docs/audits.md). The rules:
 *
 * 1. A failure of the account has its page wait again, once. Any other failure is the page's result.
 * 2. Five failures in a row stop the batch, except those of pages that failed before, and of requests that began before a success.
 * 3. Then one request at a time is the probe: after 15 minutes, at msg.resume, or at the same list. A success ends the pause.
 *    A probe that fails as the pause began has its page wait again.
 * 4. If only pages are left that have failed before, it goes on.
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
  /** The request that shows whether the batch can go on. */
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

  /** Whether another request can begin; while it is paused, that is the probe, one at a time. */
  allows(): boolean {
    return !this.error || (this.#isDue && this.#probe === undefined);
  }

  /** A request begins. Returns its number. */
  begin(): number {
    const number = ++this.#begun;
    if (this.error) {
      this.#probe = number;
      this.#isDue = false;
    }
    return number;
  }

  /** Nothing more is done for a request. If it was the probe and shows nothing, another one can be sent. */
  finish(number: number): void {
    if (this.#probe !== number) return;
    this.#probe = undefined;
    this.#isDue = true;
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
    if (this.error && number === this.#probe) this.#wait(this.error);
    if (!this.error && this.#failures.length >= IN_A_ROW)
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

  #explain({ code, message, ...details }: { code: string; message: string }, why = ""): SeoError {
    const sentence = `The batch ${JSON.stringify(this.#batch.state.name)} is paused${why}.`;
    const when = "It continues within 15 minutes of the repair, or at msg.resume.";
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
    this.#cancel = clock.later(PROBE, () => this.setDue());
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

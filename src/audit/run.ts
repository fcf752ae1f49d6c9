import { cancelled, SeoError } from "../errors.js";
import type { Access } from "./access.js";
import type { Batch } from "./batch.js";
import { Breaker } from "./breaker.js";
import type { Ended, PageRequest } from "./entries.js";
import { type End, endElsewhere, requestPage, showReport } from "./page.js";
import { makePlan } from "./plan.js";
import { Reporter } from "./progress.js";
import type { Requests } from "./requests.js";
import { urlOf } from "./rows.js";
import { done, inputOf, phaseOf, rowsOf, total } from "./state.js";
import { deposed, outdated, Refusal, reasonOf } from "./trouble.js";

/** A step of the work on a batch: a page, or the plan of its lists. */
export interface Step {
  page?: number;
  /** The response is lost, and looked for: the scheduler says so, because requests.ts makes the step the request's task. */
  isLost?: boolean;
  /** The step counts among the requests that can be in flight. */
  inFlight: boolean;
  number: number;
}

/** So many failures are reported at once. */
const MOST_REPORTED = 100;

/** A batch that is worked on: what is in flight, and what is done next. */
export class Run {
  readonly steps = new Set<Step>();
  readonly breaker: Breaker;
  readonly reporter: Reporter;
  /** Messages that change it. */
  active = 0;
  /** The steps of rounds of the batch that were reset. */
  earlier: readonly ReadonlySet<Step>[] = [];
  /** The account's reports are being read, and at least one page of them has arrived. */
  #reads = false;

  /** `fill` begins what can begin. */
  constructor(
    readonly batch: Batch,
    readonly requests: Requests,
    readonly access: Access,
    readonly fill: () => void,
  ) {
    this.breaker = new Breaker(batch, access.options, () => this.changed());
    this.reporter = new Reporter(this, access.options.clock, access.options.progress);
  }

  /** Why it waits. */
  get paused() {
    if (this.batch.state.paused) return { reason: "message", message: "Paused." };
    const isRepaired = this.#reads && this.breaker.byPlan;
    const error = (isRepaired ? undefined : this.breaker.error) ?? this.access.error;
    return error && { reason: reasonOf(error), message: error.message };
  }

  /** Whether its lists are being planned, or will be when no page that was reset can get a report any more. */
  get plans(): boolean {
    const isBehind = this.earlier.some(({ size }) => size > 0);
    return [...this.steps].some(({ page }) => page === undefined) || (isBehind && this.batch.needsPlan());
  }

  /** Something may be reported, or begin. */
  changed(): void {
    this.reporter.changed();
    this.fill();
  }

  isOver(): boolean {
    const { state } = this.batch;
    const isDone = done(state) === total(state) || (state.dropped && this.batch.next() === undefined);
    return this.steps.size === 0 && this.active === 0 && isDone;
  }

  /** Begins the next step, if there is one. `hasRoom`: another page can be requested. */
  begin(hasRoom: boolean): Step | undefined {
    const { batch, breaker } = this;
    const { state } = batch;
    const { page, isLater } = batch.next(breaker.doubts && breaker.allows()) ?? {};
    if (page === undefined) return undefined;
    if (state.ended.get(page)?.error) {
      const isFull = [...this.steps].filter(({ inFlight }) => !inFlight).length >= MOST_REPORTED;
      return isFull ? undefined : this.#add({ page, inFlight: false, number: 0 });
    }
    if (!breaker.allows()) return undefined;
    // Requests of earlier processes are looked for at once, or other pages' lost responses could not be explained.
    if (phaseOf(state, page) !== "waiting") return this.#add({ page, inFlight: true, number: breaker.begin() });
    if (state.paused || !hasRoom) return undefined;
    if (isLater && this.steps.size === 0 && !breaker.restart()) return undefined;
    const isPlanned = batch.settingsOf(page).planned;
    if (!isPlanned && this.plans) return undefined;
    return this.#add({ ...(isPlanned && { page }), inFlight: true, number: breaker.begin() });
  }

  #add(step: Step): Step {
    if (step.page !== undefined) this.batch.acquire(step.page);
    this.steps.add(step);
    return step;
  }

  async work(step: Step): Promise<void> {
    await this.#do(step).catch((cause) => this.fail(cause));
    this.steps.delete(step);
    if (step.page !== undefined) this.batch.release(step.page);
    this.breaker.finish(step.number);
  }

  async #do(step: Step): Promise<void> {
    const { page } = step;
    if (page === undefined) return this.#plan();
    const ended = this.batch.state.ended.get(page);
    if (!ended && this.#isElsewhere(page)) return this.#end(page, endElsewhere());
    if (!ended) return this.#request(page, step);
    const record = await showReport(this.requests, ended);
    // An earlier process may have delivered the result.
    this.#report(page, { ended, record }, page < this.batch.earlier);
  }

  /** Whether a page was sent to another service, which has the base URL of before. */
  #isElsewhere(page: number): boolean {
    const { state } = this.batch;
    return phaseOf(state, page) === "sent" && !state.requests.has(page);
  }

  /** A step, or the end, was rejected. */
  fail(cause: unknown): void {
    const { access } = this;
    if (!access.store || cause === deposed || cause === outdated) return;
    if (cause instanceof Refusal) access.stop(cause);
    else if (!(cause instanceof SeoError))
      this.breaker.stop(new SeoError("SEO_INPUT", `The batch cannot continue: ${cause}`));
    else if (cause.code !== "SEO_CANCELLED") this.breaker.stop(cause);
    // The service was closed, and the engine will be.
    else access.isEnding = true;
  }

  /** Requests a page, or looks for the effect of an earlier request. */
  async #request(page: number, step: Step): Promise<void> {
    this.reporter.requestBegan();
    const { batch, requests, access } = this;
    const { state } = batch;
    const settings = batch.settingsOf(page);
    const waits = () => access.save(() => batch.write({ type: "waits", page }));
    async function beforeAttempt(request: PageRequest): Promise<void> {
      if (state.dropped || state.paused || batch.settingsOf(page) !== settings) throw outdated;
      await access.saveOnce(() => batch.write({ type: "sent", page, ...request }));
    }
    const before = state.requests.get(page) ?? { action: "create" };
    const { privacy } = settings;
    const url = urlOf(inputOf(state, page));
    const end = await requestPage(requests, { url, privacy }, before, { task: step, beforeAttempt }).catch(
      async (cause) => {
        // Otherwise the next process would look for it until the end of the horizon.
        const hasNoEffect = cause instanceof SeoError && cause.code === "SEO_CANCELLED" && !cause.uncertain;
        if (hasNoEffect && state.requests.get(page)?.intent) await waits();
        throw cause;
      },
    );
    this.reporter.requestEnded();
    // After a failure, the next request waits until it is saved, because the batch may be paused.
    const isAgain = this.breaker.judge(page, step.number, end.ended) && !state.dropped;
    if (!end.ended.error) {
      step.inFlight = false;
      this.fill();
    }
    if (!isAgain) return this.#end(page, end);
    batch.putLast(page);
    await waits();
  }

  /** Nothing is reported before it is saved. */
  async #end(page: number, end: End): Promise<void> {
    await this.access.save(() => this.batch.write({ type: "ended", page, ...end.ended }));
    this.#report(page, end);
  }

  /** Reports how a page ended, unless it is to be requested again by now. */
  #report(page: number, { ended, record }: End, isRepeated = false): void {
    const { batch, reporter, access } = this;
    const { state } = batch;
    if (!access.store) throw cancelled;
    if (phaseOf(state, page) !== "ended") return;
    const { report: _, ...rest } = ended;
    const repeated = isRepeated && ({ repeated: true } as const);
    for (const index of rowsOf(state, page))
      access.options.result({ batch: state.name, index, input: inputOf(state, index), ...rest, record, ...repeated });
    batch.delivered(page);
    reporter.changed();
  }

  /** Finds out what the pages of lists need, and reports those that need nothing. */
  async #plan(): Promise<void> {
    const { batch, breaker, requests, access } = this;
    const fresh = async (page: number, record: { id?: unknown }) => {
      batch.acquire(page);
      const ended: Ended = { outcome: "fresh", report: String(record.id), attempts: 0 };
      await this.#end(page, { ended, record }).finally(() => batch.release(page));
    };
    const began = () => {
      this.#reads = true;
      this.reporter.changed();
    };
    try {
      await makePlan(batch, requests, fresh, began).finally(() => {
        this.#reads = false;
      });
      breaker.end(true);
    } catch (cause) {
      if (!(cause instanceof SeoError) || cause instanceof Refusal || cause.code === "SEO_CANCELLED") throw cause;
      if (access.store) breaker.stop(cause, true);
    }
  }

  close(): void {
    this.reporter.close();
    this.breaker.close();
  }
}

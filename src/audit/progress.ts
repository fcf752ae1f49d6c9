import type { Clock } from "./clock.js";
import type { Outcome } from "./entries.js";
import { done, isBegun, phaseOf, rowsOf, type State, total } from "./state.js";

/** How far a batch is, in rows. */
export interface Progress extends Record<Outcome, number> {
  batch: string;
  total: number;
  done: number;
  /** Failed rows that are no page. They are not retried. */
  invalid: number;
  waiting: number;
  /** How many of them wait only for the outcome of a request of their page: its response was lost, or another message has sent it. */
  reconciling: number;
  /** Rows that a reset dropped: not those in flight. */
  dropped: number;
  /** 0 while nothing is requested, because only lost responses are looked for. */
  perMinute: number;
  /** Undefined as long as it cannot be estimated. */
  secondsLeft?: number | undefined;
  /** Until the next request, because of a rate limit or after a failed attempt. Absent if nothing keeps it waiting. */
  secondsToWait?: number;
  /** Why it is paused, as a sentence. */
  paused: string | false;
  /** The same as a code: `message`, the error's code, or the kind of trouble; or `plan` while the account's reports are read. */
  reason?: string;
  finished: boolean;
  /** Nothing more begins, and nothing can be retried. */
  reset?: true;
  /** The end may have been reported before, by a process that died. */
  repeated?: true;
}

const REMEMBERED = 200;
const MINUTE = 60_000;
/** Milliseconds between two messages about the progress. */
export const BETWEEN = 5000;

const round = (value: number) => (value < 10 ? Math.round(value * 10) / 10 : Math.round(value));

/** The rows of pages. */
const count = (state: State, pages: number[]) => pages.reduce((sum, page) => sum + rowsOf(state, page).length, 0);

/** How far a batch is that has finished. */
export const progressOf = (state: State): Progress => ({
  batch: state.name,
  total: total(state),
  done: done(state),
  ...state.counts,
  invalid: count(
    state,
    [...state.invalid].filter((page) => phaseOf(state, page) === "delivered"),
  ),
  ...{ waiting: 0, reconciling: 0, dropped: 0, perMinute: 0, paused: false, finished: true },
  ...(state.dropped && { reset: true }),
});

/** The work on a batch, as it is needed here. */
interface ReportedRun {
  batch: { state: State };
  /** Why it is paused: a code and a sentence. */
  readonly paused: { reason: string; message: string } | undefined;
  /** Its lists are being planned, or will be. */
  readonly plans: boolean;
  /** Pages, of which some look for a lost response, and plans. */
  steps: ReadonlySet<{ page?: number; isLost?: boolean }>;
  requests: { waitingFor(): number };
}

/** Reports how far a batch is: at once if a pause begins or ends, otherwise at most every 5 s. */
export class Reporter {
  readonly #run: ReportedRun;
  readonly #clock: Clock;
  readonly #report: (progress: Progress) => void;
  /** When the first request began, and when the last ones ended: 200 of them, so that hours do not hide the last minutes. */
  #times: number[] = [];
  #shown = Number.NEGATIVE_INFINITY;
  /** Why it was paused then. */
  #reason: string | undefined;
  #cancel: (() => void) | undefined;
  /** The end was reported, or nothing more will be. */
  closed = false;

  constructor(run: ReportedRun, clock: Clock, report: (progress: Progress) => void) {
    this.#run = run;
    this.#clock = clock;
    this.#report = report;
  }

  /** The time before the first request, and that of a pause, does not count. */
  requestBegan(): void {
    if (this.#times.length === 0) this.#times.push(this.#clock.now());
  }

  requestEnded(): void {
    this.#times.push(this.#clock.now());
    if (this.#times.length > REMEMBERED) this.#times.shift();
  }

  changed(): void {
    if (this.closed) return;
    const wait = this.#shown + BETWEEN - this.#clock.now();
    if (wait <= 0 || this.#run.paused?.message !== this.#reason) this.#show();
    else this.#cancel ??= this.#clock.later(wait, () => this.#show());
  }

  /** Reports the end, once. `repeated`: a process that died may have reported it. */
  end(repeated: boolean): void {
    if (this.closed) return;
    this.close();
    const { reason: _, ...last } = this.read();
    this.#report({ ...last, paused: false, finished: true, ...(repeated && { repeated }) });
  }

  close(): void {
    this.closed = true;
    this.#cancel?.();
  }

  #show(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const before = this.#reason;
    this.#reason = this.#run.paused?.message;
    if (before !== undefined && this.#reason === undefined) this.#times = [];
    this.#shown = this.#clock.now();
    const now = this.read();
    if (now.secondsToWait !== undefined) this.changed();
    this.#report(now);
  }

  /** Requests a minute, until now or until a pause. */
  #pace(): number {
    const [first = Number.POSITIVE_INFINITY] = this.#times;
    const end = this.#run.paused ? (this.#times.at(-1) ?? 0) : this.#clock.now();
    const elapsed = end - first;
    return elapsed > 0 ? ((this.#times.length - 1) * MINUTE) / elapsed : 0;
  }

  read(): Progress {
    const { batch, paused, plans, steps, requests } = this.#run;
    const { state } = batch;
    const { dropped } = state;
    const lost = [...steps].filter(({ isLost }) => isLost);
    const alone = lost.length > 0 && lost.length === steps.size;
    const rest = total(state) - done(state);
    // An uncertain page that is looked for once more waits, until its request is known to have had no effect.
    const stays = (page: number) => !dropped || isBegun(state, page) || Boolean(state.requests.get(page)?.intent);
    const pagesOf = (some: typeof lost) => some.flatMap(({ page }) => page ?? []).filter(stays);
    const reconciling = count(state, pagesOf(lost));
    const begun = () => [...state.phases.keys()].filter((page) => isBegun(state, page));
    const waiting = dropped ? count(state, [...new Set([...begun(), ...pagesOf([...steps])])]) : rest;
    const ended = rest === 0 || (dropped && reconciling === 0);
    // How long lost responses take does not depend on the pace.
    const isRequesting = !ended && !dropped && !alone && rest > reconciling;
    const left = ended ? 0 : isRequesting ? Math.round((rest * 60) / this.#pace()) : undefined;
    const wait = requests.waitingFor();
    return {
      ...progressOf(state),
      ...{ waiting, reconciling, dropped: rest - waiting },
      perMinute: ended || isRequesting ? round(this.#pace()) : 0,
      ...(!paused && Number.isFinite(left) && { secondsLeft: left }),
      ...(!paused && isRequesting && wait > 0 && { secondsToWait: Math.ceil(wait / 1000) }),
      paused: paused?.message ?? false,
      ...((paused || plans) && { reason: paused?.reason ?? "plan" }),
      finished: false,
    };
  }
}

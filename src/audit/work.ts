import { cancelled, SeoError } from "../errors.js";
import type { Disk } from "./disk.js";
import type { Ended, PageRequest } from "./entries.js";
import { type End, requestPage, showReport } from "./page.js";
import { makePlan } from "./plan.js";
import type { Requests } from "./requests.js";
import { urlOf } from "./rows.js";
import { isAccounts, type Job, type Run } from "./run.js";
import { inputOf, listOf, rowsOf, stageOf } from "./state.js";
import { Trouble } from "./trouble.js";

/** One row's result. */
export interface Result extends Omit<Ended, "report"> {
  batch: string;
  index: number;
  /** The row as it was given, without a password. */
  input: unknown;
  /** The report, or null. */
  record: unknown;
  /** It may have been sent before, by a process that died. */
  repeated?: true;
}

export interface Tools {
  requests: Requests;
  disk: Disk;
  /** Nothing is sent or reported any more. */
  isClosed(): boolean;
  result(result: Result): void;
  /** A job does not count among the requests in flight any more. */
  freed(): void;
}

/** A page is not sent: meanwhile, a message has changed its batch, or the audit was closed. */
export const outdated = new SeoError("SEO_CANCELLED", "The batch was changed.");

/** What is done for a batch. Each rejects if the batch cannot go on. */
export class Work {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** Requests a page, or reports how it ended in an earlier process. Returns whether it is to wait behind all others. */
  async page(run: Run, page: number, job: Job): Promise<boolean> {
    const { state } = run.batch;
    const ended = state.ended.get(page);
    if (stageOf(state, page) !== "ended" || !ended) return this.#request(run, page, job);
    this.#report(run, page, { ended, record: await this.#show(ended) });
    return false;
  }

  async #request(run: Run, page: number, job: Job): Promise<boolean> {
    const { batch } = run;
    const { state } = batch;
    const { requests, disk, isClosed, freed } = this.#tools;
    const settings = batch.settingsOf(page);
    const waits = () => batch.write({ type: "waits", page });
    async function sending(request: PageRequest): Promise<void> {
      if (isClosed() || state.dropped || state.paused || batch.settingsOf(page) !== settings) throw outdated;
      await batch.write({ type: "sent", page, ...request });
      disk.saved();
    }
    const before = state.requests.get(page) ?? { action: "create" };
    const { privacy } = settings;
    const url = urlOf(inputOf(state, page));
    const end = await requestPage(requests, { url, privacy }, before, { task: job.task, sending }).catch(
      async (cause) => {
        // What was sent before has had no effect.
        if (cause === outdated && stageOf(state, page) === "sent") await disk.keep(waits);
        throw cause;
      },
    );
    const { error, outcome } = end.ended;
    if (error?.code === "SEO_CANCELLED") {
      // Otherwise the next process would look for it until the end of the horizon.
      if (outcome === "failed" && stageOf(state, page) === "sent") await waits();
      throw cancelled;
    }
    // After a failure, the next request waits until it is saved, because the batch may be paused.
    const again = run.judge(page, job, end.ended) && !state.dropped;
    if (!error) {
      job.inFlight = false;
      freed();
    }
    if (again) await disk.keep(waits);
    else await this.#end(run, page, end);
    return again;
  }

  async #show(ended: Ended): Promise<unknown> {
    try {
      return await showReport(this.#tools.requests, ended);
    } catch (cause) {
      if (cause instanceof SeoError && (cause.code === "SEO_CANCELLED" || isAccounts(cause))) throw cause;
      // Its outcome is known.
      return null;
    }
  }

  /** Nothing is reported before it is saved. */
  async #end(run: Run, page: number, end: End): Promise<void> {
    await this.#tools.disk.keep(() => run.batch.write({ type: "ended", page, ...end.ended }));
    this.#tools.disk.saved();
    this.#report(run, page, end);
  }

  /** Reports how a page ended, unless it is to be requested again by now. */
  #report({ batch, reporter }: Run, page: number, { ended, record }: End): void {
    const { state } = batch;
    if (this.#tools.isClosed()) throw cancelled;
    if (stageOf(state, page) !== "ended") return;
    const { report: _, ...rest } = ended;
    const repeated = batch.isEarlier(ended) && ({ repeated: true } as const);
    for (const index of rowsOf(state, page))
      this.#tools.result({
        batch: state.name,
        index,
        input: inputOf(state, index),
        ...rest,
        record,
        ...repeated,
      });
    batch.delivered(page);
    reporter.changed();
  }

  /** Finds out what the pages of a list need, and reports those that need nothing. */
  async plan(run: Run, list: number): Promise<void> {
    const { batch } = run;
    const fresh = async (page: number, record: { id?: unknown }) => {
      if (!batch.isWaiting(page) || listOf(batch.state, page) !== list) return;
      batch.take(page);
      const ended: Ended = { outcome: "fresh", report: String(record.id), attempts: 0 };
      await this.#end(run, page, { ended, record }).finally(() => batch.release(page));
    };
    try {
      await makePlan(batch, list, this.#tools.requests, fresh);
      run.planned();
    } catch (cause) {
      if (!(cause instanceof SeoError) || cause instanceof Trouble || cause.code === "SEO_CANCELLED") throw cause;
      if (!this.#tools.isClosed()) run.stop(cause, { byPlan: true });
    }
  }
}

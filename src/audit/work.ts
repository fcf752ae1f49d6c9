import { cancelled, SeoError } from "../errors.js";
import type { Disk } from "./disk.js";
import { makePlan } from "./plan.js";
import { type End, sendRequest, showReport } from "./request.js";
import { type Requests, toJSON } from "./requests.js";
import type { Run } from "./run.js";
import type { Hold } from "./slots.js";
import type { Batch, Claim, Ended } from "./store.js";
import { Trouble } from "./trouble.js";

/** One row's result. */
export interface Result extends Omit<Ended, "ended" | "report"> {
  batch: string;
  index: number;
  /** The row as it was given, without a password. */
  input: unknown;
  outcome: Ended["ended"];
  /** The report, or null. */
  record: unknown;
  /** It may have been told before, by a process that died. */
  repeated?: true;
}

export interface Tools {
  requests: Requests;
  disk: Disk;
  /** Nothing is begun or told any more. */
  isClosed(): boolean;
  result(result: Result): void;
}

const REJECTED_AT_ONCE = 100;

/** What is done for a batch: a page, its plan, and the rows that are invalid. Each rejects if the batch cannot go on. */
export function createWork({ requests, disk, isClosed, ...out }: Tools) {
  async function tell(run: Run, page: number, { ended, record }: End, repeated = false): Promise<void> {
    const { ended: outcome, report: _, ...rest } = ended;
    for (const index of run.batch.untold(page)) {
      const { input } = await disk.keep(() => run.batch.input(index));
      if (isClosed()) throw cancelled;
      const result = { batch: run.batch.name, index, input, outcome, ...rest, record };
      out.result(repeated ? { ...result, repeated } : result);
      run.batch.told(index);
      run.changed();
    }
  }

  /** Nothing is told before it is on disk. */
  async function end(run: Run, page: number, ended: Ended): Promise<void> {
    await disk.keep(() => run.batch.ended(page, ended));
    disk.saved();
  }

  async function request(run: Run, claim: Claim, hold: Hold): Promise<End> {
    const { batch } = run;
    const { page } = claim;
    // What is looked for is not in flight. The progress says so once it is known what begins instead.
    function lost(): void {
      run.lost.add(page);
      hold.leave();
    }
    /** Whether the last note says that the request may have had an effect. */
    let noted = claim.request.intent !== undefined;
    if (noted) lost();
    try {
      const result = await sendRequest(requests, claim, {
        permit() {
          run.lost.delete(page);
          run.changed();
          return hold.regain();
        },
        lost,
        async sending(sent) {
          if (isClosed() || batch.dropped()) throw cancelled;
          noted = true;
          await batch.sent(page, sent);
          disk.saved();
        },
      });
      const { ended, error } = result.ended;
      if (error?.code !== "SEO_CANCELLED") return result;
      // Otherwise the next process would look for it until the end of the horizon.
      if (noted && ended === "failed") await batch.sent(page, { ...claim.request, intent: undefined });
      throw cancelled;
    } finally {
      run.lost.delete(page);
    }
  }

  async function requestPage(run: Run, claim: Claim, hold: Hold): Promise<void> {
    const { batch } = run;
    const { page } = claim;
    const result = await request(run, claim, hold);
    const { error } = result.ended;
    // The next request need not wait for the disk. After a failure it does, because it may be the one that stops the batch.
    if (!error) hold.leave();
    await end(run, page, result.ended);
    run.requestEnded();
    if (!error || batch.dropped()) await tell(run, page, result);
    if (run.probe !== page) return run.agree();
    run.probe = undefined;
    // If one of the failed pages fails again, they are no streak any more: no page is left to find out why.
    if (batch.streak()?.before) run.stop();
    else run.goOn();
  }

  return {
    /** Requests a page, or tells how it ended in an earlier process. */
    async page(run: Run, claim: Claim, hold: Hold): Promise<void> {
      const { page, ended, repeated } = claim;
      try {
        if (!ended) return await requestPage(run, claim, hold);
        await tell(run, page, { ended, record: await showReport(requests, ended) }, repeated);
        if (run.probe === page && !run.batch.streak()?.before) run.goOn();
      } finally {
        run.batch.release(page);
        // A probe that was not sent is still to be sent.
        if (run.probe === page) {
          run.due = run.stopped();
          run.probe = undefined;
        }
      }
    },

    /** Finds out what the pages of a list need, and tells those that need nothing. */
    async plan(run: Run, wanted: NonNullable<ReturnType<Batch["unplanned"]>>): Promise<void> {
      try {
        await makePlan(run.batch, wanted, requests, async (page, record) => {
          const ended: Ended = { ended: "fresh", report: String(record.id), attempts: 0 };
          await end(run, page, ended);
          await tell(run, page, { ended, record });
        });
        if (!run.batch.streak()?.before) run.goOn();
        run.due = run.stopped();
      } catch (cause) {
        if (cause instanceof Trouble) run.due = run.stopped();
        throw cause;
      }
    },

    /** Tells the rows that are invalid. */
    async reject(run: Run): Promise<void> {
      const { batch } = run;
      for (let row = batch.takeInvalid(); row !== undefined; ) {
        const rows: number[] = [];
        for (; row !== undefined && rows.length < REJECTED_AT_ONCE; row = batch.takeInvalid()) rows.push(row);
        await Promise.all(
          rows.map(async (page) => {
            const { error = "" } = await disk.keep(() => batch.input(page));
            const ended: Ended = { ended: "failed", attempts: 0, error: toJSON(new SeoError("SEO_INPUT", error)) };
            await end(run, page, ended);
            await tell(run, page, { ended, record: null });
          }),
        );
      }
    },
  };
}

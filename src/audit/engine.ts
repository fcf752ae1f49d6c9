import { cancelled, SeoError } from "../errors.js";
import type { Clock } from "./clock.js";
import { createDisk } from "./disk.js";
import { STREAK } from "./ledger.js";
import { makePlan } from "./plan.js";
import type { Progress } from "./progress.js";
import { type End, sendRequest, showReport } from "./request.js";
import { type Requests, toJSON } from "./requests.js";
import { createRun, type Run, streakOf } from "./run.js";
import { createSlots } from "./slots.js";
import type { Batch, Claim, Ended, Store } from "./store.js";
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

export interface Surroundings {
  store: Store;
  requests: Requests;
  /** So many requests are in flight at most. */
  share: number;
  clock: Clock;
  result(result: Result): void;
  progress(progress: Progress): void;
  /** Something that a person has to see; it is told once. */
  failed(error: SeoError, batch?: string): void;
}

/** What a job holds: a slot while its request is in flight. */
interface Hold {
  inFlight: boolean;
}

type Job = (hold: Hold) => Promise<void>;

const PROBE = 15 * 60_000;
/** For each slot, so many requests whose response was lost can be looked for at the same time. */
const MOST_LOST = 10;
const REJECTED_AT_ONCE = 100;

/** Works through batches, the oldest first. One request per page and batch, whatever happens. */
export function createEngine({ store, requests, share, clock, ...out }: Surroundings) {
  const runs = new Set<Run>();
  const slots = createSlots(share);
  const jobs = new Set<Promise<void>>();
  const disk = createDisk(clock, store.probe, {
    failed: out.failed,
    recovered() {
      for (const run of runs) run.changed();
      fill();
    },
  });
  let lost = 0;
  /** Nothing is begun any more: this engine was closed, or its service. */
  let closed = false;
  let filling: Promise<void> | undefined;
  let more = false;

  function add(batch: Batch): Run {
    const run = createRun(batch, clock, disk.trouble, out.progress);
    runs.add(run);
    if (batch.held.length >= STREAK) run.trouble = streakOf(batch);
    run.due = run.trouble !== undefined;
    start(run, () => reject(run));
    if (!batch.finished) run.changed();
    return run;
  }

  /** Has a batch wait until its account can go on, which a probe finds out. */
  function stop(run: Run, error: SeoError): void {
    run.trouble = error;
    if (!run.told) out.failed(error, run.batch.name);
    run.told = true;
    run.due = false;
    run.cancelProbe();
    run.cancelProbe = clock.later(PROBE, () => probe(run));
    run.changed();
  }

  function probe(run: Run): void {
    run.due = true;
    fill();
  }

  function goOn(run: Run): void {
    run.trouble = undefined;
    run.told = false;
    run.due = false;
    run.cancelProbe();
    run.measureAnew();
    run.changed();
  }

  async function tell(run: Run, page: number, { ended, record }: End, repeated: boolean): Promise<void> {
    const { ended: outcome, report: _, ...rest } = ended;
    for (const index of run.batch.untold(page)) {
      const { input } = await disk.keep(() => run.batch.input(index));
      if (closed) throw cancelled;
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
    const lose = () => {
      if (!hold.inFlight) return;
      hold.inFlight = false;
      lost++;
      slots.give();
      fill();
    };
    if (claim.request.intent) lose();
    return sendRequest(requests, claim, {
      lost: lose,
      async sending(sent) {
        if (!hold.inFlight) {
          await slots.wait();
          hold.inFlight = true;
          lost--;
        }
        if (closed || run.batch.dropped) throw cancelled;
        await run.batch.sent(claim.page, sent);
        disk.saved();
      },
    });
  }

  async function work(run: Run, claim: Claim, hold: Hold): Promise<void> {
    const { batch } = run;
    const { page, ended, repeated } = claim;
    try {
      if (ended) {
        await tell(run, page, { ended, record: await showReport(requests, ended) }, repeated);
        if (run.probe?.page === page) goOn(run);
        return;
      }
      const result = await request(run, claim, hold);
      const { error } = result.ended;
      if (error?.code === "SEO_CANCELLED") throw cancelled;
      await end(run, page, result.ended);
      run.requestEnded();
      if (!error || batch.dropped) await tell(run, page, result, false);
      if (run.probe?.page === page) await judge(run, run.probe.again, error !== undefined);
      else if (!run.trouble && batch.held.length >= STREAK) stop(run, streakOf(batch));
    } finally {
      batch.release(page);
      // The probe was not sent.
      if (run.probe?.page === page) run.due = run.trouble !== undefined;
      if (run.probe?.page === page) run.probe = undefined;
    }
  }

  /** A probe ended. If it succeeded, the failures were the pages'. */
  async function judge(run: Run, again: boolean, failed: boolean): Promise<void> {
    const { batch } = run;
    run.probe = undefined;
    if (failed && !again) return stop(run, streakOf(batch));
    // If one of the failed pages succeeds, so may the others. If it fails again, there is no page left to find that out.
    if (again && !failed) await disk.keep(() => batch.again([...batch.held]));
    else batch.letGo();
    goOn(run);
  }

  async function plan(run: Run, wanted: NonNullable<ReturnType<Batch["unplanned"]>>): Promise<void> {
    const { batch } = run;
    try {
      await makePlan(batch, wanted, requests, async (page, record) => {
        const ended: Ended = { ended: "fresh", report: String(record.id), attempts: 0 };
        await end(run, page, ended);
        await tell(run, page, { ended, record }, false);
      });
      run.measureAnew();
      if (batch.held.length < STREAK) goOn(run);
    } finally {
      run.planning = false;
      run.due = run.trouble !== undefined;
    }
  }

  /** Tells the rows that are invalid. */
  async function reject(run: Run): Promise<void> {
    const { batch } = run;
    for (let row = batch.takeInvalid(); row !== undefined; ) {
      const rows: number[] = [];
      for (; row !== undefined && rows.length < REJECTED_AT_ONCE; row = batch.takeInvalid()) rows.push(row);
      await Promise.all(
        rows.map(async (page) => {
          const { error = "" } = await disk.keep(() => batch.input(page));
          const ended: Ended = { ended: "failed", attempts: 0, error: toJSON(new SeoError("SEO_INPUT", error)) };
          await end(run, page, ended);
          await tell(run, page, { ended, record: null }, false);
        }),
      );
    }
  }

  /** Does something for a batch, which is not finished before. */
  function start(run: Run, job: () => Promise<void>): void {
    run.active++;
    const ended = job()
      .catch((cause: unknown) => fail(run, cause))
      .finally(() => {
        run.active--;
        jobs.delete(ended);
        fill();
      });
    jobs.add(ended);
  }

  function fail(run: Run, cause: unknown): void {
    if (closed) return;
    if (cause instanceof Trouble) disk.stall(cause);
    else if (!(cause instanceof SeoError)) stop(run, new SeoError("SEO_INPUT", `The batch cannot go on: ${cause}`));
    else if (cause.code !== "SEO_CANCELLED") stop(run, cause);
    // The service was closed, and this engine will be.
    else if (!run.batch.dropped) closed = true;
  }

  function startInSlot(run: Run, job: Job): void {
    const hold: Hold = { inFlight: true };
    start(run, () =>
      job(hold).finally(() => {
        if (hold.inFlight) slots.give();
        else lost--;
      }),
    );
  }

  /** What is to be done next for a batch. */
  async function next(run: Run): Promise<Job | undefined> {
    const { batch } = run;
    if (batch.paused || run.over() || (run.trouble && !run.due)) return undefined;
    const streak = batch.held.length >= STREAK;
    const begun = streak ? undefined : await batch.take("begun");
    if (begun) return probing(run, begun, false);
    const wanted = batch.unplanned();
    if (wanted && !run.planning) {
      run.planning = true;
      run.due = false;
      return () => plan(run, wanted);
    }
    if (lost >= share * MOST_LOST || (run.trouble && run.planning)) return undefined;
    const fresh = await batch.take("new");
    if (fresh) return probing(run, fresh, false);
    if (!streak || run.active > 0) return undefined;
    await disk.keep(() => batch.again(batch.held.slice(0, 1)));
    const again = await batch.take("new");
    return again && probing(run, again, true);
  }

  /** A batch that the account has stopped sends one request to find out whether it can go on. */
  function probing(run: Run, claim: Claim, again: boolean): Job {
    if (run.trouble) run.probe = { page: claim.page, again };
    run.due = false;
    return (hold) => work(run, claim, hold);
  }

  /** Nothing is in flight: tells the last failures if nothing else is left, and at the end that the batch is finished. */
  async function settle(run: Run): Promise<void> {
    const { batch } = run;
    const { done, total } = run.progress();
    if (batch.dropped || done === total) return finish(run);
    if (run.trouble || batch.paused) return;
    const last = batch.held.reduce((sum, page) => sum + batch.untold(page).length, 0);
    if (done + last === total) batch.letGo();
  }

  async function finish(run: Run): Promise<void> {
    const { batch } = run;
    const { failed, uncertain } = batch.counts;
    run.end();
    if (!batch.dropped && failed + uncertain > 0) return disk.keep(batch.finish);
    runs.delete(run);
    return disk.keep(batch.remove);
  }

  async function begin(run: Run): Promise<void> {
    if (run.active === 0 && !run.over() && !disk.trouble()) await settle(run);
    while (!closed && !disk.trouble() && slots.take()) {
      let job: Job | undefined;
      try {
        job = await next(run);
      } finally {
        if (!job) slots.give();
      }
      if (!job) return;
      startInSlot(run, job);
    }
  }

  async function beginAll(): Promise<void> {
    await Promise.resolve();
    while (more && !closed) {
      more = false;
      for (const run of runs) await begin(run).catch((cause) => fail(run, cause));
    }
    filling = undefined;
  }

  /** Begins as much as can be in flight. */
  function fill(): void {
    more = true;
    filling ??= beginAll();
  }

  return {
    runs,
    disk,
    add,
    fill,
    probe,

    /** Adds something to do for a batch, which is not finished before. */
    async during<Value>(run: Run, work: () => Promise<Value>): Promise<Value> {
      run.active++;
      try {
        return await work();
      } finally {
        run.active--;
        fill();
      }
    },

    /** Tells invalid rows that came since. */
    reject: (run: Run) => start(run, () => reject(run)),

    /** Ends what is in flight; its effects are looked for by the next engine. */
    async close(): Promise<void> {
      closed = true;
      slots.close();
      disk.close();
      requests.cancel();
      await filling;
      await Promise.all(jobs);
      for (const run of runs) run.close();
    },
  };
}

export type Engine = ReturnType<typeof createEngine>;

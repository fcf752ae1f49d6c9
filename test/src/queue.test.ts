import assert from "node:assert/strict";
import fc from "fast-check";
import { SeoError } from "../../src/errors.js";
import { createLane, createQueue, type Lane } from "../../src/queue.js";
import { stopTime } from "../support/time.js";

const MINUTE = 60_000;

/** A queue that records when each job started, or the error it was refused with. */
function watch(options: { concurrency?: number; rate?: number; size?: number }, now: () => number) {
  const queue = createQueue({ concurrency: 1, rate: Number.POSITIVE_INFINITY, size: 1000, ...options });
  const started: { lane: Lane; job: number; at: number }[] = [];
  const refused: { job: number; code: string; message: string }[] = [];
  let jobs = 0;
  return {
    queue,
    started,
    refused,
    /** Returns the job's number. */
    enter(lane: Lane, delay?: number, since = now(), begins?: true): number {
      const job = ++jobs;
      const start = () => void started.push({ lane, job, at: now() });
      const refuse = ({ code, message }: SeoError) => void refused.push({ job, code, message });
      queue.enter({ lane, since, start, refuse, ...(begins && { begins }) }, delay);
      return job;
    },
  };
}

describe("The queue", () => {
  let time: ReturnType<typeof stopTime>;

  beforeEach(() => {
    time = stopTime();
  });

  afterEach(() => {
    time.goOn();
  });

  it("limits how many jobs run and how many wait", async () => {
    const lane = createLane();
    const { queue, started, refused, enter } = watch({ concurrency: 2, size: 3 }, time.now);
    for (let i = 0; i < 7; i++) enter(lane);
    await time.pass(0);
    assert.deepEqual(
      started.map(({ job }) => job),
      [1, 2],
    );
    const message = "The queue is full: 3 messages are waiting (limit 3).";
    assert.deepEqual(
      refused,
      [6, 7].map((job) => ({ job, code: "SEO_QUEUE_FULL", message })),
    );
    assert.deepEqual([lane.running, lane.waiting], [2, 3]);
    queue.leave(lane);
    await time.pass(0);
    assert.equal(started.length, 3);
    assert.equal(refused.length, 2, "only the jobs that arrived when it was full");
  });

  it("of size 0 starts a job that need not wait", async () => {
    const lane = createLane();
    const { started, refused, enter } = watch({ size: 0 }, time.now);
    enter(lane);
    enter(lane);
    await time.pass(0);
    assert.equal(started.length, 1);
    assert.deepEqual(
      refused.map(({ job }) => job),
      [2],
    );
  });

  it("of size 0 starts nothing during a pause or above the rate, and starts jobs afterwards", async () => {
    const lane = createLane();
    const { queue, started, enter } = watch({ size: 0, rate: 1 }, time.now);
    queue.pause(1000);
    enter(lane);
    await time.pass(1000);
    enter(lane);
    queue.leave(lane);
    enter(lane);
    await time.pass(MINUTE);
    enter(lane);
    assert.deepEqual(
      started.map(({ job }) => job),
      [2, 4],
    );
  });

  it("limits the open messages of a lane, and lets these send further requests", async () => {
    const [single, other] = [createLane(1), createLane()];
    const { queue, started, refused, enter } = watch({ concurrency: 3, size: 3 }, time.now);
    const begin = () => enter(single, undefined, time.now(), true);
    const jobs = () => started.map(({ job }) => job);
    for (let i = 0; i < 4; i++) begin();
    begin();
    assert.deepEqual(
      [jobs(), refused.map(({ job }) => job)],
      [[1], [5]],
      "there are free slots, but not for this lane",
    );
    enter(other);
    enter(single, 0);
    queue.leave(single);
    enter(single, 0);
    assert.deepEqual(
      jobs(),
      [1, 6, 7, 8],
      "further requests of an open message start before new messages of the same time",
    );
    for (let i = 0; i < 2; i++) queue.leave(single);
    assert.equal(started.length, 4);
    queue.end(single);
    assert.deepEqual(jobs(), [1, 6, 7, 8, 2]);
    queue.leave(single);
    queue.end(single);
    assert.deepEqual([jobs().at(-1), single.open, single.waiting], [3, 1, 1]);
  });

  it("calls `changed` whenever the numbers of a lane change", async () => {
    const lane = createLane();
    const { queue, enter } = watch({}, time.now);
    let changes = 0;
    lane.changed = () => changes++;
    const changed = (act: () => void) => {
      const before = changes;
      act();
      return changes > before;
    };
    assert.deepEqual(
      [
        () => enter(lane),
        () => enter(lane),
        () => enter(lane, 1000),
        () => queue.pause(1000),
        () => queue.leave(lane),
      ].map(changed),
      [true, true, true, true, true],
    );
    const before = [changes, lane.running];
    await time.pass(1000);
    assert.deepEqual([changes > (before[0] ?? 0), lane.running > (before[1] ?? 0)], [true, true], "when one starts");
  });

  it("refuses waiting jobs and retries, of one lane or of all, and has room again", async () => {
    const [gone, stays] = [createLane(), createLane()];
    const { queue, started, refused, enter } = watch({ size: 4 }, time.now);
    queue.pause(5000);
    enter(gone);
    enter(gone, 1000);
    enter(stays);
    enter(stays, 1000);
    const error = new SeoError("SEO_CANCELLED", "");
    queue.refuse(error, gone);
    const of = () => refused.map(({ job }) => job);
    assert.deepEqual([of().sort(), gone.waiting, stays.waiting], [[1, 2], 0, 2]);
    queue.refuse(error, gone);
    assert.equal(refused.length, 2);
    enter(gone);
    enter(gone);
    enter(gone);
    assert.deepEqual([refused.length, refused.at(-1)?.code], [3, "SEO_QUEUE_FULL"], "room for two");
    await time.pass(5000);
    assert.deepEqual(
      started.map(({ lane }) => lane),
      [stays],
    );
    queue.refuse(error);
    assert.deepEqual([gone.waiting, stays.waiting, time.timers()], [0, 0, 0]);
    queue.leave(stays);
    await time.pass(MINUTE);
    assert.equal(started.length, 1);
  });

  it("keeps no timer when nothing waits, and starts waiting jobs on time", async () => {
    const [gone, stays] = [createLane(), createLane()];
    const { queue, started, enter } = watch({}, time.now);
    const error = new SeoError("SEO_CANCELLED", "");
    queue.pause(5000);
    enter(gone);
    enter(stays);
    queue.pause(9000);
    enter(gone);
    assert.equal(time.timers(), 1);
    queue.refuse(error, gone);
    await time.pass(8999);
    assert.equal(started.length, 0);
    await time.pass(1);
    assert.equal(started.length, 1);
    queue.pause(1000);
    enter(gone);
    queue.refuse(error);
    assert.equal(time.timers(), 0);
    queue.leave(stays);
    assert.equal(time.timers(), 0);
    enter(gone);
    await time.pass(1000);
    assert.equal(started.length, 2);
  });

  it("starts one job after a pause, however many ended during the pause", async () => {
    const lane = createLane();
    const { queue, started, enter } = watch({ concurrency: 3 }, time.now);
    for (let i = 0; i < 8; i++) enter(lane);
    queue.pause(1000);
    for (let i = 0; i < 3; i++) queue.leave(lane);
    await time.pass(1000);
    assert.equal(started.length, 4);
  });

  it("takes turns between ten messages of one node and a thousand of another", async () => {
    const [many, few] = [createLane(), createLane()];
    const { queue, started, enter } = watch({ concurrency: 2, size: 10_000 }, time.now);
    for (let i = 0; i < 1000; i++) enter(many);
    for (let i = 0; i < 10; i++) enter(few);
    for (let i = 0; i < 22; i++) {
      await time.pass(0);
      queue.leave((started[i] as { lane: Lane }).lane);
    }
    await time.pass(0);
    assert.equal(started.filter(({ lane }) => lane === few).length, 10);
  });

  it("starts no more jobs in any minute than the rate allows", async () => {
    const lane = createLane();
    const { queue, started, enter } = watch({ concurrency: 100, rate: 5 }, time.now);
    for (let i = 0; i < 3; i++) enter(lane);
    await time.pass(20_000);
    for (let i = 0; i < 9; i++) enter(lane);
    await time.pass(10 * MINUTE);
    const at = started.map((start) => Math.round((start.at - (started[0]?.at ?? 0)) / 1000));
    assert.deepEqual(at, [0, 0, 0, 20, 20, 60, 60, 60, 80, 80, 120, 120]);
    for (const _ of started) queue.leave(lane);
  });

  it("starts nothing during a pause, and then adds one concurrent job at a time", async () => {
    const lane = createLane();
    const { queue, started, enter } = watch({ concurrency: 4 }, time.now);
    queue.pause(5000);
    for (let i = 0; i < 20; i++) enter(lane);
    await time.pass(4999);
    assert.equal(started.length, 0);
    const most = [];
    for (let i = 0; i < 5; i++) {
      await time.pass(1);
      most.push(lane.running);
      queue.leave(lane);
    }
    assert.deepEqual(most, [1, 2, 3, 4, 4]);
  });

  it("holds a retry for its delay, even if full, and starts it before later messages", async () => {
    const lane = createLane();
    const { queue, started, enter } = watch({ size: 2 }, time.now);
    const came = time.now();
    enter(lane);
    await time.pass(1);
    for (let i = 0; i < 2; i++) enter(lane);
    const again = [enter(lane, 1000, came), enter(lane, 1000, came), enter(lane, 0, came)];
    await time.pass(999);
    assert.equal(started.length, 1);
    await time.pass(1);
    for (let i = 0; i < 4; i++) queue.leave(lane);
    await time.pass(0);
    const [first, second, next] = again;
    assert.deepEqual(
      started.map(({ job }) => job),
      [1, next, first, second, 2],
      "though the queue is full",
    );
  });

  /** One event in the life of a queue with three lanes. */
  const lane = fc.nat({ max: 2 });
  const action = fc.oneof(
    { weight: 6, arbitrary: fc.record({ enter: lane }) },
    { weight: 1, arbitrary: fc.record({ enter: lane, delay: fc.nat({ max: 20_000 }) }) },
    { weight: 4, arbitrary: fc.record({ leave: lane }) },
    { weight: 3, arbitrary: fc.record({ pass: fc.nat({ max: 40_000 }) }) },
    { weight: 1, arbitrary: fc.record({ pause: fc.nat({ max: 30_000 }) }) },
    { weight: 1, arbitrary: fc.record({ cancel: lane }) },
  );

  it("loses no job, starts none twice, and keeps the order and the limits, for any events", async function () {
    this.timeout(60_000);
    const options = fc.record({
      concurrency: fc.integer({ min: 1, max: 4 }),
      rate: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 5 })),
      size: fc.nat({ max: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(options, fc.array(action, { maxLength: 60 }), async (limits, actions) => {
        const lanes = [createLane(), createLane(), createLane(1)] as const;
        const { queue, started, refused, enter } = watch(limits, time.now);
        const pauses: [from: number, to: number][] = [];
        const patient = new Set<number>();
        let entered = 0;
        const end = (one: Lane) => {
          queue.leave(one);
          queue.end(one);
        };
        const running = () => lanes.reduce((sum, { running }) => sum + running, 0);
        for (const act of actions) {
          if ("enter" in act) {
            entered++;
            const job = enter(lanes[act.enter as 0], "delay" in act ? act.delay : undefined, time.now(), true);
            if ("delay" in act) patient.add(job);
          } else if ("leave" in act) {
            if (lanes[act.leave as 0].running > 0) end(lanes[act.leave as 0]);
          } else if ("pass" in act) {
            await time.pass(act.pass);
          } else if ("pause" in act) {
            pauses.push([time.now(), time.now() + act.pause]);
            queue.pause(act.pause);
          } else {
            queue.refuse(new SeoError("SEO_CANCELLED", ""), lanes[act.cancel as 0]);
          }
          assert.ok(running() <= limits.concurrency && lanes[2].running <= 1);
        }
        // Run to the end: every running job leaves, until each job has started or was refused.
        for (let left = entered; left > 0 && started.length + refused.length < entered; ) {
          await time.pass(MINUTE);
          for (const one of lanes) while (one.running > 0) end(one);
        }
        await time.pass(0);
        const ends = [...started, ...refused].map(({ job }) => job);
        assert.equal(new Set(ends).size, entered, "none lost");
        assert.equal(ends.length, entered, "none twice");
        for (const one of lanes) {
          const jobs = started.filter((start) => start.lane === one && !patient.has(start.job)).map(({ job }) => job);
          assert.deepEqual(
            jobs,
            [...jobs].sort((a, b) => a - b),
            "first come first served",
          );
          while (one.running > 0) end(one);
          assert.deepEqual([one.running, one.waiting, one.open], [0, 0, 0]);
        }
        for (const [i, { at }] of started.entries()) {
          assert.ok(i < limits.rate || at - (started[i - limits.rate]?.at ?? 0) >= MINUTE, "rate");
          assert.ok(!pauses.some(([from, to]) => from < at && at < to), "pause");
        }
      }),
      { numRuns: 300 },
    );
  });
});

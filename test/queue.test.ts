import assert from "node:assert/strict";
import fc from "fast-check";
import { SeoError } from "../src/errors.js";
import { createLane, createQueue, type Lane } from "../src/queue.js";
import { stopTime } from "./support/time.js";

const MINUTE = 60_000;

/** A queue whose jobs are noted: when each started, or with which code it was refused. */
function watch(options: { concurrency?: number; rate?: number; size?: number }, now: () => number) {
  const queue = createQueue({ concurrency: 1, rate: Number.POSITIVE_INFINITY, size: 1000, ...options });
  const started: { lane: Lane; job: number; at: number }[] = [];
  const refused: { job: number; code: string }[] = [];
  let jobs = 0;
  return {
    queue,
    started,
    refused,
    /** Returns the job's number. */
    enter(lane: Lane, delay?: number, since = now()): number {
      const job = ++jobs;
      const start = () => void started.push({ lane, job, at: now() });
      const refuse = (error: SeoError) => void refused.push({ job, code: error.code });
      queue.enter({ lane, since, start, refuse }, delay);
      return job;
    },
  };
}

describe("The budget that a service's nodes share", () => {
  let time: ReturnType<typeof stopTime>;

  beforeEach(() => {
    time = stopTime();
  });

  afterEach(() => {
    time.goOn();
  });

  it("lets no more run at a time than it may, and no more wait", async () => {
    const lane = createLane();
    const { queue, started, refused, enter } = watch({ concurrency: 2, size: 3 }, time.now);
    for (let i = 0; i < 7; i++) enter(lane);
    await time.pass(0);
    assert.deepEqual(
      started.map(({ job }) => job),
      [1, 2],
    );
    assert.deepEqual(
      refused,
      [6, 7].map((job) => ({ job, code: "SEO_QUEUE_FULL" })),
    );
    assert.deepEqual([lane.running, lane.waiting], [2, 3]);
    queue.leave(lane);
    await time.pass(0);
    assert.equal(started.length, 3);
    assert.equal(refused.length, 2, "only the messages that found it full");
  });

  it("with room for none still starts what can start at once", async () => {
    const lane = createLane();
    const { started, refused, enter } = watch({ size: 0 }, time.now);
    enter(lane);
    enter(lane);
    await time.pass(0);
    assert.equal(started.length, 1);
    assert.deepEqual(refused, [{ job: 2, code: "SEO_QUEUE_FULL" }]);
  });

  it("does not let ten messages of one node wait behind a thousand of another", async () => {
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

  it("starts no more than its rate in any minute", async () => {
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

  it("starts nothing while the service has asked to wait, and then one, two, three", async () => {
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

  it("keeps a message that goes on for the time that it has to wait, and then takes it before what came later", async () => {
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

  /** What may happen to a queue, with three lanes. */
  const lane = fc.nat({ max: 2 });
  const action = fc.oneof(
    { weight: 6, arbitrary: fc.record({ enter: lane }) },
    { weight: 1, arbitrary: fc.record({ enter: lane, delay: fc.nat({ max: 20_000 }) }) },
    { weight: 4, arbitrary: fc.record({ leave: lane }) },
    { weight: 3, arbitrary: fc.record({ pass: fc.nat({ max: 40_000 }) }) },
    { weight: 1, arbitrary: fc.record({ pause: fc.nat({ max: 30_000 }) }) },
    { weight: 1, arbitrary: fc.record({ cancel: lane }) },
  );

  it("loses none, starts none twice, keeps the order of a lane and its limits, whatever happens", async function () {
    this.timeout(60_000);
    const options = fc.record({
      concurrency: fc.integer({ min: 1, max: 4 }),
      rate: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 5 })),
      size: fc.nat({ max: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(options, fc.array(action, { maxLength: 60 }), async (limits, actions) => {
        const lanes = [createLane(), createLane(), createLane()] as const;
        const { queue, started, refused, enter } = watch(limits, time.now);
        const pauses: [from: number, to: number][] = [];
        const patient = new Set<number>();
        let entered = 0;
        const running = () => lanes.reduce((sum, { running }) => sum + running, 0);
        for (const act of actions) {
          if ("enter" in act) {
            entered++;
            const job = enter(lanes[act.enter as 0], "delay" in act ? act.delay : undefined);
            if ("delay" in act) patient.add(job);
          } else if ("leave" in act) {
            if (lanes[act.leave as 0].running > 0) queue.leave(lanes[act.leave as 0]);
          } else if ("pass" in act) {
            await time.pass(act.pass);
          } else if ("pause" in act) {
            pauses.push([time.now(), time.now() + act.pause]);
            queue.pause(act.pause);
          } else {
            queue.refuse(new SeoError("SEO_CANCELLED", ""), lanes[act.cancel as 0]);
          }
          assert.ok(running() <= limits.concurrency);
        }
        // To the end: each that runs leaves, until none is left.
        for (let left = entered; left > 0 && started.length + refused.length < entered; ) {
          await time.pass(MINUTE);
          for (const one of lanes) while (one.running > 0) queue.leave(one);
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
          while (one.running > 0) queue.leave(one);
          assert.deepEqual([one.running, one.waiting], [0, 0]);
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

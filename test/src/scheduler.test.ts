import assert from "node:assert/strict";
import fc from "fast-check";
import { SeoError } from "../../src/errors.js";
import { createLane, createTask, type Lane, Scheduler, type Task } from "../../src/scheduler.js";
import { stopTimeInEach } from "../support/time.js";

const MINUTE = 60_000;
const TURN = new SeoError("SEO_CANCELLED", "");

/** The start of an admitted message or of its further request, with its time. */
interface Start {
  job: number;
  lane: Lane;
  task: Task;
  at: number;
}

/** A scheduler in which each message immediately sends one request, and `again` sends further ones. Records each start. */
function watch(options: { concurrency?: number; rate?: number; size?: number }, now: () => number) {
  const scheduler = new Scheduler({ concurrency: 1, rate: Number.POSITIVE_INFINITY, size: 1000, ...options });
  const started: Start[] = [];
  const refused: { job: number; code: string; lane: Lane }[] = [];
  const refuse = ({ lane }: Task, job: number, { code }: SeoError) => void refused.push({ job, code, lane });
  let jobs = 0;

  async function request(task: Task, job: number): Promise<void> {
    task.pending++;
    try {
      await scheduler.acquire(task);
      started.push({ job, lane: task.lane, task, at: now() });
    } catch (cause) {
      refuse(task, job, cause as SeoError);
    } finally {
      task.pending--;
    }
  }

  return {
    scheduler,
    started,
    refused,
    jobs: () => started.map(({ job }) => job),
    /** Adds a message and returns its number. */
    admit(lane: Lane): number {
      const job = ++jobs;
      const task = createTask(lane);
      scheduler.admit({ task, start: () => void request(task, job), refuse: (error) => refuse(task, job, error) });
      return job;
    },
    /** Sends a further request of an admitted message and returns its number. */
    again(task: Task, sleep = 0): number {
      const job = ++jobs;
      if (sleep === 0) void request(task, job);
      else
        scheduler.sleep(task, sleep).then(
          () => request(task, job),
          (error) => refuse(task, job, error),
        );
      return job;
    },
    /** Ends the request of the nth start. */
    finish(nth: number): void {
      const { task } = started[nth] as Start;
      scheduler.release(task);
    },
  };
}

describe("The scheduler of a service", () => {
  const time = stopTimeInEach();

  it("with a size of 0 starts a message that does not have to wait", async () => {
    const lane = createLane();
    const { scheduler, jobs, refused, admit, finish } = watch({ size: 0, rate: 1 }, time.now);
    scheduler.pause(1000);
    admit(lane);
    await time.pass(1000);
    admit(lane);
    await time.pass(0);
    finish(0);
    admit(lane);
    await time.pass(MINUTE);
    admit(lane);
    await time.pass(0);
    assert.deepEqual(jobs(), [2, 4]);
    const dropped = refused.map(({ job }) => job);
    assert.deepEqual(dropped, [1, 3]);
  });

  it("gives a slot that an admitted message does not use to the next message", async () => {
    const lane = createLane();
    const { scheduler, jobs, admit } = watch({}, time.now);
    scheduler.admit({ task: createTask(lane), start() {}, refuse() {} });
    admit(lane);
    await time.pass(0);
    assert.deepEqual([jobs(), lane.running], [[1], 1]);
  });

  it("rejects everything once it is closed", async () => {
    const lane = createLane();
    const { scheduler, jobs, refused, admit, again } = watch({}, time.now);
    for (let i = 0; i < 2; i++) admit(lane);
    await time.pass(0);
    scheduler.close();
    admit(lane);
    for (const sleep of [0, 1000]) again(createTask(lane), sleep);
    await time.pass(MINUTE);
    assert.deepEqual([jobs(), refused.map(({ code }) => code)], [[1], Array(4).fill("SEO_CANCELLED")]);
  });

  it("counts a request whose response is lost among what waits, at each change", async () => {
    const lane = createLane();
    const { scheduler } = watch({}, time.now);
    const task = createTask(lane);
    const figures: unknown[][] = [];
    lane.changed = () => figures.push([lane.waiting, lane.reconciling, task.isLost]);
    for (const how of ["lost", "exempt"] as const) await scheduler.wait(task, async () => {}, how);
    const lost = scheduler.wait(task, () => new Promise(() => {}), "lost");
    scheduler.close();
    await assert.rejects(lost, { code: "SEO_CANCELLED" });
    const ended = [0, 0, false];
    assert.deepEqual(figures, [[1, 1, true], ended, [1, 0, false], [0, 0, false], [1, 1, true], ended]);
  });

  it("reports a pause to the lanes in which something waits", async () => {
    const lane = createLane();
    const { scheduler, admit } = watch({}, time.now);
    for (let i = 0; i < 2; i++) admit(lane);
    await time.pass(0);
    let changes = 0;
    lane.changed = () => changes++;
    scheduler.pause(1000);
    assert.equal(changes, 1);
  });

  it("starts what waits when a pause is over, also if another lane is canceled meanwhile", async () => {
    const [gone, stays] = [createLane(), createLane()];
    const { scheduler, jobs, admit } = watch({}, time.now);
    scheduler.pause(9000);
    for (const lane of [gone, stays, gone]) admit(lane);
    assert.equal(time.timers(), 1);
    scheduler.cancel(TURN, gone);
    await time.pass(9000);
    assert.deepEqual(jobs(), [2]);
  });

  /** How much another node has waiting: a thousand messages, or the pages of a list. */
  const crowds: Record<string, (crowd: Lane, watched: ReturnType<typeof watch>) => unknown> = {
    "before most of a thousand that another node sent earlier"(crowd, { admit }) {
      for (let i = 0; i < 1000; i++) admit(crowd);
    },
    async "between the pages of another node's list"(crowd, { admit, again, started }) {
      admit(crowd);
      await time.pass(0);
      for (let i = 0; i < 100; i++) again((started[0] as Start).task);
    },
  };
  for (const [name, fill] of Object.entries(crowds))
    it(`serves ten messages of one node ${name}`, async () => {
      const [crowd, few] = [createLane(), createLane()];
      const watched = watch({ size: 10_000 }, time.now);
      const { scheduler, started, admit } = watched;
      await fill(crowd, watched);
      for (let i = 0; i < 10; i++) admit(few);
      for (let i = 0; i < 21; i++) {
        await time.pass(0);
        scheduler.release((started[i] as Start).task);
      }
      assert.equal(started.filter(({ lane }) => lane === few).length, 10);
    });

  it("serves further requests before new messages, in order, even if it is full", async () => {
    const lane = createLane();
    const { scheduler, jobs, refused, started, admit, again } = watch({ size: 2 }, time.now);
    admit(lane);
    await time.pass(0);
    const { task } = started[0] as Start;
    const fresh = [admit(lane), admit(lane)];
    const [first, second, next] = [again(task, 1000), again(task, 1000), again(task)];
    await time.pass(1000);
    for (let i = 0; i < 5; i++) {
      scheduler.release(task);
      await time.pass(0);
    }
    assert.deepEqual([jobs(), refused], [[1, next, first, second, ...fresh], []]);
  });

  it("needs the same time per message with 100,000 waiting as with 1,000", () => {
    time.goOn();
    /** Microseconds of this process, whatever else runs. */
    const spent = () => {
      const { user, system } = process.cpuUsage();
      return user + system;
    };
    const perMessage = (waiting: number) => {
      const lane = createLane();
      const { scheduler } = watch({ size: waiting }, time.now);
      scheduler.pause(MINUTE);
      const message = { task: createTask(lane), start() {}, refuse() {} };
      const began = spent();
      for (let i = 0; i < waiting; i++) scheduler.admit(message);
      for (let i = 0; i < waiting; i++) lane.messages.shift();
      const took = spent() - began;
      scheduler.close();
      return took / waiting;
    };
    perMessage(10_000);
    const few = Math.min(...Array.from({ length: 20 }, () => perMessage(1000)));
    const many = Math.min(...Array.from({ length: 3 }, () => perMessage(100_000)));
    assert.ok(many < 5 * few + 1, `${many} µs and ${few} µs`);
  });

  /** The events that a scheduler with three lanes can receive. */
  const lane = fc.nat({ max: 2 });
  const action = fc.oneof(
    { weight: 6, arbitrary: fc.record({ admit: lane }) },
    { weight: 2, arbitrary: fc.record({ again: fc.nat(), sleep: fc.oneof(fc.constant(0), fc.nat({ max: 20_000 })) }) },
    { weight: 4, arbitrary: fc.record({ finish: fc.nat() }) },
    { weight: 3, arbitrary: fc.record({ pass: fc.nat({ max: 40_000 }) }) },
    { weight: 1, arbitrary: fc.record({ pause: fc.nat({ max: 30_000 }) }) },
    { weight: 1, arbitrary: fc.record({ cancel: lane }) },
  );

  it("loses no message, starts none twice, and keeps the order of each lane and all limits, in any sequence of events", async () => {
    const options = fc.record({
      concurrency: fc.integer({ min: 1, max: 4 }),
      rate: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 5 })),
      size: fc.nat({ max: 6 }),
    });
    const property = fc.asyncProperty(options, fc.array(action, { maxLength: 60 }), async (limits, actions) => {
      const lanes = [createLane(), createLane(), createLane(1)] as const;
      const { scheduler, started, refused, admit, again } = watch(limits, time.now);
      const pauses: [from: number, to: number][] = [];
      /** The starts whose slot is not released, and the messages that were admitted and have not ended. */
      const running: Start[] = [];
      const active = new Set<Task>();
      const fresh = new Set<number>();
      let seen = 0;
      let entered = 0;
      /** The figures of each lane when it was last reported to have changed. */
      const reported = new Map<Lane, string>();
      const figures = ({ running, waiting }: Lane) => `${running} in flight, ${waiting} waiting`;
      for (const one of lanes) one.changed = () => reported.set(one, figures(one));
      const look = () => {
        for (; seen < started.length; seen++) {
          const start = started[seen] as Start;
          running.push(start);
          active.add(start.task);
        }
        assert.ok(running.length <= limits.concurrency);
        for (const one of lanes) {
          assert.equal(one.running, running.filter((start) => start.lane === one).length);
          assert.ok(one.running <= one.maxRunning);
          assert.equal(reported.get(one) ?? figures(createLane()), figures(one));
        }
        const ended = new Set([...started, ...refused].map(({ job }) => job));
        assert.ok([...fresh].filter((job) => !ended.has(job)).length <= limits.size, "size");
        if (lanes.every(({ waiting }) => waiting === 0)) assert.equal(time.timers(), 0);
      };
      const finish = (nth: number) => {
        const [start] = running.splice(nth, 1);
        if (!start) return;
        scheduler.release(start.task);
        const { task } = start;
        if (task.pending === 0 && !running.some((other) => other.task === task)) active.delete(task);
      };
      for (const act of actions) {
        if ("admit" in act) {
          entered++;
          fresh.add(admit(lanes[act.admit as 0]));
        } else if ("again" in act) {
          const start = running[act.again % running.length];
          if (!start || !active.has(start.task)) continue;
          entered++;
          again(start.task, act.sleep);
        } else if ("finish" in act) {
          if (running.length > 0) finish(act.finish % running.length);
        } else if ("pass" in act) {
          await time.pass(act.pass);
        } else if ("pause" in act) {
          pauses.push([time.now(), time.now() + act.pause]);
          scheduler.pause(act.pause);
        } else {
          const [canceled, before] = [lanes[act.cancel as 0], refused.length];
          scheduler.cancel(TURN, canceled);
          assert.equal(canceled.waiting, 0);
          await time.pass(0);
          assert.ok(refused.slice(before).every((one) => one.lane === canceled));
        }
        await time.pass(0);
        look();
      }
      // Finish everything in flight until nothing is left.
      for (let left = 3 * entered; left > 0 && started.length + refused.length < entered; left--) {
        await time.pass(MINUTE);
        look();
        while (running.length > 0) finish(0);
      }
      await time.pass(0);
      look();
      while (running.length > 0) finish(0);
      const ends = [...started, ...refused].map(({ job }) => job);
      assert.equal(new Set(ends).size, entered, "nothing lost");
      assert.equal(ends.length, entered, "nothing twice");
      for (const one of lanes) {
        const order = started.filter((start) => start.lane === one && fresh.has(start.job)).map(({ job }) => job);
        const sorted = order.toSorted((a, b) => a - b);
        assert.deepEqual(order, sorted, "first come, first served");
        assert.deepEqual([one.running, one.waiting], [0, 0]);
      }
      for (const [i, { at }] of started.entries()) {
        assert.ok(i < limits.rate || at - (started[i - limits.rate]?.at ?? 0) >= MINUTE, "rate");
        assert.ok(!pauses.some(([from, to]) => from < at && at < to), "pause");
      }
    });
    await fc.assert(property, { numRuns: 2000 });
  });
});

import { SeoError } from "./errors.js";

/** One node's share of the queue. `changed` is called when a figure of it does. */
export interface Lane {
  running: number;
  /** Messages that wait for their turn or for another attempt. */
  waiting: number;
  /** Until when an attempt that failed keeps a message waiting, in the clock of `performance.now()`. */
  until: number;
  /** Its node is gone: nothing more is sent for it. */
  closed: boolean;
  changed(): void;
}

export const createLane = (): Lane => ({ running: 0, waiting: 0, until: 0, closed: false, changed() {} });

interface Job {
  lane: Lane;
  start(): void;
  refuse(error: SeoError): void;
  timer?: NodeJS.Timeout;
}

const MINUTE = 60_000;

/**
 * The budget that all nodes of one service share: `concurrency` requests at a time, `rate` a minute, `size` waiting.
 * First come first served within a lane, in turns between lanes.
 */
export function createQueue({ concurrency, rate, size }: { concurrency: number; rate: number; size: number }) {
  const lanes = new Map<Lane, Job[]>();
  const sleeping = new Set<Job>();
  const starts: number[] = [];
  let running = 0;
  let waiting = 0;
  let width = concurrency;
  let pausedUntil = 0;
  let timer: NodeJS.Timeout | undefined;

  const nextStart = () => Math.max(pausedUntil, starts.length < rate ? 0 : (starts[0] ?? 0) + MINUTE);

  function take(): Job | undefined {
    for (const [lane, jobs] of lanes) {
      lanes.delete(lane);
      const job = jobs.shift();
      if (jobs.length > 0) lanes.set(lane, jobs);
      return job;
    }
    return undefined;
  }

  function wake(): void {
    while (running < width && lanes.size > 0) {
      const now = performance.now();
      const wait = nextStart() - now;
      if (wait > 0) {
        clearTimeout(timer);
        timer = setTimeout(wake, Math.ceil(wait));
        return;
      }
      const job = take();
      if (!job) return;
      if (rate !== Number.POSITIVE_INFINITY && starts.push(now) > rate) starts.shift();
      running++;
      waiting--;
      job.lane.running++;
      job.lane.waiting--;
      job.start();
      job.lane.changed();
    }
  }

  function put(job: Job, first: boolean): void {
    const jobs = lanes.get(job.lane);
    if (!jobs) lanes.set(job.lane, [job]);
    else if (first) jobs.unshift(job);
    else jobs.push(job);
    wake();
  }

  return {
    /**
     * Resolves when the lane may send a request; `leave` must follow. Rejects with SEO_QUEUE_FULL, or as `refuse` says.
     * A message that comes again, after `delay` ms, is not refused for want of room and goes first.
     */
    enter(lane: Lane, delay?: number): Promise<void> {
      return new Promise((start, refuse) => {
        if (
          delay === undefined &&
          waiting >= size &&
          (running >= width || lanes.size > 0 || nextStart() > performance.now())
        ) {
          refuse(
            new SeoError(
              "SEO_QUEUE_FULL",
              `${waiting} messages wait already, and the service node's queue is ${size}.`,
            ),
          );
          return;
        }
        const job: Job = { lane, start, refuse };
        waiting++;
        lane.waiting++;
        if (delay === undefined || delay <= 0) {
          put(job, delay !== undefined);
        } else {
          lane.until = Math.max(lane.until, performance.now() + delay);
          sleeping.add(job);
          job.timer = setTimeout(() => {
            sleeping.delete(job);
            put(job, true);
          }, delay);
        }
        lane.changed();
      });
    },

    /** Gives the place to the next. After a pause, each that leaves lets one more in than before. */
    leave(lane: Lane): void {
      running--;
      lane.running--;
      if (width < concurrency && performance.now() >= pausedUntil) width++;
      wake();
      lane.changed();
    },

    /** Lets nothing start for `ms`, and then one request at a time to begin with. */
    pause(ms: number): void {
      pausedUntil = Math.max(pausedUntil, performance.now() + ms);
      width = 1;
      for (const lane of lanes.keys()) lane.changed();
    },

    /** Milliseconds until the service may be asked again. */
    pausedFor: () => Math.max(0, pausedUntil - performance.now()),

    /** Rejects all that waits, or what waits in one lane. */
    refuse(error: SeoError, only?: Lane): void {
      const waits = (lane: Lane) => only === undefined || lane === only;
      const jobs = [...sleeping].filter((job) => waits(job.lane));
      for (const [lane, queued] of lanes) {
        if (!waits(lane)) continue;
        lanes.delete(lane);
        for (const job of queued) jobs.push(job);
      }
      for (const job of jobs) {
        clearTimeout(job.timer);
        sleeping.delete(job);
        waiting--;
        job.lane.waiting--;
        job.refuse(error);
      }
      if (lanes.size === 0) clearTimeout(timer);
    },
  };
}

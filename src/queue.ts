import { performance } from "node:perf_hooks";
import { createBudget } from "./budget.js";
import { cancelled, SeoError } from "./errors.js";

/** One node's share of the queue, and the figures that its status shows. `changed` is called when one of them changes. */
export interface Lane {
  /** Requests in flight. */
  running: number;
  /** Messages and requests that wait: for admission, for a slot, or between two attempts. */
  waiting: number;
  /** Requests whose response was lost, and whose outcome is being found out. */
  reconciling: number;
  /** Messages that were admitted and have not ended, and how many of them there can be. */
  active: number;
  readonly maxActive: number;
  /** How many requests can be in flight. */
  readonly maxRunning: number;
  /** Until when a failed attempt keeps a request waiting, in the clock of `performance.now()`. */
  until: number;
  /** Its node is gone: nothing more is sent for it. */
  closed: boolean;
  changed(): void;
  /** Requests of admitted messages; they go before new messages. */
  readonly continuing: Fifo<Waiter>;
  readonly fresh: Fifo<Message>;
}

/** What one message sends: its requests are cancelled together. */
export interface Task {
  readonly lane: Lane;
  /** Its requests that wait or are in flight. */
  pending: number;
  /** It has ended or was cancelled: nothing more is sent for it. */
  closed: boolean;
  /** The response to its request is lost, and what became of it is being found out. */
  isLost?: boolean;
}

/** A message that waits for admission. */
export interface Message extends Task {
  /** It is admitted: it can acquire slots, and `end` must follow. */
  start(): void;
  /** It is not. */
  refuse(error: SeoError): void;
}

interface Waiter {
  task: Task;
  start(): void;
  refuse(error: SeoError): void;
}

/** Waits for something other than a slot. */
interface Sleeper extends Omit<Waiter, "start"> {
  /** No limit of the service ends it. */
  kept: boolean;
}

type Fifo<T> = ReturnType<typeof createFifo<T>>;

/** First in, first out, in constant time: an array's `shift` moves everything behind it. */
function createFifo<T>() {
  let incoming: T[] = [];
  let outgoing: T[] = [];
  return {
    isEmpty: () => incoming.length + outgoing.length === 0,
    push(item: T): void {
      incoming.push(item);
    },
    shift(): T | undefined {
      if (outgoing.length === 0) [incoming, outgoing] = [outgoing, incoming.reverse()];
      return outgoing.pop();
    },
    /** Takes out all that match. */
    take(matches: (item: T) => boolean): T[] {
      const all = [...outgoing.reverse(), ...incoming];
      outgoing = [];
      incoming = all.filter((item) => !matches(item));
      return all.filter(matches);
    },
  };
}

export const createLane = ({
  maxActive = Number.POSITIVE_INFINITY,
  maxRunning = Number.POSITIVE_INFINITY,
}: {
  maxActive?: number | undefined;
  maxRunning?: number;
} = {}): Lane => ({
  running: 0,
  waiting: 0,
  reconciling: 0,
  active: 0,
  maxActive,
  maxRunning,
  until: 0,
  closed: false,
  changed() {},
  continuing: createFifo(),
  fresh: createFifo(),
});

export const createTask = (lane: Lane): Task => ({ lane, pending: 0, closed: false });

/**
 * Decides who is next. Two gates: a message is admitted once a request could start, and each of its requests then
 * acquires a slot of the budget. Lanes take turns; within a lane, admitted messages go before new ones.
 */
export function createQueue({ size, ...limits }: { concurrency: number; rate: number; size: number }) {
  const budget = createBudget(limits);
  /** The lanes in which something waits, in the order of their turns. */
  const lanes: Lane[] = [];
  const sleepers = new Set<Sleeper>();
  let waiting = 0;
  let held = 0;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;

  function count(lane: Lane, change: number): void {
    waiting += change;
    lane.waiting += change;
    lane.changed();
  }

  const isReady = ({ continuing, fresh, running, maxRunning, active, maxActive }: Lane) =>
    (!continuing.isEmpty() && running < maxRunning) || (!fresh.isEmpty() && active < maxActive && held < budget.free());

  function take(lane: Lane): void {
    budget.take();
    lane.running++;
  }

  /** Serves a lane: its next request gets a slot, or its next message is admitted and acquires one itself. */
  function serve(lane: Lane): void {
    lanes.splice(lanes.indexOf(lane), 1);
    const next = lane.running < lane.maxRunning ? lane.continuing.shift() : undefined;
    const message = next ? undefined : lane.fresh.shift();
    if (next) take(lane);
    else lane.active++;
    if (!lane.continuing.isEmpty() || !lane.fresh.isEmpty()) lanes.push(lane);
    count(lane, -1);
    (next ?? message)?.start();
  }

  /** Serves lanes in turn for as long as a request can start. */
  function pump(): void {
    for (let lane = lanes.find(isReady); lane; lane = lanes.find(isReady)) {
      const wait = budget.wait();
      if (wait === 0) {
        serve(lane);
        continue;
      }
      if (wait < Number.POSITIVE_INFINITY)
        timer ??= setTimeout(() => {
          timer = undefined;
          pump();
        }, Math.ceil(wait));
      return;
    }
  }

  const isOver = (task: Task) => closed || task.lane.closed || task.closed;

  function cancel(error: SeoError, scope?: Lane | Task): void {
    const matches = (task: Task) => scope === undefined || task === scope || task.lane === scope;
    const refused: [Lane, Pick<Waiter, "refuse">][] = [];
    for (const sleeper of sleepers) {
      const ends = matches(sleeper.task) && (!sleeper.kept || isOver(sleeper.task));
      if (ends && sleepers.delete(sleeper)) refused.push([sleeper.task.lane, sleeper]);
    }
    for (const lane of [...lanes]) {
      for (const waiter of lane.continuing.take(({ task }) => matches(task))) refused.push([lane, waiter]);
      for (const message of lane.fresh.take(matches)) refused.push([lane, message]);
      if (lane.continuing.isEmpty() && lane.fresh.isEmpty()) lanes.splice(lanes.indexOf(lane), 1);
    }
    for (const [lane, waiter] of refused) {
      count(lane, -1);
      waiter.refuse(error);
    }
    if (lanes.length > 0) return;
    clearTimeout(timer);
    timer = undefined;
  }

  return {
    /** Gate 1. Has a message wait for admission; refuses it with SEO_QUEUE_FULL, or as `cancel` says. */
    admit(message: Message): void {
      const { lane } = message;
      if (isOver(message)) {
        message.refuse(cancelled);
        return;
      }
      // A message that waits for something other than a slot keeps none from others, but its memory.
      const crowded = sleepers.size >= Math.max(size, limits.concurrency);
      const waits = crowded || !lane.fresh.isEmpty() || lane.active >= lane.maxActive || budget.wait() > 0;
      if (waits && waiting >= size) {
        const sentence = `The queue is full: ${waiting} messages are waiting (limit ${size}).`;
        message.refuse(new SeoError("SEO_QUEUE_FULL", sentence));
        return;
      }
      lane.fresh.push(message);
      if (!lanes.includes(lane)) lanes.push(lane);
      count(lane, 1);
      pump();
    },

    /** Ends an admitted message, so that another one of its lane can begin. */
    end({ lane }: Message): void {
      lane.active--;
      pump();
    },

    /** Gate 2. Waits for a slot to send a request, if none is free; `release` must follow. Throws as `cancel` says. */
    acquire(task: Task): Promise<void> | undefined {
      const { lane } = task;
      if (isOver(task)) throw cancelled;
      if (lane.running < lane.maxRunning && budget.wait() === 0) {
        take(lane);
        lane.changed();
        return undefined;
      }
      return new Promise<void>((start, refuse) => {
        lane.continuing.push({ task, start, refuse });
        if (!lanes.includes(lane)) lanes.push(lane);
        count(lane, 1);
        pump();
      });
    },

    release({ lane }: Task): void {
      budget.give();
      lane.running--;
      pump();
      lane.changed();
    },

    /**
     * Waits for something other than a slot, and lets others go on. Rejects as `cancel` says, after `stop`; if it is `kept`,
     * only when its task, its lane or the queue is closed.
     */
    async wait<Value>(task: Task, work: () => Promise<Value>, kept = false, stop = () => {}): Promise<Value> {
      if (isOver(task)) throw cancelled;
      return new Promise((resolve, reject) => {
        const refuse = (error: SeoError) => {
          stop();
          reject(error);
        };
        const sleeper = { task, refuse, kept };
        sleepers.add(sleeper);
        count(task.lane, 1);
        const over = () => {
          if (sleepers.delete(sleeper)) count(task.lane, -1);
        };
        work().finally(over).then(resolve, reject);
      });
    },

    /** Waits for something that is needed for a slot to be of use: each that does holds back a new message. */
    async hold(task: Task, work: Promise<void>, kept: boolean): Promise<void> {
      held++;
      await this.wait(task, () => work, kept).finally(() => {
        held--;
        // After those that waited have acquired their slots.
        setImmediate(pump);
      });
    },

    /** Waits `ms`. */
    sleep(task: Task, ms: number): Promise<void> {
      const { lane } = task;
      lane.until = Math.max(lane.until, performance.now() + ms);
      let alarm: NodeJS.Timeout;
      const rest = () =>
        new Promise<void>((resolve) => {
          alarm = setTimeout(resolve, ms);
        });
      return this.wait(task, rest, false, () => clearTimeout(alarm));
    },

    /** Lets nothing start for `ms`, and then one request at a time to begin with. */
    pause(ms: number): void {
      budget.pause(ms);
      for (const lane of lanes) lane.changed();
    },

    /** Milliseconds for which a pause or the rate lets nothing start. */
    blockedFor: budget.blockedFor,

    /** Refuses everything that waits, or what waits of one lane or task. */
    cancel,

    /** Whether a task was cancelled or has ended. */
    isOver,

    /** Refuses everything that waits, and whatever comes later. */
    close(): void {
      closed = true;
      cancel(cancelled);
    },
  };
}

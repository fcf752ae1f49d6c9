import { performance } from "node:perf_hooks";
import { createBudget } from "./budget.js";
import { cancelled, SeoError } from "./errors.js";

/** One node's share of the scheduler, and the figures that its status shows. `changed` is called when one of them changes. */
export interface Lane {
  /** Requests in flight. */
  running: number;
  /** Messages and requests that wait: for admission, for a slot, or for something else, such as the next attempt. */
  waiting: number;
  /** Requests that wait for the outcome of one whose response was lost: their own, or another one of their page. */
  reconciling: number;
  /** How many requests can be in flight. */
  readonly maxRunning: number;
  /** Until when a failed attempt keeps a request waiting, in the clock of `performance.now()`. */
  until: number;
  /** Its node is gone: nothing more is sent for it. */
  closed: boolean;
  changed(): void;
  /** Messages that wait for admission. */
  readonly messages: Fifo<Queued>;
  /** Requests of admitted messages that wait for a slot. */
  readonly requests: Fifo<Queued>;
}

/** The requests of one message, which are canceled together. */
export interface Task {
  readonly lane: Lane;
  /** Its requests that wait or are in flight. */
  pending: number;
  /** The message has ended or was canceled: nothing more is sent for it. */
  closed: boolean;
  /** The task waits long for the outcome of a request whose response was lost: its own, or another one of its page. */
  isLost?: boolean;
}

/** A message or a request that waits at a gate of the scheduler. */
export interface Queued {
  readonly task: Task;
  /** Called when it passes. After a request, `release` must follow. */
  start(): void;
  /** Called when it cannot pass any more. */
  refuse(error: SeoError): void;
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
    /** Removes all that match, and returns them. */
    remove(matches: (item: T) => boolean): T[] {
      const all = [...outgoing.reverse(), ...incoming];
      outgoing = [];
      incoming = all.filter((item) => !matches(item));
      return all.filter(matches);
    },
  };
}

export const createLane = (maxRunning = Number.POSITIVE_INFINITY): Lane => ({
  running: 0,
  waiting: 0,
  reconciling: 0,
  maxRunning,
  until: 0,
  closed: false,
  changed() {},
  messages: createFifo(),
  requests: createFifo(),
});

export const createTask = (lane: Lane): Task => ({ lane, pending: 0, closed: false });

/** A task that waits for something other than a slot, and lets others go on. */
interface Wait {
  task: Task;
  how: WaitKind;
  refuse(error: SeoError): void;
}

/**
 * `exempt`: only the end of its task, its lane or the scheduler ends it, and no limit of the service. `lost`: so is one for
 * the outcome of a request whose response is, or may be, lost.
 */
type WaitKind = "usual" | "exempt" | "lost";

interface Limits {
  /** Requests in flight. */
  concurrency: number;
  /** Requests a minute. */
  rate: number;
  /** Messages that can wait. */
  size: number;
}

/**
 * Decides who is next. A message waits at two gates: it is admitted once a request could start, and each of its requests then
 * acquires a slot of the budget. Lanes take turns; within a lane, requests of admitted messages go before new messages.
 */
export class Scheduler {
  readonly #limits: Limits;
  readonly #budget: ReturnType<typeof createBudget>;
  /** The lanes in which something waits at a gate, in the order of their turns. */
  readonly #lanes: Lane[] = [];
  readonly #waits = new Set<Wait>();
  /** How much waits, at the gates or for something else. */
  #waiting = 0;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: Limits) {
    this.#limits = limits;
    this.#budget = createBudget(limits);
  }

  /** Gate 1. Has a message wait for admission; refuses it with SEO_QUEUE_FULL, or as `cancel` says. */
  admit(message: Queued): void {
    const { lane } = message.task;
    if (this.isOver(message.task)) {
      message.refuse(cancelled);
      return;
    }
    const { size, concurrency } = this.#limits;
    // A message that waits for something other than a slot keeps none from others, but its memory.
    const isCrowded = this.#waits.size >= Math.max(size, concurrency);
    const mustWait = isCrowded || !lane.messages.isEmpty() || isFull(lane) || this.#budget.wait() > 0;
    if (mustWait && this.#waiting >= size) {
      const sentence = `The queue is full: ${this.#waiting} messages are waiting (limit ${size}).`;
      message.refuse(new SeoError("SEO_QUEUE_FULL", sentence));
      return;
    }
    // If nothing waits, the lane is not entered, only to be left at once.
    if (!mustWait && this.#lanes.length === 0) {
      message.start();
      return;
    }
    lane.messages.push(message);
    this.#enter(lane);
  }

  /** Gate 2. Waits for a slot to send a request, if none is free; `release` must follow. Throws as `cancel` says. */
  acquire(task: Task): Promise<void> | undefined {
    const { lane } = task;
    if (this.isOver(task)) throw cancelled;
    if (!isFull(lane) && this.#budget.wait() === 0) {
      this.#acquire(lane);
      lane.changed();
      return undefined;
    }
    return new Promise<void>((start, refuse) => {
      lane.requests.push({ task, start, refuse });
      this.#enter(lane);
    });
  }

  release({ lane }: Task): void {
    this.#budget.release();
    lane.running--;
    this.#pump();
    lane.changed();
  }

  /** Waits for something other than a slot, and lets others go on. Rejects as `cancel` says. */
  async wait<Value>(task: Task, work: () => Promise<Value>, how: WaitKind = "usual"): Promise<Value> {
    if (this.isOver(task)) throw cancelled;
    return new Promise((resolve, refuse) => {
      const wait = { task, how, refuse };
      this.#waits.add(wait);
      this.#countWait(wait, 1);
      work()
        .finally(() => this.#endWait(wait))
        .then(resolve, refuse);
    });
  }

  #endWait(wait: Wait): void {
    if (this.#waits.delete(wait)) this.#countWait(wait, -1);
  }

  #countWait({ task, how }: Wait, change: 1 | -1): void {
    if (how === "lost") {
      task.lane.reconciling += change;
      task.isLost = change === 1;
    }
    this.#count(task.lane, change);
  }

  /** Waits `ms`. */
  sleep(task: Task, ms: number): Promise<void> {
    const { lane } = task;
    lane.until = Math.max(lane.until, performance.now() + ms);
    let alarm: NodeJS.Timeout | undefined;
    const rest = () =>
      new Promise<void>((resolve) => {
        alarm = setTimeout(resolve, ms);
      });
    return this.wait(task, rest).finally(() => clearTimeout(alarm));
  }

  /** Lets nothing start for `ms`, and then one request at a time to begin with. */
  pause(ms: number): void {
    this.#budget.pause(ms);
    for (const lane of this.#lanes) lane.changed();
  }

  /** Milliseconds for which a pause or the rate lets nothing start. */
  blockedFor(): number {
    return this.#budget.blockedFor();
  }

  /** Whether a task was canceled or has ended. */
  isOver(task: Task): boolean {
    return this.#closed || task.lane.closed || task.closed;
  }

  /** Refuses everything that waits, or what waits of one lane or task. */
  cancel(error: SeoError, scope?: Lane | Task): void {
    const matches = (task: Task) => scope === undefined || task === scope || task.lane === scope;
    const waits = [...this.#waits].filter(({ task, how }) => matches(task) && (how === "usual" || this.isOver(task)));
    for (const wait of waits) {
      this.#endWait(wait);
      wait.refuse(error);
    }
    const refused = this.#lanes
      .flatMap(({ requests, messages }) => [requests, messages])
      .flatMap((fifo) => fifo.remove(({ task }) => matches(task)));
    for (const lane of [...this.#lanes]) if (isIdle(lane)) this.#lanes.splice(this.#lanes.indexOf(lane), 1);
    for (const queued of refused) {
      this.#count(queued.task.lane, -1);
      queued.refuse(error);
    }
    if (this.#lanes.length > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Refuses everything that waits, and whatever comes later. */
  close(): void {
    this.#closed = true;
    this.cancel(cancelled);
  }

  #count(lane: Lane, change: number): void {
    this.#waiting += change;
    lane.waiting += change;
    lane.changed();
  }

  #enter(lane: Lane): void {
    if (!this.#lanes.includes(lane)) this.#lanes.push(lane);
    this.#count(lane, 1);
    this.#pump();
  }

  #acquire(lane: Lane): void {
    this.#budget.acquire();
    lane.running++;
  }

  /** Serves lanes in turn for as long as a request can start. */
  #pump(): void {
    for (let lane = this.#lanes.find(canGoOn); lane; lane = this.#lanes.find(canGoOn)) {
      const wait = this.#budget.wait();
      if (wait > 0) {
        if (wait < Number.POSITIVE_INFINITY) this.#wakeIn(wait);
        return;
      }
      this.#lanes.splice(this.#lanes.indexOf(lane), 1);
      const request = lane.requests.shift();
      if (request) this.#acquire(lane);
      const next = request ?? lane.messages.shift();
      if (!isIdle(lane)) this.#lanes.push(lane);
      this.#count(lane, -1);
      // A message acquires its first slot within this call, so that the next one does not count on it.
      next?.start();
    }
  }

  #wakeIn(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#pump();
    }, Math.ceil(ms));
  }
}

/** No further request of a lane can be in flight. */
const isFull = ({ running, maxRunning }: Lane) => running >= maxRunning;

/** Nothing of a lane waits at a gate. */
const isIdle = ({ messages, requests }: Lane) => messages.isEmpty() && requests.isEmpty();

const canGoOn = (lane: Lane) => !isIdle(lane) && !isFull(lane);

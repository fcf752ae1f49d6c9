import type { SeoError } from "./errors.js";

/** One node's share of the queue, and the figures that its status shows. `changed` is called when one of them changes. */
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

/** The requests of one message, which are cancelled together. */
export interface Task {
  readonly lane: Lane;
  /** Its requests that wait or are in flight. */
  pending: number;
  /** The message has ended or was cancelled: nothing more is sent for it. */
  closed: boolean;
  /** The task waits for the outcome of a request whose response was lost: its own, or another one of its page. */
  isLost?: boolean;
}

/** A message or a request that waits at a gate of the queue. */
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
    /** Takes out all that match. */
    take(matches: (item: T) => boolean): T[] {
      const all = [...outgoing.reverse(), ...incoming];
      outgoing = [];
      incoming = all.filter((item) => !matches(item));
      return all.filter(matches);
    },
  };
}

/** `maxRunning`: how many requests can be in flight. */
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

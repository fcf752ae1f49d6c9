import { SeoError } from "./errors.js";

/** One node's share of the queue. `changed` is called when a figure of it does. */
export interface Lane {
  running: number;
  /** Messages that wait for their turn or for another attempt. */
  waiting: number;
  /** Messages that have begun and not ended, and how many of them there may be. */
  open: number;
  most: number;
  /** Until when an attempt that failed keeps a message waiting, in the clock of `performance.now()`. */
  until: number;
  /** Its node is gone: nothing more is sent for it. */
  closed: boolean;
  changed(): void;
}

export const createLane = (most = Number.POSITIVE_INFINITY): Lane => ({
  running: 0,
  waiting: 0,
  open: 0,
  most,
  until: 0,
  closed: false,
  changed() {},
});

/** Something that waits for its turn. */
export interface Turn {
  lane: Lane;
  /** When its message came, in the clock of `performance.now()`. */
  since: number;
  /** It begins a message, whose `end` must follow. */
  begins?: true;
  /** It has come: a request may be sent, and `leave` must follow. */
  start(): void;
  /** It will not come. */
  refuse(error: SeoError): void;
}

const MINUTE = 60_000;

/** Whether a lane may not begin another message yet. */
const isFull = ({ open, most }: Lane) => open >= most;

/**
 * The budget that all nodes of one service share: `concurrency` requests at a time, `rate` a minute, `size` waiting.
 * First come first served within a lane, in turns between lanes.
 */
export function createQueue({ concurrency, rate, size }: { concurrency: number; rate: number; size: number }) {
  const lanes = new Map<Lane, Turn[]>();
  const sleeping = new Map<Turn, NodeJS.Timeout>();
  const starts: number[] = [];
  let running = 0;
  let waiting = 0;
  let width = concurrency;
  let pausedUntil = 0;
  let timer: NodeJS.Timeout | undefined;

  const nextStart = () => Math.max(pausedUntil, starts.length < rate ? 0 : (starts[0] ?? 0) + MINUTE);

  /** The next lane's first turn, for the lane whose turn it is goes to the end. */
  function take(): Turn | undefined {
    for (const [lane, turns] of lanes) {
      const [turn] = turns as [Turn];
      if (turn.begins && isFull(lane)) continue;
      turns.shift();
      lanes.delete(lane);
      if (turns.length > 0) lanes.set(lane, turns);
      return turn;
    }
    return undefined;
  }

  function wake(): void {
    while (running < width && lanes.size > 0) {
      const now = performance.now();
      const wait = nextStart() - now;
      if (wait > 0) {
        timer ??= setTimeout(() => {
          timer = undefined;
          wake();
        }, Math.ceil(wait));
        return;
      }
      const turn = take();
      if (!turn) return;
      const { lane } = turn;
      if (rate !== Number.POSITIVE_INFINITY && starts.push(now) > rate) starts.shift();
      running++;
      waiting--;
      lane.running++;
      lane.waiting--;
      if (turn.begins) lane.open++;
      turn.start();
      lane.changed();
    }
  }

  function put(turn: Turn): void {
    const turns = lanes.get(turn.lane) ?? [];
    // What goes on comes before what begins, also where both came at the same time.
    const precedes = ({ since, begins }: Turn) =>
      since < turn.since || (since === turn.since && (turn.begins || !begins));
    turns.splice(turns.findLastIndex(precedes) + 1, 0, turn);
    lanes.set(turn.lane, turns);
    wake();
  }

  return {
    /**
     * Waits for the lane's turn to send a request; refuses with SEO_QUEUE_FULL, or as `refuse` says.
     * With `delay`, in milliseconds, the message has had a turn before: it is not refused for want of room.
     */
    enter(turn: Turn, delay?: number): void {
      const { lane } = turn;
      const waits = running >= width || nextStart() > performance.now() || (turn.begins && isFull(lane));
      if (delay === undefined && waiting >= size && waits) {
        turn.refuse(
          new SeoError("SEO_QUEUE_FULL", `The queue is full: ${waiting} messages are waiting (limit ${size}).`),
        );
        return;
      }
      waiting++;
      lane.waiting++;
      if (!delay) {
        put(turn);
      } else {
        lane.until = Math.max(lane.until, performance.now() + delay);
        const timer = setTimeout(() => {
          sleeping.delete(turn);
          put(turn);
        }, delay);
        sleeping.set(turn, timer);
      }
      lane.changed();
    },

    /** Gives the place to the next. After a pause, each that leaves lets one more in than before. */
    leave(lane: Lane): void {
      running--;
      lane.running--;
      if (width < concurrency && performance.now() >= pausedUntil) width++;
      wake();
      lane.changed();
    },

    /** A message of the lane has ended, and another may begin. */
    end(lane: Lane): void {
      lane.open--;
      wake();
    },

    /** Lets nothing start for `ms`, and then one request at a time to begin with. */
    pause(ms: number): void {
      pausedUntil = Math.max(pausedUntil, performance.now() + ms);
      width = 1;
      for (const lane of lanes.keys()) lane.changed();
    },

    /** Milliseconds until the service may be asked again. */
    pausedFor: () => Math.max(0, pausedUntil - performance.now()),

    /** Refuses all that waits, or what waits in one lane. */
    refuse(error: SeoError, only?: Lane): void {
      const waits = (lane: Lane) => only === undefined || lane === only;
      const refused = [...sleeping.keys()].filter(({ lane }) => waits(lane));
      for (const [lane, turns] of lanes) {
        if (!waits(lane)) continue;
        lanes.delete(lane);
        for (const turn of turns) refused.push(turn);
      }
      for (const turn of refused) {
        clearTimeout(sleeping.get(turn));
        sleeping.delete(turn);
        waiting--;
        turn.lane.waiting--;
        turn.refuse(error);
      }
      if (lanes.size > 0) return;
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import { taken } from "../trouble.js";
import { lostData } from "./faults.js";
import type { Queue } from "./server.js";

/** A segment's rows. What is appended behind them does not count, and is appended to the next segment. */
const SIZE = 2000;
const MISSING = -1;
const UNIQUE_VIOLATION = "23505";
/** Milliseconds. */
const COLLISION = 4;

/** A list of texts that all machines append to and read in the same order. */
export interface Log {
  /** Resolves when `take` got the text, and all before it. Rejects with `taken` if the log was removed. */
  append(text: string): Promise<void>;
  /** Reads what was appended since, also by others. */
  read(): Promise<void>;
}

export const isMissing = (cause: unknown): boolean => Object(cause).code === MISSING;

/** The ID of the job that holds a segment of a log. */
export const segmentOf = (log: string, number: number) => `${log}-${number}`;
export const logOf = (segment: string) => segment.slice(0, segment.lastIndexOf("-"));

/**
 * A log that is kept as the logs of jobs, which BullMQ appends to and never changes; the first is there as long as the log.
 * Its segments are short because PostgreSQL counts a job's rows whenever they are read.
 */
export function createLog(
  queue: Queue,
  name: string,
  exists: () => Promise<boolean>,
  take: (text: string) => void,
): Log {
  let segment = 0;
  let position = 0;
  /** The text before the position. */
  let before: string | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const result = turn.then(work);
    turn = result.catch(() => {});
    return result;
  };

  function next(text: string): void {
    position++;
    before = text;
    take(text);
    if (position < SIZE) return;
    segment++;
    position = 0;
    before = undefined;
  }

  async function readAll(): Promise<void> {
    for (;;) {
      const from = segment;
      const known = before === undefined ? 0 : 1;
      const { logs } = await queue.getJobLogs(segmentOf(name, segment), position - known, SIZE - 1, true);
      // Also after a failover to a server that lacks the last texts, which has got others since.
      if (known && logs[0] !== before) throw (await exists()) ? lostData : taken;
      for (const text of logs.slice(known)) next(text);
      if (segment === from) return;
    }
  }

  async function add(text: string): Promise<number> {
    for (;;) {
      const id = segmentOf(name, segment);
      try {
        return await queue.getBackend().addLog(id, text);
      } catch (cause) {
        // Another machine's row came in between.
        if (Object(cause).code === UNIQUE_VIOLATION) {
          await sleep(Math.random() * COLLISION);
          continue;
        }
        if (!isMissing(cause)) throw cause;
        if (!(await exists())) throw taken;
        await queue.add("log", {}, { jobId: id });
      }
    }
  }

  return {
    append: (text) =>
      inTurn(async () => {
        let count = await add(text);
        for (; count > SIZE; count = await add(text)) await readAll();
        const from = segment;
        await readAll();
        // The server has lost the text meanwhile, and nothing was appended since.
        if (segment === from && position < count) throw (await exists()) ? lostData : taken;
      }),
    read: () => inTurn(readAll),
  };
}

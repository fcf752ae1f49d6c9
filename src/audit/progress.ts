import type { Batch } from "./store.js";

/** How far a batch is, in rows. */
export interface Progress {
  batch: string;
  total: number;
  done: number;
  created: number;
  regenerated: number;
  fresh: number;
  failed: number;
  uncertain: number;
  waiting: number;
  /** How many of them wait only because the response to their request was lost. */
  reconciling: number;
  /** Rows that a reset dropped. */
  dropped: number;
  perMinute: number;
  /** Undefined as long as it cannot be estimated. */
  secondsLeft?: number | undefined;
  /** Until the next request, because of a rate limit or after a failed attempt. Absent if nothing keeps it waiting. */
  secondsToWait?: number;
  /** Why it is paused, as a sentence. */
  paused: string | false;
  finished: boolean;
  /** The end may have been told before, by a process that died. */
  repeated?: true;
}

const REMEMBERED = 200;
const MINUTE = 60_000;

/** Measures how fast requests end: the last 200 of them, so that hours do not hide the last minutes. */
export function createPace(now: () => number) {
  const times = [now()];
  return {
    ended(): void {
      times.push(now());
      if (times.length > REMEMBERED) times.shift();
    },
    perMinute(): number {
      const elapsed = now() - (times[0] as number);
      return elapsed > 0 ? ((times.length - 1) * MINUTE) / elapsed : 0;
    },
  };
}

export type Pace = ReturnType<typeof createPace>;

const round = (value: number) => (value < 10 ? Math.round(value * 10) / 10 : Math.round(value));

/**
 * `lost`: the pages whose response was lost. How long these, and held failures, take does not depend on the pace. `stuck`: until
 * one of them is found, nothing else can go on. `wait`: the milliseconds for which no request can start.
 */
export function progressOf(
  batch: Batch,
  lost: Iterable<number>,
  pace: Pace,
  paused: string | false,
  finished: boolean,
  wait: number,
  stuck: boolean,
): Progress {
  const { created, regenerated, fresh, failed, uncertain } = batch.counts;
  const done = created + regenerated + fresh + failed + uncertain;
  const rest = batch.total() - done;
  const perMinute = pace.perMinute();
  const rowsOf = (some: Iterable<number>) => Array.from(some, batch.untold).flat().length;
  const reconciling = rowsOf(lost);
  const ended = rest === 0 || batch.dropped();
  const requests = !ended && !stuck && rest > reconciling + rowsOf(batch.held());
  const left = ended ? 0 : requests ? Math.round((rest * 60) / perMinute) : undefined;
  return {
    batch: batch.name,
    total: batch.total(),
    done,
    created,
    regenerated,
    fresh,
    failed,
    uncertain,
    waiting: batch.dropped() ? 0 : rest,
    reconciling: batch.dropped() ? 0 : reconciling,
    dropped: batch.dropped() ? rest : 0,
    perMinute: round(perMinute),
    ...(!paused && Number.isFinite(left) && { secondsLeft: left }),
    ...(!paused && requests && wait > 0 && { secondsToWait: Math.ceil(wait / 1000) }),
    paused,
    finished,
  };
}

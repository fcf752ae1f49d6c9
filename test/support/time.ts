import { setTimeout as sleep } from "node:timers/promises";

/** Looks every `between` ms whether something holds. Rejects after `patience` ms, with what `now` says then. */
export async function until(
  holds: () => unknown,
  { patience = 150_000, between = 5, now = () => `${holds}` } = {},
): Promise<void> {
  for (const end = Date.now() + patience; !(await holds()); await sleep(between))
    if (Date.now() > end) throw new Error(`Timed out after ${patience} ms: ${now()}`);
}

/** Removes the back-off between attempts until the returned function is called. */
export function stopBackOff(): () => void {
  const { random } = Math;
  Math.random = () => 0;
  return () => {
    Math.random = random;
  };
}

/** Replaces `performance.now()` and timers by a clock that only `pass` advances. */
export function stopTime() {
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
  const { now: realNow } = performance;
  const timers = new Map<number, { at: number; run(): void }>();
  let now = 1000;
  let ids = 0;
  const start = (run: () => void, ms = 0) => {
    timers.set(++ids, { at: now + ms, run });
    return ids;
  };
  performance.now = () => now;
  Object.assign(globalThis, { setTimeout: start, clearTimeout: (id: number) => timers.delete(id) });

  return {
    now: () => now,
    /** The number of pending timers. */
    timers: () => timers.size,
    /** Advances the clock by `ms`, timer by timer, and lets their promises settle. */
    async pass(ms: number): Promise<void> {
      const until = now + ms;
      for (;;) {
        await new Promise(setImmediate);
        const [next] = [...timers].sort(([, a], [, b]) => a.at - b.at);
        if (!next || next[1].at > until) break;
        const [id, { at, run }] = next;
        timers.delete(id);
        now = Math.max(now, at);
        run();
      }
      now = until;
    },
    goOn(): void {
      performance.now = realNow;
      Object.assign(globalThis, real);
    },
  };
}

/** Stops the time in each test of a suite. */
export function stopTimeInEach() {
  const time = {} as ReturnType<typeof stopTime>;
  beforeEach(() => void Object.assign(time, stopTime()));
  afterEach(() => time.goOn());
  return time;
}

/**
 * Makes a minute last 60 ms for timers of more than 45 s, until the returned function is called. `waits` then holds their milliseconds.
 */
export function shortenMinutes(waits: number[] = []): () => void {
  const { setTimeout } = globalThis;
  const shortened = (run: () => void, ms = 0, ...rest: unknown[]) => {
    if (ms <= 45_000) return setTimeout(run, ms, ...rest);
    waits.push(ms);
    return setTimeout(run, ms / 1000, ...rest);
  };
  Object.assign(globalThis, { setTimeout: Object.assign(shortened, setTimeout) });
  return () => {
    Object.assign(globalThis, { setTimeout });
  };
}

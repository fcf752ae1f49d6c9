import { performance } from "node:perf_hooks";

const MINUTE = 60_000;

/** How many requests may start now: `concurrency` at a time, `rate` a minute, none in a pause. */
export function createBudget({ concurrency, rate }: { concurrency: number; rate: number }) {
  /** When the last `rate` requests started; a ring, so the next start overwrites the one that is `rate` starts back. */
  const starts: number[] = [];
  let started = 0;
  let running = 0;
  let width = concurrency;
  let pausedUntil = 0;

  function blockedFor(): number {
    const until = Math.max(pausedUntil, (starts[started % rate] ?? -MINUTE) + MINUTE);
    return until === 0 ? 0 : Math.max(0, until - performance.now());
  }

  return {
    /** Milliseconds until a request may start: 0 is now, and Infinity until one of those in flight has ended. */
    wait: () => (running < width ? blockedFor() : Number.POSITIVE_INFINITY),

    /** Milliseconds for which a pause or the rate lets nothing start, however few are in flight. */
    blockedFor,

    acquire(): void {
      running++;
      if (rate !== Number.POSITIVE_INFINITY) starts[started++ % rate] = performance.now();
    },

    /** After a pause, each request that ends makes room for one more than before. */
    release(): void {
      running--;
      if (width < concurrency && performance.now() >= pausedUntil) width++;
    },

    /** Lets nothing start for `ms`, and then one request at a time to begin with. */
    pause(ms: number): void {
      pausedUntil = Math.max(pausedUntil, performance.now() + ms);
      width = 1;
    },
  };
}

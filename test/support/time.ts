/** From now on no attempt waits for its back-off, until what this returns is called. */
export function stopBackOff(): () => void {
  const { random } = Math;
  Math.random = () => 0;
  return () => {
    Math.random = random;
  };
}

/** Time that passes only when it is told to: `performance.now()` and the timers of what is under test. */
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
    /** How many timers run. */
    timers: () => timers.size,
    /** Lets `ms` pass, timer by timer, and what they start come to its end. */
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

/** Time that only rises, and timers. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Runs something once, later. Returns how to cancel it. */
  later(ms: number, run: () => void): () => void;
}

export const clock: Clock = {
  now: () => performance.now(),
  later(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

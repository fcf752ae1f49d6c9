/** Time that passes only when nothing is left to do, so that hours take milliseconds. */
export function createClock() {
  let time = 0;
  const timers: { at: number; wake(): void }[] = [];
  return {
    now: () => time,
    sleep: (ms: number) =>
      new Promise<void>((wake) => {
        const at = time + ms;
        const place = timers.findIndex((timer) => timer.at > at);
        timers.splice(place < 0 ? timers.length : place, 0, { at, wake });
      }),
    /** Runs until `work` has ended. */
    async run<Value>(work: Promise<Value>): Promise<Value> {
      let ended = false;
      const settle = () => {
        ended = true;
      };
      work.then(settle, settle);
      for (;;) {
        for (let turn = 0; turn < 30; turn++) await Promise.resolve();
        if (ended) return work;
        const timer = timers.shift();
        if (!timer) throw new Error("Nothing happens any more, and the work has not ended.");
        time = timer.at;
        timer.wake();
      }
    },
  };
}

export type Clock = ReturnType<typeof createClock>;

import type { Node } from "node-red";

const MINUTE = 60_000;
/** A timer of more milliseconds would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * Sends a node an empty message every `minutes`, counted from the end of its last message, whichever that was. To spread the load
 * of several nodes, each wait is longer by a random part of up to a tenth, at most a minute. Blank `minutes`: never.
 */
export function createInterval(node: Node, minutes: unknown) {
  /** In milliseconds; 0 if it is invalid, which is an error of the first message. */
  const interval = Number.isSafeInteger(Number(minutes)) ? Math.max(Number(minutes), 0) * MINUTE : 0;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  /** A message was received since the start. */
  let wasBusy = false;

  function run(): void {
    // Before the message is received, which ends the wait: a hook of Node-RED can drop it.
    again();
    node.receive({});
  }

  function wait(ms: number): void {
    if (closed) return;
    timer = setTimeout(() => (ms > LONGEST_TIMER ? wait(ms - LONGEST_TIMER) : run()), Math.min(ms, LONGEST_TIMER));
  }
  const spread = (ms: number) => ms + Math.random() * Math.min(ms / 10 + 1000, MINUTE);

  function again(): void {
    if (interval > 0) wait(spread(interval));
  }

  node.on("close", () => {
    closed = true;
    clearTimeout(timer);
  });

  return {
    /** Continues after a start of the node. `read` resolves with the time of the last run, in milliseconds; without one, a run is due. */
    async resume(read: () => Promise<number | undefined>): Promise<void> {
      if (String(minutes ?? "").trim() === "") return;
      // A context store that cannot be read is an error of the first message, too.
      const ranAt = Number(await read().catch(() => 0)) || 0;
      if (wasBusy) return;
      // A last run in the future means that the clock was set.
      wait(spread(Math.min(Math.max(ranAt + interval - Date.now(), 0), interval)));
    },
    /** `count` messages have not ended. */
    busy(count: number): void {
      wasBusy = true;
      clearTimeout(timer);
      if (count === 0) again();
    },
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Gate } from "../requests.js";
import type { Lease, Server } from "./server.js";

const MINUTE = 60_000;
/** A request is sent up to a second after it was permitted. */
const DELAY = 1000;
/** Up to so many a minute are permitted one by one. */
const MOST_SINGLE = 1200;
const PERMITS = 20;
const SOON = 20;

/** How many requests can begin in how many milliseconds, so that no minute has more than `rate`. */
export function limitOf(rate: number): { max: number; duration: number } {
  if (rate <= MOST_SINGLE) return { max: 1, duration: Math.ceil((MINUTE + DELAY) / rate) };
  const max = Math.ceil(rate / MOST_SINGLE);
  // A minute begins and ends within such a duration.
  return { max, duration: Math.ceil((MINUTE + DELAY) / (rate / max - 2)) };
}

/** A gate on BullMQ's global rate limit: a request takes a job from a queue, and puts it back. */
export async function openGate(server: Server, name: string, rate: number | undefined, lease: Lease): Promise<Gate> {
  const queue = server.queue(name);
  const worker = server.worker(name, lease);
  let turn: Promise<void> = Promise.resolve();
  if (rate === undefined) await queue.removeGlobalRateLimit();
  else {
    const { max, duration } = limitOf(rate);
    await queue.setGlobalRateLimit(max, duration);
    for (let permit = 0; permit < PERMITS; permit++) await queue.add("permit", {}, { jobId: `permit-${permit}` });
    await worker.startStalledCheckTimer();
  }

  async function take(): Promise<void> {
    for (;;) {
      if (rate !== undefined) {
        const job = await worker.getNextJob(name, { block: false });
        if (job) {
          await job.moveToWait(name);
          return;
        }
      }
      const wait = await queue.getRateLimitTtl();
      if (wait <= 0 && rate === undefined) return;
      await sleep(Math.max(wait, SOON), undefined, { ref: false });
    }
  }

  return {
    permit() {
      const result = turn.then(take);
      turn = result.catch(() => {});
      return result;
    },
    paused(ms) {
      const pause = async () => {
        if ((await queue.getRateLimitTtl()) < ms) await queue.rateLimit(Math.ceil(ms));
      };
      // A server that cannot be reached holds everything up by itself.
      pause().catch(() => {});
    },
  };
}

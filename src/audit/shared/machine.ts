import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, Server } from "./server.js";

/** A machine as the others see it: a job that it has locked. If it stops renewing the lock, BullMQ takes the job away. */
export interface Machine {
  /** A new one whenever the lock was lost. */
  id(): string;
  /** Renews the lock, or gets a new one under another name. Rejects if the server does not respond. */
  renew(): Promise<void>;
  /** The machines that have their lock. */
  living(): Promise<Set<string>>;
  leave(): Promise<void>;
}

/** Milliseconds. */
const COLLISION = 50;

export async function joinMachines(server: Server, name: string, lease: Lease): Promise<Machine> {
  const queue = server.queue(name);
  const worker = server.worker(name, lease);
  let id = "";
  let renewing: Promise<void> | undefined;

  /** Other jobs that are waiting are of machines that have lost their lock. */
  async function enter(): Promise<void> {
    for (;;) {
      // BullMQ rejects IDs that are numbers.
      const own = `m${randomBytes(4).toString("hex")}`;
      await queue.add("machine", {}, { jobId: own, removeOnComplete: true });
      for (let job = await worker.getNextJob(own, { block: false }); job; ) {
        if (job.id === own) {
          id = own;
          return;
        }
        // A machine that wakes up has its own again.
        await job.moveToCompleted(null, own, false).catch(() => {});
        job = await worker.getNextJob(own, { block: false });
      }
      // Another machine that entered at the same time has taken this one's job away.
      await sleep(Math.random() * COLLISION);
    }
  }

  async function renew(): Promise<void> {
    const [lost] = await worker.extendJobLocks([id], [id], lease.lockDuration);
    if (lost !== undefined) await enter();
  }

  await enter();
  await worker.startStalledCheckTimer();
  return {
    id: () => id,
    renew() {
      renewing ??= renew().finally(() => {
        renewing = undefined;
      });
      return renewing;
    },
    async living() {
      return new Set(await queue.getRanges(["active"], 0, -1));
    },
    async leave() {
      const job = await queue.getJob(id);
      await job?.moveToCompleted(null, id, false);
    },
  };
}

import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Job as BullJob, Queue as BullQueue, Worker as BullWorker, IQueueBackend } from "bullmq";
import { GOODBYE, type Place } from "./driver.js";
import { fromServer } from "./faults.js";
import { openPostgres } from "./postgres.js";
import { openRedis } from "./redis.js";

export type { Place };

export type Queue = BullQueue<unknown, unknown, string, unknown, unknown, string, IQueueBackend>;
export type QueueJob = BullJob<unknown, unknown, string>;
type Worker = BullWorker<unknown, unknown, string, IQueueBackend>;

/** How long a machine that does not report keeps the lead, and how often that is checked. Milliseconds. */
export interface Lease {
  lockDuration: number;
  stalledInterval: number;
}

/** An integer of PostgreSQL. */
const MOST_STALLS = 2 ** 31 - 1;

/**
 * Connects to the server; its queues share the connection. Rejects with SEO_CONFIG if the password, the rights or a package is
 * at fault, or with SEO_NETWORK.
 */
export async function connect(place: Place) {
  const url = new URL(place.url);
  const openDriver = url.protocol.startsWith("redis") ? openRedis : openPostgres;
  const { version, warning, factory, close, destroy } = await openDriver(url, place).catch((cause) => {
    throw fromServer(cause, url);
  });
  const bullmq = await import("bullmq");
  const parts: { close(): Promise<unknown> }[] = [];
  function register<Part extends Queue | Worker>(part: Part): Part {
    // The calls of the queue reject with the same errors.
    EventEmitter.prototype.on.call(part, "error", () => {});
    parts.push(part);
    return part;
  }
  return {
    /** Such as `Redis 7.0.15`. */
    version,
    /** A setting that a user should change, although the server works. */
    warning,
    queue: (name: string) => register(new bullmq.Queue(name, { connection: {} }, factory) as Queue),
    /** Fetches nothing by itself. */
    worker(name: string, lease: Lease): Worker {
      const options = { ...lease, connection: {}, autorun: false, maxStalledCount: MOST_STALLS };
      return register(new bullmq.Worker(name, null, options, factory) as Worker);
    },
    /** Ends within two seconds, whatever the server does. */
    async close(): Promise<void> {
      const ended = Promise.all(parts.map((part) => part.close()))
        .then(close)
        .catch(() => {});
      await Promise.race([ended, sleep(GOODBYE, undefined, { ref: false })]);
      destroy();
    },
  };
}

export type Server = Awaited<ReturnType<typeof connect>>;

import type { BackendFactory } from "bullmq";
import { SeoError } from "../../errors.js";
import { DEFAULT_PREFIX, type Driver, load, PATIENCE, type Place } from "./driver.js";

/** Milliseconds after which it connects again. */
const BETWEEN = 1000;
const OLDEST = "6.2";
/** Any other policy removes jobs. */
const SAFE = "noeviction";

/** Connects to Redis. Rejects as its driver does. */
export async function openRedis(url: URL, { prefix = DEFAULT_PREFIX, tls }: Place): Promise<Driver> {
  const [bullmq, { Redis }] = await load("ioredis", () => import("ioredis"));
  const client = new Redis(url.href, {
    lazyConnect: true,
    maxRetriesPerRequest: null,
    connectTimeout: PATIENCE,
    commandTimeout: PATIENCE,
    // A command whose response was lost is not sent again: a list would be saved once more after all of its pages.
    autoResendUnfulfilledCommands: false,
    // Without an end that closes it, a connection to a host that is gone would be kept for a quarter of an hour.
    socketTimeout: 2 * PATIENCE,
    retryStrategy: () => BETWEEN,
    // After a failover the server may have become a replica.
    reconnectOnError: ({ message }) => message.startsWith("READONLY"),
    ...((tls || url.protocol === "rediss:") && { tls: { ...tls } }),
  });
  let error: unknown;
  client.on("error", (cause) => {
    error = cause;
  });
  try {
    await client.connect().catch((cause) => {
      throw error ?? cause;
    });
    const info = await client.info();
    const fieldOf = (name: string) => new RegExp(`^${name}:(\\S+)`, "m").exec(info)?.[1];
    const version = fieldOf("redis_version") ?? "";
    const policy = fieldOf("maxmemory_policy") ?? SAFE;
    const place = `the queue's server ${url.host}`;
    const warnings = [
      policy !== SAFE &&
        `If its memory is full, ${place} removes jobs, because its maxmemory-policy is ${policy}: set it to ${SAFE}.`,
      fieldOf("aof_enabled") === "0" &&
        `If it restarts, ${place} loses the last minutes or everything, because its appendonly is no: set it to yes.`,
    ];
    if (version.localeCompare(OLDEST, "en", { numeric: true }) < 0) {
      const sentence = `The queue needs Redis ${OLDEST} or later; the server is Redis ${version}.`;
      throw new SeoError("SEO_CONFIG", sentence, { stage: "version" });
    }
    // BullMQ writes what it finds to the console, and reports connections that fail to the queues as well.
    const connection = new bullmq.RedisConnection(client, { shared: true, blocking: false, skipVersionCheck: true });
    connection.on("error", () => {});
    await connection.client;
    const keys = new bullmq.QueueKeys(prefix);
    const factory = (name: string, opts: object) => {
      const toKey = (type: string) => keys.toKey(name, type);
      const options = { ...opts, connection: client, prefix } as never;
      return new bullmq.RedisQueueBackend(connection, name, keys.getKeys(name), toKey, options, undefined, false);
    };
    return {
      version: `Redis ${version}`,
      warning: warnings.filter(Boolean).join(" ") || undefined,
      factory: factory as unknown as BackendFactory,
      close: () => client.quit(),
      destroy: () => client.disconnect(),
    };
  } catch (cause) {
    client.disconnect();
    throw cause;
  }
}

import type { BackendFactory } from "bullmq";
import { SeoError } from "../../errors.js";
import { BETWEEN, DEFAULT_PREFIX, type Driver, load, PATIENCE, type Place } from "./driver.js";

const OLDEST_REDIS = [6, 2];

/** Connects to Redis. Rejects as its driver does. */
export async function openRedis(url: URL, { prefix = DEFAULT_PREFIX, tls }: Place): Promise<Driver> {
  const packages = "bullmq ioredis";
  const [bullmq, { Redis }] = await Promise.all([
    load("bullmq", packages, import("bullmq")),
    load("ioredis", packages, import("ioredis")),
  ]);
  const client = new Redis(url.href, {
    lazyConnect: true,
    maxRetriesPerRequest: null,
    connectTimeout: PATIENCE,
    commandTimeout: PATIENCE,
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
    const version = /redis_version:(\S+)/.exec(await client.info("server"))?.[1] ?? "";
    const [major = 0, minor = 0] = version.split(".").map(Number);
    const [oldest = 0, second = 0] = OLDEST_REDIS;
    if (major < oldest || (major === oldest && minor < second))
      throw new SeoError(
        "SEO_CONFIG",
        `The queue needs Redis ${OLDEST_REDIS.join(".")} or later; the server is Redis ${version}.`,
        { stage: "version" },
      );
    // BullMQ reports connections that fail to the queues as well, whose errors nobody needs twice.
    const connection = new bullmq.RedisConnection(client, { shared: true, blocking: false });
    connection.on("error", () => {});
    await connection.client;
    const keys = new bullmq.QueueKeys(prefix);
    const factory = (name: string, opts: object) =>
      new bullmq.RedisQueueBackend(
        connection,
        name,
        keys.getKeys(name),
        (type) => keys.toKey(name, type),
        { ...opts, connection: client, prefix } as never,
        undefined,
        false,
      );
    return {
      version: `Redis ${version}`,
      factory: factory as unknown as BackendFactory,
      close: () => client.quit(),
      destroy: () => client.disconnect(),
    };
  } catch (cause) {
    client.disconnect();
    throw cause;
  }
}

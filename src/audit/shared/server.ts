import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { BackendFactory, Queue as BullQueue, Worker as BullWorker, IQueueBackend } from "bullmq";
import type { TlsOptions } from "../../config.js";
import { SeoError } from "../../errors.js";
import { fromServer, isHopeless, missing } from "./faults.js";

/** Where the jobs are kept: `redis://`, `rediss://` or `postgres://`. */
export interface Place {
  url: string;
  /** Begins the names of all keys in Redis; in PostgreSQL the name of the schema. */
  prefix?: string | undefined;
  tls?: TlsOptions | undefined;
}

export type Queue = BullQueue<unknown, unknown, string, unknown, unknown, string, IQueueBackend>;
export type Worker = BullWorker<unknown, unknown, string, IQueueBackend>;

/** How long a machine that does not report keeps its pages, and how often that is checked. Milliseconds. */
export interface Lease {
  lockDuration: number;
  stalledInterval: number;
}

/** A connection to the server. Its queues share it. */
export interface Server {
  /** Such as `Redis 7.0.15`. */
  readonly version: string;
  queue(name: string): Queue;
  /** Fetches nothing by itself. */
  worker(name: string, lease: Lease): Worker;
  /** Ends within two seconds, whatever the server does; at once if it does not respond. */
  close(responds?: boolean): Promise<void>;
}

/** Milliseconds that a connection, or a command, can take. */
const PATIENCE = 4000;
const GOODBYE = 2000;
const BETWEEN = 1000;
const DEFAULT_PREFIX = "seo-reports";
const OLDEST_REDIS = [6, 2];
const CONNECTIONS = 3;
/** An integer of PostgreSQL. */
const MOST_STALLS = 2 ** 31 - 1;

interface Driver {
  version: string;
  factory: BackendFactory;
  close(): Promise<unknown>;
  destroy(): void;
}

const load = <Module>(name: string, packages: string, module: Promise<Module>): Promise<Module> =>
  module.catch((cause) => {
    throw missing(name, packages, cause);
  });

function readUrl(text: string): URL {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (url && /^(rediss?|postgres(ql)?):$/.test(url.protocol) && url.hostname !== "") return url;
  throw new SeoError(
    "SEO_CONFIG",
    "The queue's URL must begin with redis://, rediss:// or postgres://, and name a host.",
  );
}

async function openRedis(url: URL, { prefix = DEFAULT_PREFIX, tls }: Place): Promise<Driver> {
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
    retryStrategy: () => BETWEEN,
    ...(url.protocol === "rediss:" && { tls: { ...tls } }),
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

/** A PostgreSQL identifier. */
const schemaOf = (prefix: string) =>
  prefix
    .replace(/\W/g, "_")
    .replace(/^(?=\d)/, "_")
    .slice(0, 60) || "_";

async function openPostgres(url: URL, { prefix = DEFAULT_PREFIX, tls }: Place): Promise<Driver> {
  const packages = "bullmq pg";
  const [bullmq] = await Promise.all([load("bullmq", packages, import("bullmq")), load("pg", packages, import("pg"))]);
  const { Socket } = await import("node:net");
  const sockets = new Set<InstanceType<typeof Socket>>();
  const connect = (migrate: boolean) => {
    const connection = new bullmq.PostgresConnection({
      connectionString: url.href,
      schema: schemaOf(prefix),
      migrate,
      max: CONNECTIONS,
      connectionTimeoutMillis: PATIENCE,
      query_timeout: PATIENCE,
      keepAlive: true,
      ...(tls && { ssl: { ...tls } }),
      stream() {
        const socket = new Socket();
        sockets.add(socket.on("close", () => sockets.delete(socket)));
        return socket;
      },
    });
    connection.on("error", () => {});
    // BullMQ does not listen to a connection that it is using, whose end would end the process.
    connection.pool.on("connect", (client) => client.on("error", () => {}));
    return connection;
  };
  const destroy = () => {
    for (const socket of sockets) socket.destroy();
  };
  let connection = connect(true);
  try {
    await connection.waitUntilReady().catch(async (cause) => {
      // Who may not create a schema may use one that is there.
      if (cause.code !== "42501") throw cause;
      await connection.close();
      connection = connect(false);
      await connection.waitUntilReady();
    });
    const { rows } = await connection.pool.query("SELECT current_setting('server_version') AS version");
    const factory = (name: string, opts: object) =>
      new bullmq.PostgresQueueBackend(connection, name, { ...opts, connection: {} } as never, false);
    return {
      version: `PostgreSQL ${rows[0].version.split(" ")[0]}`,
      factory: factory as unknown as BackendFactory,
      close: () => connection.close(),
      destroy,
    };
  } catch (cause) {
    void connection.close().catch(() => {});
    setTimeout(destroy, GOODBYE).unref();
    throw cause;
  }
}

/**
 * Connects to the server. Tries again for `patience` ms. Rejects with SEO_CONFIG if the URL, the password, the rights or a
 * package is at fault, or with SEO_NETWORK.
 */
export async function connect(place: Place, patience = 0): Promise<Server> {
  const url = readUrl(place.url);
  const isRedis = url.protocol.startsWith("redis");
  const until = performance.now() + patience;
  let driver: Driver | undefined;
  while (!driver) {
    try {
      driver = await (isRedis ? openRedis : openPostgres)(url, place);
    } catch (cause) {
      const error = fromServer(cause, url);
      if (isHopeless(error) || performance.now() + BETWEEN > until) throw error;
      await sleep(BETWEEN);
    }
  }
  const { version, factory, close, destroy } = driver;
  const bullmq = await import("bullmq");
  const parts: { close(): Promise<unknown> }[] = [];
  /** A part's errors are those of its calls. */
  const quiet = <Part extends { close(): Promise<unknown> } & EventEmitter>(part: Part): Part => {
    EventEmitter.prototype.on.call(part, "error", () => {});
    parts.push(part);
    return part;
  };
  return {
    version,
    queue: (name) => quiet(new bullmq.Queue(name, { connection: {} }, factory) as Queue),
    worker: (name, lease) =>
      quiet(
        new bullmq.Worker(
          name,
          null,
          { ...lease, connection: {}, autorun: false, maxStalledCount: MOST_STALLS },
          factory,
        ) as Worker,
      ),
    async close(responds = true) {
      if (!responds) return destroy();
      const ended = Promise.all(parts.map((part) => part.close())).then(close);
      await Promise.race([ended.catch(() => {}), sleep(GOODBYE, undefined, { ref: false })]);
      destroy();
    },
  };
}

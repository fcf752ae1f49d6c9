import { Socket } from "node:net";
import type { BackendFactory } from "bullmq";
import { SeoError } from "../../errors.js";
import { DEFAULT_PREFIX, type Driver, GOODBYE, load, PATIENCE, type Place } from "./driver.js";

const CONNECTIONS = 3;
/** Milliseconds. */
const MOST_APART = 2000;

/** A PostgreSQL identifier. */
const schemaOf = (prefix: string) => prefix.replace(/\W|^(?=\d)/g, "_").slice(0, 60) || "_";

/**
 * BullMQ compares the times of the machines, so that one whose clock is wrong would lose the lead, or take it from another.
 * `server` is the server's time, requested at `requestedAt`, both in milliseconds. Throws SEO_CONFIG.
 */
export function checkClock(server: number, requestedAt: number, now = Date.now()): void {
  const difference = Math.max(requestedAt - server, server - now);
  if (difference <= MOST_APART) return;
  const seconds = Math.round(difference / 1000);
  const sentence = `The clocks of this machine and of the queue's server differ by ${seconds} s. Synchronize them.`;
  throw new SeoError("SEO_CONFIG", sentence, { stage: "clock", values: { seconds: String(seconds) } });
}

/** Connects to PostgreSQL. Rejects as its driver does. */
export async function openPostgres(url: URL, { prefix = DEFAULT_PREFIX, tls }: Place): Promise<Driver> {
  const [bullmq] = await load("pg", () => import("pg"));
  // A mode in the URL would replace the TLS options.
  if (tls) url.searchParams.delete("sslmode");
  const sockets = new Set<Socket>();
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
      // A user who may not create a schema may use one that is there.
      if (cause.code !== "42501") throw cause;
      await connection.close();
      connection = connect(false);
      await connection.waitUntilReady();
    });
    const requestedAt = Date.now();
    const { rows } = await connection.pool.query(
      "SELECT current_setting('server_version') AS version, extract(epoch FROM clock_timestamp()) * 1000 AS now",
    );
    checkClock(Number(rows[0].now), requestedAt);
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

import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../../dev/nodered.js";
import type { Lease } from "../../src/audit/shared/shared.js";
import { tlsFile } from "./faulty.js";
import { accepts, missing } from "./program.js";

/** A server of a shared queue, on a free port and in a folder of its own. */
export interface Server {
  url: string;
  port: number;
  /** A server that was stopped starts again with its data. */
  start(): Promise<void>;
  /** Sends it to all processes of the server. */
  signal(signal: NodeJS.Signals): void;
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Stops it, and removes its data. */
  close(): Promise<void>;
}

export type Engine = "Redis" | "PostgreSQL";
/** Without those that are not in ENGINES, if it is set. */
export const engines = (["Redis", "PostgreSQL"] as const).filter((one) => (process.env.ENGINES ?? one).includes(one));

/** The lease of machines that share a server. */
export const LEASE: Lease = { lockDuration: 1500, stalledInterval: 400 };

export const PASSWORD = "canary-password-9b3e";

const TRIES = 600;
const BETWEEN = 200;
const POSTGRES = "/usr/lib/postgresql";
const run = promisify(execFile);

/** The environment with the folder of Debian's PostgreSQL, which is not in the path. */
function environment(): NodeJS.ProcessEnv {
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = versions.map((version) => join(POSTGRES, version, "bin"));
  return { ...process.env, PATH: [process.env.PATH, ...folders].join(delimiter) };
}

/** PostgreSQL refuses to run as root; there it runs as the user that its package creates. */
function notAsRoot(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [, , uid, gid] = /^postgres:.*$/m.exec(readFileSync("/etc/passwd", "utf8"))?.[0].split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

/**
 * How a server is prepared in a folder, and started on a port. It does not sync: what it has written outlives its end by a
 * signal, and a slow disk does not hold it up. PostgreSQL would sync a thousand files before it starts again.
 */
interface Recipe {
  url(port: number): string;
  user?: { uid?: number; gid?: number };
  prepare(folder: string): Promise<void>;
  command(folder: string, port: number): string[];
  /** Accepts TLS only; the files of the certificate and its key are in the folder. */
  tls(folder: string, port: number): string[];
  isReady(port: number): Promise<boolean>;
}

const recipes: Record<Engine, () => Recipe> = {
  Redis: () => ({
    url: (port) => `redis://:${PASSWORD}@127.0.0.1:${port}`,
    async prepare(folder) {
      const lines = ["bind 127.0.0.1", `dir ${folder}`, `requirepass ${PASSWORD}`, 'save ""', "appendonly yes"];
      const more = ["appendfsync no", "maxmemory-policy noeviction", ""];
      writeFileSync(join(folder, "redis.conf"), [...lines, ...more].join("\n"));
    },
    command: (folder, port) => ["redis-server", join(folder, "redis.conf"), "--port", String(port)],
    tls: (folder, port) => [
      ...["--port", "0", "--tls-port", String(port), "--tls-auth-clients", "no"],
      ...["--tls-cert-file", join(folder, "cert.pem"), "--tls-key-file", join(folder, "key.pem")],
      ...["--tls-ca-cert-file", join(folder, "cert.pem")],
    ],
    isReady: accepts,
  }),
  PostgreSQL: () => {
    const user = notAsRoot();
    return {
      user,
      url: (port) => `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
      async prepare(folder) {
        const file = join(folder, "password");
        writeFileSync(file, PASSWORD);
        const how = ["--auth=scram-sha-256", "--username=postgres", `--pwfile=${file}`, "--no-sync", "--encoding=UTF8"];
        await run("initdb", [...how, "-D", join(folder, "data")], { env: environment(), cwd: folder, ...user });
      },
      command: (folder, port) => [
        ...["postgres", "-D", join(folder, "data"), "-p", String(port), "-k", folder],
        ...["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"],
      ],
      tls(folder) {
        writeFileSync(join(folder, "hba.conf"), "hostssl all all 127.0.0.1/32 scram-sha-256\n");
        const files = { hba: "hba.conf", ssl_cert: "cert.pem", ssl_key: "key.pem" };
        const settings = Object.entries(files).map(([name, file]) => `${name}_file=${join(folder, file)}`);
        return ["ssl=on", ...settings].flatMap((setting) => ["-c", setting]);
      },
      // Before it is ready, the server accepts connections, and rejects them.
      isReady: (port) =>
        run("pg_isready", ["-h", "127.0.0.1", "-p", String(port)], { env: environment() }).then(
          () => true,
          () => false,
        ),
    };
  },
};

/** Starts a server; with `tls`, it accepts nothing else. Without its program: an error in CI, elsewhere one line and undefined. */
export async function startServer(engine: Engine, { tls = false } = {}): Promise<Server | undefined> {
  const recipe = recipes[engine]();
  const { url, user = {}, prepare, isReady } = recipe;
  const folder = mkdtempSync(join(tmpdir(), `seo-${engine}-`));
  const own = (path: string) => user.uid !== undefined && chownSync(path, user.uid, user.gid ?? 0);
  own(folder);
  const port = await freePort();
  let child: ChildProcess | undefined;

  /** Whether the process could be started, and did not end before it was ready. */
  async function startOnce(): Promise<boolean> {
    const [program = "", ...args] = [...recipe.command(folder, port), ...(tls ? recipe.tls(folder, port) : [])];
    const started = spawn(program, args, { cwd: folder, env: environment(), stdio: "ignore", ...user });
    child = started;
    await once(started, "spawn");
    while (!(await isReady(port))) {
      if (started.exitCode !== null) return false;
      await sleep(20);
    }
    return true;
  }

  /** PostgreSQL does not start before the processes of one that was killed have ended. */
  async function start(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      if (await startOnce()) return;
      await sleep(BETWEEN);
    }
    throw new Error(`The ${engine} server does not start.`);
  }

  async function stop(signal: NodeJS.Signals = "SIGINT"): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  try {
    await prepare(folder);
    for (const name of tls ? ["cert", "key"] : []) {
      const file = join(folder, `${name}.pem`);
      writeFileSync(file, tlsFile(name), { mode: 0o600 });
      own(file);
    }
    await start();
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    return missing(`${engine} cannot be started, so audits on several machines are not tested with it.`, error);
  }
  return {
    url: url(port),
    port,
    start,
    signal(signal) {
      child?.kill(signal);
      // The processes of PostgreSQL's connections.
      spawnSync("pkill", [`-${signal}`, "-P", String(child?.pid)]);
    },
    stop,
    async close() {
      await stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

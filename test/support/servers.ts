import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../../dev/nodered.js";

/** A server of a shared queue, on a free port and in a folder of its own. */
export interface Server {
  url: string;
  port: number;
  /** A server that was stopped starts again with its data. */
  start(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Stops it, and removes its data. */
  close(): Promise<void>;
}

export type Engine = "redis" | "postgres";

export const PASSWORD = "canary-password-9b3e";

const TRIES = 50;
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

const accepts = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });

/** How a server is prepared in a folder, and started on a port. */
interface Recipe {
  url(port: number): string;
  user?: { uid?: number; gid?: number };
  prepare(folder: string): Promise<void>;
  command(folder: string, port: number): string[];
  isReady(port: number): Promise<boolean>;
}

const recipes: Record<Engine, () => Recipe> = {
  redis: () => ({
    url: (port) => `redis://:${PASSWORD}@127.0.0.1:${port}`,
    async prepare(folder) {
      const lines = ["bind 127.0.0.1", `dir ${folder}`, `requirepass ${PASSWORD}`, 'save ""', "appendonly yes"];
      writeFileSync(join(folder, "redis.conf"), [...lines, "maxmemory-policy noeviction", ""].join("\n"));
    },
    command: (folder, port) => ["redis-server", join(folder, "redis.conf"), "--port", String(port)],
    isReady: accepts,
  }),
  postgres: () => {
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
        ...["-c", "listen_addresses=127.0.0.1"],
      ],
      // It accepts connections, and rejects them, before it is ready.
      isReady: (port) =>
        run("pg_isready", ["-h", "127.0.0.1", "-p", String(port)], { env: environment() }).then(
          () => true,
          () => false,
        ),
    };
  },
};

/** Starts a server. Without its program: an error in CI, elsewhere one line and undefined. */
export async function startServer(engine: Engine): Promise<Server | undefined> {
  const { url, user = {}, prepare, command, isReady } = recipes[engine]();
  const folder = mkdtempSync(join(tmpdir(), `seo-${engine}-`));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid ?? 0);
  const port = await freePort();
  let child: ChildProcess | undefined;

  /** Whether the process could be started, and did not end before it was ready. */
  async function startOnce(): Promise<boolean> {
    const [program = "", ...args] = command(folder, port);
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
    await start();
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    const hint = `There is no ${engine} server, so audits on several machines are not tested with it.`;
    if (process.env.CI) throw new Error(`${hint} ${error}`);
    console.log(`      ${hint}`);
    return undefined;
  }
  return {
    url: url(port),
    port,
    start,
    stop,
    async close() {
      await stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../dev/nodered.js";

/** A server of its own that keeps a queue. */
export interface QueueServer {
  url: string;
  port: number;
  start(): Promise<void>;
  /** As `kill -9` does; what it has confirmed is on disk. */
  kill(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Ends it, and removes its data. */
  stop(): Promise<void>;
}

const DEBIAN = "/usr/lib/postgresql";

/** The folder of PostgreSQL's programs; blank if they are in the path. */
const programs = () => (existsSync(DEBIAN) ? join(DEBIAN, readdirSync(DEBIAN).sort().at(-1) ?? "", "bin/") : "");
/** PostgreSQL does not run as root. */
const isRoot = process.getuid?.() === 0;
const asUser = (command: string, args: string[]): [string, string[]] =>
  isRoot ? ["setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", command, ...args]] : [command, args];

async function listens(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const open = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (open) return;
    await sleep(30);
  }
}

function serve(
  url: string,
  port: number,
  folder: string,
  [command, args]: [string, string[]],
  ready: () => Promise<void>,
) {
  let child: ChildProcess | undefined;
  const end = async (signal: NodeJS.Signals) => {
    const { current } = { current: child };
    child = undefined;
    if (!current) return;
    const ended = once(current, "exit");
    current.kill("SIGCONT");
    current.kill(signal);
    await ended;
  };
  const server: QueueServer = {
    url,
    port,
    async start() {
      let running = false;
      // After a kill, PostgreSQL refuses to start until its other processes have ended.
      const launch = () => {
        child = spawn(command, args, { stdio: "ignore", cwd: folder });
        child.once("exit", () => running || setTimeout(launch, 200));
      };
      launch();
      await ready();
      running = true;
    },
    kill: () => end("SIGKILL"),
    signal: (signal) => child?.kill(signal),
    async stop() {
      await end("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return server;
}

async function startRedis(): Promise<QueueServer> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "redis-"));
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "yes"];
  const server = serve(`redis://127.0.0.1:${port}`, port, folder, ["redis-server", args], () => listens(port));
  await server.start();
  return server;
}

async function startPostgres(): Promise<QueueServer> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "postgres-"));
  if (isRoot) {
    const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
    chownSync(folder, id("-u"), id("-g"));
  }
  const data = join(folder, "data");
  const [initdb, flags] = asUser(`${programs()}initdb`, ["-D", data, "-A", "trust", "-U", "seo", "--no-sync"]);
  execFileSync(initdb, flags, { stdio: "ignore", cwd: folder });
  const args = ["-D", data, "-p", String(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"];
  const url = `postgres://seo@127.0.0.1:${port}/postgres`;
  const ready = async () => {
    const [command, parameters] = asUser(`${programs()}pg_isready`, ["-h", "127.0.0.1", "-p", String(port)]);
    for (;;) {
      try {
        execFileSync(command, parameters, { stdio: "ignore", cwd: folder });
        return;
      } catch {
        await sleep(50);
      }
    }
  };
  const server = serve(url, port, folder, asUser(`${programs()}postgres`, args), ready);
  await server.start();
  return server;
}

/** The servers that a queue can be kept on, by name. */
export const queueServers: Record<string, () => Promise<QueueServer>> = {
  Redis: startRedis,
  PostgreSQL: startPostgres,
};

/** A way to a server that can be cut. */
export async function startCable(port: number) {
  const { createServer } = await import("node:net");
  const sockets = new Set<import("node:net").Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) return void socket.destroy();
    const onward = connect(port, "127.0.0.1");
    for (const one of [socket, onward]) sockets.add(one.on("error", () => {}).on("close", () => sockets.delete(one)));
    socket.on("close", () => onward.destroy()).pipe(onward);
    onward.on("close", () => socket.destroy()).pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as import("node:net").AddressInfo).port,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    mend() {
      isCut = false;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

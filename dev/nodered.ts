import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { startOnFreePort } from "../sandbox/command.js";

interface Packed {
  filename: string;
  files: { path: string }[];
}

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/** The package's own folder. */
export const root = join(import.meta.dirname, "../..");

/**
 * The Node-RED for the running Node: 5 from Node 22.9 on, else 4.1. Both are development dependencies, `node-red` and
 * `node-red-4`; the environment variable NODE_RED selects one of them.
 */
export function nodeRed(): { name: string; version: string; script: string } {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const name = process.env.NODE_RED ?? (major > 22 || (major === 22 && minor >= 9) ? "node-red" : "node-red-4");
  const manifest = require.resolve(`${name}/package.json`);
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  return { name, version, script: join(dirname(manifest), "red.js") };
}

/** Loads a module of that Node-RED, or Node-RED itself by its name. */
export const nodeRedModule = <T>(name = nodeRed().name): T => createRequire(require.resolve(nodeRed().name))(name) as T;

/** Runs npm in the package's folder until `signal` ends it. On Windows it is a batch file, which needs a shell. */
const npm = (args: string[], signal?: AbortSignal) =>
  run("npm", args, { cwd: root, maxBuffer: 1 << 24, shell: process.platform === "win32", ...(signal && { signal }) });

/** Packs the built package into a folder, and returns the path of the archive and of every file in it. */
export async function packInto(folder: string, signal?: AbortSignal): Promise<{ archive: string; files: string[] }> {
  const { stdout } = await npm(["pack", "--ignore-scripts", "--json", "--pack-destination", folder], signal);
  const packed = JSON.parse(stdout) as Packed[] | Record<string, Packed>;
  const [{ filename, files } = { filename: "", files: [] }] = Object.values(packed);
  return { archive: join(folder, filename), files: files.map(({ path }) => path) };
}

const { peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  peerDependencies: Record<string, string>;
};

/**
 * Packs the built package and installs it into a user directory, as the palette manager would, beside what is there, and with
 * some of its optional packages.
 */
export async function installPackage(userDir: string, optional: string[] = [], signal?: AbortSignal): Promise<void> {
  mkdirSync(userDir, { recursive: true });
  const manifest = join(userDir, "package.json");
  if (!existsSync(manifest))
    writeFileSync(manifest, JSON.stringify({ name: "seo-reports-sandbox-user", private: true }));
  const { archive } = await packInto(userDir, signal);
  const quietly = ["--no-audit", "--no-fund", "--prefer-offline", "--omit=dev"];
  const versions = optional.map((name) => `${name}@${peerDependencies[name]}`);
  await npm(["install", "--prefix", userDir, ...quietly, archive, ...versions], signal);
  rmSync(archive);
}

/** Links the built package into a user directory, as `npm link` would. */
export function linkPackage(userDir: string): void {
  mkdirSync(join(userDir, "node_modules/@seo-reports"), { recursive: true });
  symlinkSync(root, join(userDir, "node_modules/@seo-reports/node-red"));
}

/** Resolves with the port if it is free now. Rejects if it is in use. */
async function checkPort(port: number): Promise<number> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  server.close();
  await once(server, "close");
  return port;
}

/** Returns a port that is free now, below those that a system gives to anybody else meanwhile. */
export const freePort = (): Promise<number> => startOnFreePort(randomInt(20_000, 32_000), checkPort);

export interface Running {
  url: string;
  process: ChildProcess;
  /** The lines that it has printed. */
  log: string[];
  stop(): Promise<void>;
}

/** Keeps Node-RED on this machine and quiet; the context store `file` survives a restart. */
export const settings = {
  uiHost: "127.0.0.1",
  // The log is read below.
  lang: "en-US",
  flowFile: "flows.json",
  credentialSecret: "sandbox",
  telemetry: { enabled: false, updateNotification: false },
  editorTheme: { tours: false, header: { title: "SEO reports" } },
  contextStorage: { default: { module: "memory" }, file: { module: "localfilesystem" } },
};

interface StartOptions {
  port?: number;
  env?: Record<string, string>;
  more?: object;
  print?: (line: string) => void;
  /** Called with the ID of the process before Node-RED has started. */
  spawned?: (pid: number | undefined) => void;
  /** Stops Node-RED, even while it starts. */
  signal?: AbortSignal;
}

/** Starts Node-RED on the first free port from `port` on. Another process can take a port while Node-RED starts. */
export const startFrom = (port: number, userDir: string, options: StartOptions = {}): Promise<Running> =>
  startOnFreePort(port, async (free) => startNodeRed(userDir, { ...options, port: await checkPort(free) }));

/**
 * Starts Node-RED in its own process, on any free port unless one is given. Resolves when its flows run; rejects if it
 * ends before.
 */
export async function startNodeRed(
  userDir: string,
  { port = 0, env = {}, more = {}, print = () => {}, spawned = () => {}, signal }: StartOptions = {},
): Promise<Running> {
  signal?.throwIfAborted();
  mkdirSync(userDir, { recursive: true });
  writeFileSync(
    join(userDir, "settings.js"),
    `module.exports = ${JSON.stringify({ ...settings, ...more }, null, 2)};\n`,
  );
  const child = spawn(process.execPath, [nodeRed().script, "--userDir", userDir, "--port", String(port)], {
    // Relative paths in flows begin here.
    cwd: userDir,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  spawned(child.pid);
  signal?.addEventListener("abort", () => child.kill("SIGTERM"));
  const ended = once(child, "exit");
  const log: string[] = [];
  let url = "";
  let started = false;
  await new Promise<void>((resolve, reject) => {
    for (const input of [child.stdout, child.stderr])
      createInterface({ input }).on("line", (line) => {
        if (line === "") return;
        log.push(line);
        print(line);
        url ||= / now running at (.*)\/$/.exec(line)?.[1] ?? "";
        started ||= line.includes("Started flows");
        if (url !== "" && started) resolve();
      });
    void ended.then(() => reject(new Error(`Node-RED ended:\n${log.join("\n")}`)));
  });
  return {
    url,
    process: child,
    log,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

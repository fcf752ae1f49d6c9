import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/** The package's own folder. */
export const root = join(import.meta.dirname, "../..");

/**
 * The Node-RED that the running Node can run: 5 from Node 22.9 on, else 4.1. Both are installed for development, as
 * `node-red` and `node-red-4`; the variable NODE_RED names the other one.
 */
export function nodeRed(): { name: string; version: string; script: string } {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const name = process.env.NODE_RED ?? (major > 22 || (major === 22 && minor >= 9) ? "node-red" : "node-red-4");
  const manifest = require.resolve(`${name}/package.json`);
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  return { name, version, script: join(dirname(manifest), "red.js") };
}

/** Packs the built package and installs it into a user directory, as the palette manager would. */
export async function installPackage(userDir: string): Promise<void> {
  mkdirSync(userDir, { recursive: true });
  writeFileSync(join(userDir, "package.json"), JSON.stringify({ name: "seo-reports-sandbox-user", private: true }));
  const npm = (...args: string[]) => run("npm", args, { cwd: root, maxBuffer: 1 << 24 });
  const { stdout } = await npm("pack", "--ignore-scripts", "--json", "--pack-destination", userDir);
  const packed = JSON.parse(stdout) as { filename: string }[] | Record<string, { filename: string }>;
  const [{ filename } = { filename: "" }] = Object.values(packed);
  const quietly = ["--no-audit", "--no-fund", "--no-package-lock", "--prefer-offline", "--omit=dev"];
  await npm("install", "--prefix", userDir, ...quietly, join(userDir, filename));
  rmSync(join(userDir, filename));
}

/** Puts the built package itself where Node-RED finds it, as `npm link` would. */
export function linkPackage(userDir: string): void {
  mkdirSync(join(userDir, "node_modules/@seo-reports"), { recursive: true });
  symlinkSync(root, join(userDir, "node_modules/@seo-reports/node-red"));
}

/** The first free port from `port` on, having said which are taken; any that is free where `port` is 0. */
export async function freePort(port: number, say: (line: string) => void = () => {}): Promise<number> {
  const server = createServer().listen(port, "127.0.0.1");
  const free = await once(server, "listening").then(
    () => true,
    () => false,
  );
  if (!free) {
    say(`Port ${port} is taken; trying ${port + 1}.`);
    return freePort(port + 1, say);
  }
  const found = (server.address() as AddressInfo).port;
  server.close();
  await once(server, "close");
  return found;
}

export interface Running {
  url: string;
  process: ChildProcess;
  /** What it has printed. */
  log: string[];
  stop(): Promise<void>;
}

/** Settings that keep Node-RED on this machine, quiet and quick; context survives a restart in the store `file`. */
const settings = {
  uiHost: "127.0.0.1",
  // The language of its log, which is read here.
  lang: "en-US",
  flowFile: "flows.json",
  credentialSecret: "sandbox",
  telemetry: { enabled: false, updateNotification: false },
  editorTheme: { tours: false, header: { title: "SEO reports" } },
  contextStorage: { default: { module: "memory" }, file: { module: "localfilesystem" } },
};

/**
 * Starts Node-RED in a user directory, in a process of its own, on any port that is free where none is given.
 * Resolves when its flows run; rejects when it ends before.
 */
export async function startNodeRed(
  userDir: string,
  {
    port = 0,
    env = {},
    more = {},
    print = () => {},
  }: { port?: number; env?: Record<string, string>; more?: object; print?: (line: string) => void } = {},
): Promise<Running> {
  mkdirSync(userDir, { recursive: true });
  writeFileSync(
    join(userDir, "settings.js"),
    `module.exports = ${JSON.stringify({ ...settings, ...more }, null, 2)};\n`,
  );
  const child = spawn(process.execPath, [nodeRed().script, "--userDir", userDir, "--port", String(port)], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
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

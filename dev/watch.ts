import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { type FSWatcher, readdirSync, watch } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { root } from "./nodered.js";
import { whenOrphaned } from "./orphan.js";

/** `npm run dev`: builds and starts as `npm start` does, and does so again whenever a source changes. The arguments are the same. */
const SOURCES = ["src", "nodes", "sandbox", "dev", "icons", "examples"];
/** Milliseconds. An editor can save a file in several steps. */
const SETTLED = 100;
const script = (file: string) => join(root, file);
const builds = [script("node_modules/typescript/bin/tsc"), script("dist/nodes/editor/build.js")];

const sources = new EventEmitter();
let changed = true;
let watchers: FSWatcher[] = [];
/** Each folder by itself: on Linux, a recursive watcher loses a file that an editor replaces when it saves. */
function watchSources(): void {
  for (const watcher of watchers) watcher.close();
  const folders = SOURCES.flatMap((source) => [
    script(source),
    ...readdirSync(script(source), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name)),
  ]);
  watchers = folders.map((folder) =>
    watch(folder, () => {
      changed = true;
      sources.emit("change");
    }),
  );
}

let running: ChildProcess | undefined;
async function stop(): Promise<void> {
  if (!running || running.exitCode !== null || running.signalCode !== null) return;
  running.kill("SIGTERM");
  await once(running, "exit");
}
let ending = false;
async function end(): Promise<void> {
  ending = true;
  await stop();
  process.exit();
}
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, end);
whenOrphaned(() => void end());

for (;;) {
  if (!changed) await once(sources, "change");
  await setTimeout(SETTLED);
  changed = false;
  watchSources();
  const built = builds.every(
    (file) => spawnSync(process.execPath, [file], { cwd: root, stdio: "inherit" }).status === 0,
  );
  if (built) {
    await stop();
    if (ending) break;
    running = spawn(process.execPath, [script("dist/dev/start.js"), ...process.argv.slice(2)], { stdio: "inherit" });
  }
  console.log(built ? "Built. Waiting for changes…" : "The build failed. Waiting for changes…");
}

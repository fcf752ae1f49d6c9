import { randomBytes } from "node:crypto";
import { access, readdir, readFile, readlink, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { boot } from "./clock.js";
import { Trouble } from "./trouble.js";

/** Which process this is. */
interface Holder {
  /** Processes of the same place can see each other: on Linux the same boot and PID namespace, elsewhere the same host. */
  place: string;
  pid: number;
  /** Distinguishes a process from an earlier one with the same ID; blank where that is not known. */
  started: string;
  host: string;
}

/** How often a lock is refreshed, and how long one that is not refreshed stands. */
const BEAT = 10_000;
const STALE = 30_000;
const TRIES = 4;
const NAME = /^lock-.*\.json$/;

/** The lock files of this process. */
const held = new Set<string>();

const ZOMBIE = "Z";

/**
 * When a process was started, in ticks since the boot; blank if it has ended, and only its parent does not know. The name before
 * it can contain spaces and parentheses.
 */
async function startOf(pid: number | "self"): Promise<string> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields[0] === ZOMBIE ? "" : (fields[19] ?? "");
}

async function readSelf(): Promise<Holder> {
  const self = { pid: process.pid, host: hostname() };
  try {
    if (boot === "") throw new Error("The boot is not known.");
    return { ...self, place: `${boot} ${await readlink("/proc/self/ns/pid")}`, started: await startOf("self") };
  } catch {
    return { ...self, place: self.host, started: "" };
  }
}

/** Whether a process runs; one of another user counts. */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Whether the process of a lock that is not in `held` is alive; undefined if that cannot be known. */
async function isAlive(holder: Holder, self: Holder): Promise<boolean | undefined> {
  if (holder.place !== self.place) return undefined;
  // The lock could not be removed, or is of an earlier process with the same ID.
  if (holder.pid === self.pid) return false;
  if (holder.started !== "") return (await startOf(holder.pid).catch(() => "")) === holder.started;
  return exists(holder.pid) ? undefined : false;
}

const refreshed = async (path: string) => (await stat(path).catch(() => undefined))?.mtimeMs;

/** Whether a lock is refreshed within 30 s. No two clocks are compared. */
async function isRefreshed(path: string, stale: number): Promise<boolean> {
  const before = await refreshed(path);
  for (let waited = 0; waited < stale; waited += stale / 30) {
    await sleep(stale / 30);
    const now = await refreshed(path);
    if (now === undefined) return false;
    if (now !== before) return true;
  }
  return false;
}

/** The process that holds another lock of the folder. Locks that nobody holds are removed. */
async function findOther(folder: string, own: string, self: Holder, stale: number): Promise<Holder | undefined> {
  for (const name of await readdir(folder)) {
    if (!NAME.test(name) || name === own) continue;
    const path = join(folder, name);
    const holder: Holder = await readFile(path, "utf8")
      .then(JSON.parse)
      .catch(() => ({ place: "", pid: 0 }));
    const alive = held.has(name) || ((await isAlive(holder, self)) ?? (await isRefreshed(path, stale)));
    if (alive) return holder;
    await rm(path, { force: true });
  }
  return undefined;
}

/**
 * Locks a folder. Each lock is a file of its own, so that removing a dead one never removes a live one. Rejects with a Trouble
 * if another lock is held, also by this process; `lost` is called if another process takes the folder over. Returns what ends it,
 * and a check that rejects once it is lost.
 */
export async function lockFolder(folder: string, lost: () => void, { stale = STALE, beat = BEAT } = {}) {
  const self = await readSelf();
  for (let tries = 1; ; tries++) {
    const name = `lock-${self.pid}-${randomBytes(4).toString("hex")}.json`;
    const path = join(folder, name);
    let timer: NodeJS.Timeout | undefined;
    const release = () => {
      clearInterval(timer);
      held.delete(name);
      return rm(path, { force: true });
    };
    const watch = (seen: Promise<void>) =>
      seen.catch((error) => {
        if (error.code !== "ENOENT" || !held.has(name)) return;
        clearInterval(timer);
        lost();
        throw error;
      });
    const refresh = () => void watch(utimes(path, new Date(), new Date())).catch(() => {});
    held.add(name);
    const written = writeFile(path, JSON.stringify(self), { flag: "wx", mode: 0o600 }).then(() => {
      // Also while another lock is looked at, or its process would take this one for dead.
      timer = setInterval(refresh, beat).unref();
    });
    const other = await written
      .then(() => findOther(folder, name, self, stale))
      .catch(async (error) => {
        await release();
        throw error;
      });
    if (!other) return { release, check: () => watch(access(path)) };
    await release();
    const holder = other.pid > 0 ? `process ${other.pid} on ${other.host}` : "another process";
    if (tries === TRIES) throw new Trouble("locked", `The folder ${folder} is in use by ${holder}.`);
    // Two that start at the same moment see each other.
    await sleep(Math.random() * 300);
  }
}

import { mkdir, open, readdir, readFile, realpath, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { openBatch, removeFolder, writeBatch } from "./batch.js";
import { type Lock, lockFolder } from "./lock.js";
import type { Store } from "./store.js";
import { fromDisk, Trouble } from "./trouble.js";

type Opened = Awaited<ReturnType<typeof openBatch>>;

/** All nodes of this process that use a folder share its lock. */
interface Shared {
  users: number;
  lock: Promise<Lock>;
  lost: Set<() => void>;
}

const locks = new Map<string, Shared>();
/** Folders of nodes that are open. After a deploy the next node waits for the one before. */
const inUse = new Map<string, Promise<void>>();

/** So much must fit on the disk before the work goes on. */
const ROOM = 64 * 1024;
const BATCH = /^(\d+)-[a-z0-9-]*$/;

const slug = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 40);

async function shareLock(folder: string, lost: () => void): Promise<() => Promise<void>> {
  const shared = locks.get(folder) ?? {
    users: 0,
    lost: new Set(),
    lock: lockFolder(folder, () => loseLock(folder)),
  };
  locks.set(folder, shared);
  shared.users++;
  shared.lost.add(lost);
  const leave = async () => {
    shared.lost.delete(lost);
    if (--shared.users > 0) return;
    locks.delete(folder);
    await (await shared.lock).release();
  };
  await shared.lock.catch((error) => {
    if (locks.get(folder) === shared) locks.delete(folder);
    throw error;
  });
  return leave;
}

function loseLock(folder: string): void {
  const { lost = [] } = locks.get(folder) ?? {};
  for (const tell of lost) tell();
}

/** Waits until nobody has a node's folder, and takes it. Returns how to give it back. */
async function occupy(folder: string): Promise<() => void> {
  for (let before = inUse.get(folder); before; before = inUse.get(folder)) await before;
  let leave = () => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  inUse.set(folder, left);
  return () => {
    if (inUse.get(folder) === left) inUse.delete(folder);
    leave();
  };
}

/** The name of a batch that cannot be read, as far as its list says it. */
async function nameOf(folder: string): Promise<string> {
  try {
    const [header = ""] = (await readFile(join(folder, "pages-1.jsonl"), "utf8")).split("\n", 1);
    return String(JSON.parse(header).batch);
  } catch {
    return basename(folder).replace(/^\d+-/, "");
  }
}

/**
 * Opens the jobs of one node, in its own folder below `folder`. Rejects with a Trouble if another process uses the folder,
 * or the disk cannot be used. `lost` is called if another process takes the folder over.
 */
export async function openFiles(folder: string, node: string, lost: (error: Trouble) => void): Promise<Store> {
  const own = join(folder, node.replace(/[^\w.-]/g, "_"));
  const vacate = await occupy(own);
  const batches = new Set<Opened>();
  const broken: Store["broken"][number][] = [];
  let last = 0;
  let unlock = async () => {};

  async function load(): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // Not recursively, because Node.js then does not say why it failed.
    await mkdir(own, { mode: 0o700 }).catch((error) => {
      if (error.code !== "EEXIST") throw error;
    });
    const message = `Another process has taken over the folder ${folder}.`;
    unlock = await shareLock(await realpath(folder), () => lost(new Trouble("locked", message)));
    const names = await readdir(own);
    for (const name of names)
      if (/\.(new|removed)$/.test(name)) await rm(join(own, name), { recursive: true, force: true });
    const folders = names.flatMap((name) => ({ name, number: Number(BATCH.exec(name)?.[1]) }));
    for (const { name, number } of folders.sort((a, b) => a.number - b.number)) {
      if (Number.isNaN(number)) continue;
      last = number;
      await loadBatch(join(own, name));
    }
  }

  async function loadBatch(path: string): Promise<void> {
    try {
      const batch: Opened = await openBatch(path, () => batches.delete(batch));
      // The process died before it removed them.
      for (const before of batches) if (before.name === batch.name) await before.remove();
      if (batch.dropped) await batch.remove();
      else batches.add(batch);
    } catch (cause) {
      if (!(cause instanceof Trouble && cause.kind === "damaged")) throw cause;
      broken.push({ name: await nameOf(path), error: cause, remove: () => removeFolder(path) });
    }
  }

  async function end(): Promise<void> {
    await Promise.allSettled(Array.from(batches, (batch) => batch.close()));
  }

  async function leave(): Promise<void> {
    await unlock().finally(vacate);
  }

  try {
    await load();
  } catch (cause) {
    await end();
    await leave().catch(() => {});
    throw fromDisk(cause, own);
  }

  return {
    batches: [...batches],
    broken,

    async create(name, settings, rows) {
      const path = join(own, `${++last}-${slug(name)}`);
      await writeBatch(path, name, settings, rows);
      const batch: Opened = await openBatch(path, () => batches.delete(batch));
      batches.add(batch);
      return batch;
    },

    async probe() {
      const path = join(own, "probe.new");
      try {
        const file = await open(path, "w", 0o600);
        try {
          await file.write(Buffer.alloc(ROOM, " "));
          await file.sync();
        } finally {
          await file.close();
        }
      } catch (cause) {
        throw fromDisk(cause, own);
      } finally {
        await rm(path, { force: true }).catch(() => {});
      }
    },

    async close() {
      await end();
      await leave();
    },

    async remove() {
      await end();
      await rm(own, { recursive: true, force: true });
      await leave();
    },
  };
}

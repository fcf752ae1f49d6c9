import { mkdir, open, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { FINISHED, listName, openBatch, writeBatch } from "./filed.js";
import { folderOf, moveFolder, removeFolder, syncFolder } from "./folder.js";
import { readName } from "./list.js";
import { lockFolder } from "./lock.js";
import { outcomes } from "./pages.js";
import type { Batch, Store } from "./store.js";
import { fromDisk, Trouble } from "./trouble.js";

/** Folders of nodes that are open. After a deploy the next node waits for the one before. */
const inUse = new Map<string, Promise<void>>();

/** So much must fit on the disk before the work continues. */
const ROOM = 64 * 1024;
const BATCH = /^\d+-[a-z0-9-]*(\.finished)?$/;

const slug = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 40);

/** Waits until nobody has a node's folder, and takes it. Returns how to give it back. */
async function occupy(folder: string): Promise<() => void> {
  for (let before = inUse.get(folder); before; before = inUse.get(folder)) await before;
  let leave = () => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  inUse.set(folder, left);
  return () => {
    inUse.delete(folder);
    leave();
  };
}

/** The name of a batch that is not opened, as far as its list says it. */
async function nameOf(folder: string): Promise<string> {
  const name = await readName(join(folder, listName(1))).catch(() => undefined);
  return name ?? basename(folder, FINISHED).replace(/^\d+-/, "");
}

/**
 * Opens the jobs of one node, in its own folder below `folder`. Rejects with a Trouble if another process uses it, or the
 * disk cannot be used. `lost` is called if another process takes it over.
 */
export async function openFiles(
  folder: string,
  node: string,
  lost: (error: Trouble) => void,
): Promise<Store & { remove(): Promise<void> }> {
  const own = folderOf(folder, node);
  const vacate = await occupy(own);
  const batches = new Set<Batch>();
  /** Folders of batches that are not open, with their names: those that have finished, and those that cannot be read. */
  const finished = new Map<string, string>();
  const broken = new Map<string, { name: string; error: Trouble }>();
  let last = 0;
  let unlock = async () => {};

  async function load(): Promise<void> {
    const first = await mkdir(folder, { recursive: true, mode: 0o700 });
    // A folder that is made is on disk only when the one above it is.
    for (let made = folder; first !== undefined && made.length >= first.length; made = dirname(made))
      await syncFolder(dirname(made));
    // Not recursively, because Node.js then does not say why it failed.
    await mkdir(own, { mode: 0o700 }).then(
      () => syncFolder(folder),
      (error) => {
        if (error.code !== "EEXIST") throw error;
      },
    );
    const message = `The folder ${own} was removed, or taken over by another process.`;
    ({ release: unlock } = await lockFolder(own, () => lost(new Trouble("locked", message))));
    const names = await readdir(own);
    for (const name of names) if (/\.(new|removed)$/.test(name)) await rm(join(own, name), { recursive: true });
    const numberOf = (name: string) => Number.parseInt(name, 10);
    for (const name of names.filter((one) => BATCH.test(one)).sort((a, b) => numberOf(a) - numberOf(b))) {
      last = numberOf(name);
      await loadBatch(join(own, name));
    }
  }

  async function loadBatch(path: string): Promise<void> {
    if (path.endsWith(FINISHED)) {
      finished.set(path, await nameOf(path));
      return;
    }
    try {
      const batch = await openOne(path);
      // The process died before it removed the batches that this one replaces.
      await forget(batch.name, finished);
      for (const other of batches) if (other.name === batch.name && other !== batch) await other.remove();
    } catch (cause) {
      if (!broken.has(path)) throw cause;
    }
  }

  async function openOne(path: string): Promise<Batch> {
    try {
      const batch: Batch = await openBatch(path, (hasFinished) => {
        batches.delete(batch);
        if (hasFinished) finished.set(path + FINISHED, batch.name);
      });
      batches.add(batch);
      // The process died before it removed the batch.
      if (batch.dropped()) await batch.remove();
      return batch;
    } catch (cause) {
      const error = fromDisk(cause, path);
      if (error instanceof Trouble && error.kind === "damaged") broken.set(path, { name: await nameOf(path), error });
      throw error;
    }
  }

  /** Removes batches that are not open. */
  async function forget(name: string | undefined, from: Map<string, string | { name: string }>): Promise<number> {
    let count = 0;
    for (const [path, batch] of from) {
      if (name !== undefined && name !== (typeof batch === "string" ? batch : batch.name)) continue;
      await removeFolder(path);
      from.delete(path);
      count++;
    }
    return count;
  }

  async function end(): Promise<void> {
    await Promise.allSettled(Array.from(batches, (batch) => batch.close()));
  }

  const leave = () => unlock().finally(vacate);

  try {
    await load();
  } catch (cause) {
    await end();
    await leave().catch(() => {});
    throw fromDisk(cause, own);
  }

  return {
    batches: [...batches],
    get broken() {
      return [...broken.values()];
    },

    async create(name, settings, rows) {
      const path = join(own, `${++last}-${slug(name)}`);
      await writeBatch(path, name, settings, rows);
      const batch = await openOne(path);
      // If that fails, it is done when the jobs are opened again.
      await forget(name, finished).catch(() => {});
      return batch;
    },

    async *reopen(name) {
      for (const [path, batch] of [...finished]) {
        if (name !== undefined && batch !== name) continue;
        const open = path.slice(0, -FINISHED.length);
        await moveFolder(path, open);
        finished.delete(path);
        const reopened = await openOne(open);
        try {
          await reopened.retry();
        } finally {
          // If that fails, the engine closes the batch again.
          yield reopened;
        }
      }
    },

    forget: async (name) => (await forget(name, finished)) + (await forget(name, broken)),

    async probe() {
      const path = join(own, "probe.new");
      try {
        const file = await open(path, "w", 0o600);
        try {
          await file.appendFile(" ".repeat(ROOM));
          await file.sync();
        } finally {
          await file.close();
        }
      } catch (cause) {
        throw fromDisk(cause, own);
      } finally {
        await rm(path).catch(() => {});
      }
    },

    async close() {
      await end();
      await leave();
    },

    /** Removes everything. */
    async remove() {
      await end();
      await rm(own, { recursive: true, force: true });
      await leave();
    },
  };
}

/** Removes the jobs of one node. Returns how many rows were not done. Rejects as `openFiles` does. */
export async function removeFiles(folder: string, node: string): Promise<number> {
  const store = await openFiles(folder, node, () => {});
  const waiting = store.batches.map(
    ({ counts, total }) => total() - outcomes.reduce((done, outcome) => done + counts[outcome], 0),
  );
  await store.remove();
  return waiting.reduce((sum, count) => sum + count, 0);
}

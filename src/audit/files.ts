import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createTurns, deferred } from "../turns.js";
import { Batch, type List, type Store } from "./batch.js";
import { folderOf, syncFolder } from "./folder.js";
import { openFile, readEnds } from "./journal.js";
import { lockFolder } from "./lock.js";
import { apply, done, State, total } from "./state.js";
import { fromDisk, Trouble } from "./trouble.js";

/** After a deploy, the next node waits until the one before has left its folder. */
const turnOf = createTurns();

/** So much must fit on the disk before the work continues. */
const ROOM = 64 * 1024;
const JOURNAL = /^\d+-[a-z0-9-]*\.jsonl$/;

const numberOf = (name: string) => Number.parseInt(name, 10);
const slug = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 40);

/** Makes a folder, and those above it: one by one, because Node.js may not end otherwise, nor say why it failed. */
async function makeFolder(folder: string): Promise<void> {
  const make = () => mkdir(folder, { mode: 0o700 });
  try {
    await make().catch(async ({ code }) => {
      if (code === "ENOENT" && folder !== dirname(folder)) await makeFolder(dirname(folder));
      await make();
    });
    // A new folder is on disk only when the one above it is.
    await syncFolder(dirname(folder));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

async function removeFile(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
    await syncFolder(dirname(path));
  } catch (cause) {
    throw fromDisk(cause, path);
  }
}

/** The journals of one node, in a folder of its own. */
class Files implements Store {
  readonly #folder: string;
  readonly #batches = new Set<Batch>();
  /** Batches that are not open, by the paths of their journals: those that have finished, and those that cannot be read. */
  readonly #closed = new Map<string, { name: string; error?: Trouble }>();
  #number = 0;
  /** Rejects once another process has taken the folder over. */
  readonly #check: () => Promise<void>;
  readonly #leave: () => Promise<void>;

  constructor(folder: string, check: () => Promise<void>, leave: () => Promise<void>) {
    this.#folder = folder;
    this.#check = check;
    this.#leave = leave;
  }

  get batches(): Batch[] {
    return [...this.#batches];
  }

  get broken() {
    return [...this.#closed.values()].flatMap(({ name, error }) => (error ? [{ name, error }] : []));
  }

  async load(): Promise<void> {
    const files = (await readdir(this.#folder)).filter((file) => JOURNAL.test(file));
    for (const file of files.sort((a, b) => numberOf(a) - numberOf(b))) {
      this.#number = numberOf(file);
      const before = this.batches;
      const path = join(this.#folder, file);
      const name = await this.#load(path);
      if (name === undefined) continue;
      // A batch of that name was removed, or not saved, before this one was made; if it was reset, a page may be in flight.
      for (const other of before) if (other.state.name === name && !other.state.dropped) await other.journal.remove();
      await this.#forget((one, at) => one.name === name && !one.error && at !== path);
    }
  }

  /** Opens a journal, unless its batch has finished. Returns the batch's name, if it is not damaged and has a list. */
  async #load(path: string): Promise<string | undefined> {
    const ends = await readEnds(path);
    if (ends?.finished) {
      this.#closed.set(path, { name: ends.name });
      return ends.name;
    }
    try {
      const batch = await this.#open(path);
      if (batch.state.lists.length > 0) return batch.state.name;
      await batch.journal.remove();
    } catch (cause) {
      if (!this.#closed.has(path)) throw cause;
    }
    return undefined;
  }

  async #open(path: string, isNew = false): Promise<Batch> {
    const state = new State();
    const file = await openFile(path, isNew, (entry) => apply(state, entry), this.#check).catch((error) => {
      const name = state.name || basename(path, ".jsonl").replace(/^\d+-/, "");
      if (error instanceof Trouble && error.kind === "damaged") this.#closed.set(path, { name, error });
      throw error;
    });
    const leave = async () => {
      this.#batches.delete(batch);
      await file.close();
    };
    const keep = async () => {
      await leave();
      this.#closed.set(path, { name: state.name });
    };
    const remove = async () => {
      try {
        await removeFile(path);
        await leave();
      } catch {
        // Another program has the file open. The batch is not continued, and others need not wait.
        await file.append({ type: "finished" });
        await keep();
      }
    };
    const batch = new Batch({ ...file, keep, remove }, state);
    this.#batches.add(batch);
    return batch;
  }

  /** Removes batches that are not open. */
  async #forget(matches: (batch: { name: string; error?: Trouble }, path: string) => boolean): Promise<number> {
    const paths = [...this.#closed].filter(([path, batch]) => matches(batch, path)).map(([path]) => path);
    for (const path of paths) {
      await removeFile(path);
      this.#closed.delete(path);
    }
    return paths.length;
  }

  async create(name: string, list: List): Promise<Batch> {
    const path = join(this.#folder, `${++this.#number}-${slug(name)}.jsonl`);
    const batch = await this.#open(path, true);
    try {
      await syncFolder(this.#folder);
      await batch.begin(name, list);
    } catch (cause) {
      await batch.journal.remove().catch(() => {});
      throw fromDisk(cause, this.#folder);
    }
    // If that fails, it is done when the journals are opened again.
    await this.#forget((one) => one.name === name && !one.error).catch(() => {});
    return batch;
  }

  async *reopen(name?: string): AsyncGenerator<Batch> {
    for (const [path, one] of [...this.#closed]) {
      if (name === undefined ? one.error : one.name !== name) continue;
      if (one.error) throw one.error;
      const batch = await this.#open(path);
      this.#closed.delete(path);
      yield batch;
    }
  }

  forget(name?: string): Promise<number> {
    return this.#forget((one) => name === undefined || one.name === name);
  }

  async probe(): Promise<void> {
    const path = join(this.#folder, "probe.new");
    const written = writeFile(path, " ".repeat(ROOM), { mode: 0o600, flush: true });
    await written.finally(() => rm(path).catch(() => {}));
  }

  /** `removes`: with everything that is kept. */
  async close(removes = false): Promise<void> {
    await Promise.allSettled(this.batches.map((batch) => batch.journal.close()));
    if (removes) await rm(this.#folder, { recursive: true, force: true });
    await this.#leave();
  }
}

/**
 * Opens the journals of one node, in its own folder below `folder`. Rejects with a Trouble if another process uses it, or the
 * disk cannot be used. `lost` is called if another process takes it over.
 */
export async function openFiles(folder: string, node: string, lost: (error: Trouble) => void): Promise<Files> {
  const own = folderOf(folder, node);
  const { promise: left, resolve: vacate } = deferred();
  await turnOf(own, left);
  let lock = { release: async () => {}, check: async () => {} };
  const files = new Files(
    own,
    () => lock.check(),
    () => lock.release().finally(vacate),
  );
  try {
    await makeFolder(own);
    const message = `The folder ${own} was removed, or taken over by another process.`;
    lock = await lockFolder(own, () => lost(new Trouble("locked", message)));
    await files.load();
    return files;
  } catch (cause) {
    await files.close().catch(() => {});
    throw fromDisk(cause, own);
  }
}

/** Removes the journals of one node. Returns how many rows were not done. Rejects as `openFiles` does. */
export async function removeFiles(folder: string, node: string): Promise<number> {
  const files = await openFiles(folder, node, () => {});
  const counted = files.batches.filter(({ state }) => !state.dropped);
  const waiting = counted.reduce((sum, { state }) => sum + total(state) - done(state), 0);
  await files.close(true);
  return waiting;
}

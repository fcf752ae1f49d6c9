import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { cancelled, SeoError } from "../../errors.js";
import type { Settings } from "../list.js";
import type { Batch, Hooks, Store } from "../store.js";
import { Trouble, taken } from "../trouble.js";
import { createSharedBatch, type SharedBatch, textOf } from "./batch.js";
import { lostData } from "./faults.js";
import { createLog } from "./log.js";
import { joinMachines } from "./machine.js";
import { createRegistry, FORMAT, type Job } from "./registry.js";
import type { Lease, Server } from "./server.js";

/** Milliseconds: how often the logs are read, and how long the others have time to see that a batch is complete. */
const BETWEEN_READS = 500;
const FAREWELL = 5000;
const GOODBYE = 2000;
const BETWEEN_PROBES = 2000;
/** What a probe appends to a log, so many times: more than fits into the space that a full disk has left. */
const LINES = 16;
const LINE = "x".repeat(1500);

/** Waits for work to end, but not for a server that does not respond. Returns whether it did. */
const inTime = (work: Promise<unknown>): Promise<boolean> =>
  Promise.race([
    work.then(
      () => true,
      () => false,
    ),
    sleep(GOODBYE, false, { ref: false }),
  ]);

/** Opens the jobs of one node. Rejects as `toError` says. */
export async function openStore(
  server: Server,
  node: string,
  lease: Lease,
  toError: (cause: unknown) => SeoError,
  { lost, stalled, found }: Hooks,
): Promise<Store> {
  const logs = server.queue(`${node}-log`);
  const registry = createRegistry(server.queue(node), logs);
  const machine = await joinMachines(server, `${node}-machines`, lease);
  /** Those that are worked on, and for some seconds those that are complete. */
  const batches = new Map<string, SharedBatch>();
  const broken = new Map<string, { name: string; error: SeoError }>();
  /** When batches were seen to be complete. */
  const complete = new Map<string, number>();
  let closed = false;
  let turn: Promise<unknown> = Promise.resolve();
  let reading: Promise<void> | undefined;

  function drop(id: string): void {
    batches.get(id)?.vanish();
    batches.delete(id);
    complete.delete(id);
  }

  async function discard(id: string): Promise<void> {
    await registry.remove(id);
    drop(id);
  }

  async function load(id: string): Promise<SharedBatch | undefined> {
    const job = await registry.read(id);
    if (!job) return undefined;
    const { name, format } = job;
    if (format === FORMAT) return openBatch(id, job);
    const sentence = `The batch ${JSON.stringify(name)} is of another version of this package: update it on all machines.`;
    broken.set(id, { name, error: new SeoError("SEO_CONFIG", sentence) });
    return undefined;
  }

  async function openBatch(id: string, { name, settings, rows }: Omit<Job, "format">): Promise<SharedBatch> {
    const batch = createSharedBatch(settings, rows, {
      name,
      machine: machine.id,
      renew: () => safely(machine.renew),
      stale: lease.lockDuration / 3,
      toError,
      log: (take) => createLog(logs, id, () => registry.exists(id), take),
      discard: () => safely(() => discard(id)),
      reopened: () => found(batch),
      succeed: (settings, rows) => safely(async () => (await begin(name, settings, rows)).total()),
    });
    await batch.read();
    batches.set(id, batch);
    return batch;
  }

  /** Another machine may have removed it. */
  async function read(batch: SharedBatch): Promise<void> {
    await batch.read().catch((cause) => {
      if (cause !== taken) throw cause;
    });
  }

  /** What the log says decides. A machine may have died, or been late, when it wrote to the registry. */
  async function settle(id: string, batch: SharedBatch, isOpen: boolean): Promise<void> {
    const finished = batch.finished();
    if (finished === undefined) {
      if (!isOpen && !(await registry.reopen(id))) drop(id);
    } else if (!isOpen) drop(id);
    else if (!finished) {
      await registry.keep(id);
      await read(batch);
      // Another machine may have retried it meanwhile.
      if (batch.finished() === false) drop(id);
      else await registry.reopen(id);
    } else {
      const since = complete.get(id) ?? performance.now();
      complete.set(id, since);
      if (performance.now() - since > FAREWELL) await discard(id);
    }
  }

  /** Applies what other machines have done. Batches that have finished with failures leave the memory. */
  async function update(): Promise<void> {
    const open = await registry.open();
    for (const id of broken.keys()) if (!open.includes(id)) broken.delete(id);
    for (const id of open) {
      if (batches.has(id) || broken.has(id)) continue;
      const batch = await load(id);
      if (batch) found(batch);
    }
    for (const [id, batch] of batches) {
      if (batch.finished() === undefined) await read(batch);
      await settle(id, batch, open.includes(id));
    }
  }

  /** One at a time, because a batch is loaded once. */
  function inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    const result = turn.then(work);
    turn = result.catch(() => {});
    return result;
  }

  /** Pages of machines that have lost their lock are given to others. The log is read first: its machines had a lock. */
  async function bury(): Promise<void> {
    const owned = [...batches.values()].map((batch) => ({ batch, machines: batch.machines() }));
    const living = await machine.living();
    for (const { batch, machines } of owned)
      for (const other of machines) if (!living.has(other)) await batch.bury(other);
  }

  async function begin(name: string, settings: Settings, rows: string): Promise<SharedBatch> {
    for (;;) {
      const before = await registry.newest(name);
      await inTurn(update);
      for (const other of broken.values()) if (other.name === name) throw other.error;
      const open = [...batches.values()].find((batch) => batch.name === name && batch.isOpen());
      if (open) {
        await open.add(settings, rows);
        return open;
      }
      // A batch that this machine has closed may be worked on by others.
      if (closed) throw cancelled;
      const id = await registry.add(name, settings, rows, before);
      // Another machine was faster, and its batch is joined.
      if (!id) continue;
      // Not by an update, which can last so long that the batch has ended.
      const batch = await inTurn(async () => {
        const known = batches.get(id);
        if (known) return known;
        const opened = await openBatch(id, { name, settings, rows });
        found(opened);
        return opened;
      });
      for (const old of await registry.kept(name)) if (old !== id) await discard(old);
      return batch;
    }
  }

  /** Opens batches that are kept: their failed and uncertain pages wait again. */
  async function reopen(name?: string): Promise<Batch[]> {
    await update();
    const opened: Batch[] = [];
    for (const id of await registry.kept(name)) {
      const known = batches.get(id);
      try {
        const batch = known ?? (await load(id));
        const error = broken.get(id)?.error;
        if (error) throw error;
        if (!batch) continue;
        await batch.retry();
        found(batch);
        opened.push(batch);
      } catch (cause) {
        // Nobody works on it yet, and no update would find it.
        if (!known) drop(id);
        // Otherwise, a new list has replaced it on another machine.
        if (cause !== taken) throw cause;
      }
    }
    await update();
    return opened;
  }

  /** Rejects if the server cannot save what batches write. A lock can be renewed although its disk is full. */
  async function tryLog(): Promise<void> {
    const id = `probe-${randomBytes(8).toString("hex")}`;
    const log = createLog(
      logs,
      id,
      async () => true,
      () => {},
    );
    try {
      for (let line = 0; line < LINES; line++) await log.append(LINE);
    } catch (cause) {
      // A machine that starts has removed the lines: they belong to no batch.
      if (cause !== lostData) throw cause;
    } finally {
      await registry.remove(id);
    }
  }

  const safely = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    try {
      return await work();
    } catch (cause) {
      throw toError(cause);
    }
  };

  let renewed = performance.now();
  let buried = performance.now();
  function tick(): void {
    if (closed || reading) return;
    const work = async () => {
      const now = performance.now();
      if (now - renewed > lease.lockDuration / 3) {
        await machine.renew();
        renewed = now;
      }
      await inTurn(update);
      if (now - buried > lease.stalledInterval) {
        await bury();
        buried = now;
      }
    };
    reading = safely(work)
      .catch((error) => {
        // A batch that vanished meanwhile: the next read tells why.
        if (closed || error === taken) return;
        if (error instanceof Trouble) stalled(error);
        else lost(error);
      })
      .finally(() => {
        reading = undefined;
      });
  }

  await safely(async () => {
    await registry.prepare();
    await update();
  });
  const timer = setInterval(tick, Math.min(BETWEEN_READS, lease.lockDuration / 6));

  return {
    get batches() {
      return [...batches.values()].filter((batch) => batch.finished() === undefined);
    },
    get broken() {
      return [...broken.values()];
    },
    between: BETWEEN_PROBES,
    refresh: () => safely(() => inTurn(update)),
    create: (name, settings, rows) => safely(() => begin(name, settings, textOf(rows))),
    async *reopen(name) {
      yield* await safely(() => inTurn(() => reopen(name)));
    },
    forget: (name) =>
      safely(async () => {
        await inTurn(update);
        const kept = await registry.kept(name);
        for (const id of kept) await discard(id);
        return kept.length;
      }),
    probe: () =>
      safely(async () => {
        await machine.renew();
        await tryLog();
        await inTurn(update);
      }),
    async close() {
      closed = true;
      clearInterval(timer);
      const end = async () => {
        await Promise.all(Array.from(batches.values(), (batch) => batch.close()));
        await machine.leave();
      };
      await server.close(await inTime(end()));
    },
    async remove() {
      for (const id of batches.keys()) await discard(id);
    },
  };
}

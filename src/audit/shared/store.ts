import { hash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SeoError } from "../../errors.js";
import type { Settings } from "../list.js";
import type { Hooks, Store } from "../store.js";
import { Trouble } from "../trouble.js";
import { createSharedBatch, type SharedBatch, textOf } from "./batch.js";
import { createLog, isGone, logOf, lostData, segmentOf } from "./log.js";
import { joinMachines } from "./machine.js";
import type { Lease, Queue, Server } from "./server.js";

/** The job that is a batch. No worker processes it. */
interface Job {
  /** `FORMAT`. */
  format: number;
  name: string;
  /** Its log's, which no other batch has ever had. */
  log: string;
  settings: Settings;
  rows: string;
}

/** Of the job and its log. A machine with another version of the package must not misread them. */
const FORMAT = 1;
/** The ID of a job that is always there. */
const MARK = "mark";

/** Milliseconds: how often the logs are read, and how long the others have time to see that a batch is complete. */
const BETWEEN_READS = 500;
const FAREWELL = 5000;
const GOODBYE = 2000;
const STEP = 250;

/** A batch that all succeeded in is removed; one that was not is kept for msg.retry. */
const isKept = (batch: SharedBatch) => batch.finished() === false;
const isName = (name: string | undefined) => (batch: SharedBatch) => name === undefined || batch.name === name;
/** No colon is allowed in an ID. */
const idOf = (name: string, number: number) => `${hash("sha256", name, "hex").slice(0, 16)}-${number}`;
const numberOf = (id: string) => Number(id.split("-")[1]);

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
  const registry: Queue = server.queue(node);
  const logs: Queue = server.queue(`${node}-log`);
  const machine = await joinMachines(server, `${node}-machines`, lease);
  const batches = new Map<string, SharedBatch>();
  const broken = new Map<string, { name: string; log: string; error: SeoError }>();
  const removals = new Map<string, NodeJS.Timeout>();
  let closed = false;
  let isOpen = false;
  let updating: Promise<unknown> = Promise.resolve();
  let reading: Promise<void> | undefined;

  const jobOf = async (id: string) => (await registry.getJob(id))?.data as Job | undefined;

  /** Removes a batch. The next one of its name can have the same ID, but not the same log. */
  async function discard(id: string, log: string): Promise<void> {
    const batch = batches.get(id);
    const job = await registry.getJob(id);
    if ((job?.data as Job | undefined)?.log === log) await job?.remove();
    if (batch?.log === log) {
      batches.delete(id);
      batch.vanish();
    }
    for (let number = 0; ; number++) {
      const segment = await logs.getJob(segmentOf(log, number));
      if (!segment) return;
      await segment.remove();
    }
  }

  function left(id: string): void {
    const batch = batches.get(id);
    if (!batch?.finished() || removals.has(batch.log)) return;
    const timer = setTimeout(() => {
      removals.delete(batch.log);
      discard(id, batch.log).catch(() => {});
    }, FAREWELL);
    removals.set(batch.log, timer.unref());
  }

  async function load(id: string): Promise<SharedBatch | undefined> {
    const data = await jobOf(id);
    if (!data) return undefined;
    const { name, log, format } = data;
    if (format !== FORMAT) {
      const sentence = `The batch ${JSON.stringify(name)} is of another version of this package: update it on all machines.`;
      broken.set(id, { name, log, error: new SeoError("SEO_CONFIG", sentence) });
      return undefined;
    }
    const batch = createSharedBatch(data.settings, data.rows, {
      name: data.name,
      id: data.log,
      machine: machine.id,
      stale: lease.lockDuration / 3,
      toError,
      log: (take) => createLog(logs, data.log, async () => (await jobOf(id))?.log === data.log, take),
      discard: () => discard(id, data.log),
      left: () => left(id),
      async succeed(settings, rows) {
        const next = await begin(data.name, settings, rows);
        found(next);
        return next.total;
      },
    });
    await batch.read();
    batches.set(id, batch);
    if (batch.finished()) left(id);
    return batch;
  }

  /** The batches on the server, the oldest first. */
  async function ids(): Promise<string[]> {
    const all = await registry.getRanges(["wait"], 0, -1, true);
    if (!all.includes(MARK)) throw lostData;
    return all.filter((id) => id !== MARK);
  }

  /** One at a time, because a batch is loaded once. */
  function update(): Promise<void> {
    const result = updating.then(refresh);
    updating = result.catch(() => {});
    return result;
  }

  async function refresh(): Promise<void> {
    const known = await ids();
    for (const [id, batch] of batches) {
      if (known.includes(id)) continue;
      batches.delete(id);
      batch.vanish();
    }
    for (const id of known) {
      if (batches.has(id) || broken.has(id)) continue;
      const batch = await load(id);
      if (isOpen && batch?.finished() === undefined && batch) found(batch);
    }
  }

  /** Pages of machines that have lost their lock are given to others. The log is read first: its machines had a lock. */
  async function bury(): Promise<void> {
    const owned = [...batches.values()].map((batch) => ({ batch, machines: batch.machines() }));
    const living = await machine.living();
    for (const { batch, machines } of owned)
      for (const other of machines) if (!living.has(other)) await batch.bury(other);
  }

  async function read(): Promise<void> {
    await update();
    for (const [, batch] of batches) {
      const was = batch.finished();
      await batch.read().catch((cause) => {
        if (!isGone(cause)) throw cause;
      });
      if (was === false && batch.finished() === undefined) found(batch);
    }
  }

  async function begin(name: string, settings: Settings, rows: string): Promise<SharedBatch> {
    for (;;) {
      await update();
      for (const other of broken.values()) if (other.name === name) throw other.error;
      const same = [...batches].filter(([, batch]) => batch.name === name);
      const open = same.find(([, batch]) => batch.isOpen())?.[1];
      if (open) {
        await open.join(
          settings,
          (function* () {
            for (const text of rows.split("\n")) if (text) yield { key: "", text };
          })(),
        );
        return open;
      }
      const number = 1 + Math.max(0, ...same.map(([id]) => numberOf(id)));
      const id = idOf(name, number);
      const log = randomBytes(8).toString("hex");
      await registry.add("batch", { format: FORMAT, name, log, settings, rows } satisfies Job, { jobId: id });
      const job = await jobOf(id);
      // Another machine was faster: its batch is joined.
      if (job?.log !== log) continue;
      await update();
      const batch = batches.get(id);
      if (!batch) continue;
      for (const [other, old] of same) if (old.finished() !== undefined) await discard(other, old.log);
      return batch;
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
      await read();
      if (now - buried > lease.stalledInterval) {
        await bury();
        buried = now;
      }
    };
    reading = safely(work)
      .catch((error) => {
        if (closed) return;
        if (error instanceof Trouble) stalled(error);
        else lost(new Trouble("server", (error as Error).message));
      })
      .finally(() => {
        reading = undefined;
      });
  }

  /** A machine that died while it removed a batch has left segments. A batch is there before its segments. */
  async function loadAll(): Promise<void> {
    await registry.add("mark", {}, { jobId: MARK });
    const segments = await logs.getRanges(["wait"], 0, -1);
    await update();
    const used = new Set(Array.from([...batches.values(), ...broken.values()], ({ log }) => log));
    for (const id of segments) if (!used.has(logOf(id))) await (await logs.getJob(id))?.remove();
  }

  await safely(loadAll);
  isOpen = true;
  const timer = setInterval(tick, Math.min(BETWEEN_READS, lease.lockDuration / 6, STEP * 2));

  return {
    batches: [...batches.values()].filter((batch) => batch.finished() === undefined),
    get broken() {
      return [...broken.values()];
    },
    between: STEP * 8,
    refresh: () => safely(read),
    create: (name, settings, rows) => safely(() => begin(name, settings, textOf(rows))),
    async *reopen(name) {
      await safely(read);
      yield* [...batches.values()].filter(isKept).filter(isName(name));
    },
    forget: (name) =>
      safely(async () => {
        const some = [...batches].filter(([, batch]) => isKept(batch) && isName(name)(batch));
        for (const [id, batch] of some) {
          await batch.reset();
          await discard(id, batch.log);
        }
        return some.length;
      }),
    probe: () =>
      safely(async () => {
        await machine.renew();
        await read();
      }),
    async close() {
      closed = true;
      clearInterval(timer);
      for (const removal of removals.values()) clearTimeout(removal);
      const end = async () => {
        await Promise.all(Array.from(batches.values(), (batch) => batch.close()));
        await machine.leave();
      };
      await server.close(await inTime(end()));
    },
    async remove() {
      for (const [id, batch] of batches) await discard(id, batch.log);
    },
  };
}

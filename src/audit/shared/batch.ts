import { cancelled, type SeoError } from "../../errors.js";
import { createDelivery } from "../delivery.js";
import { readingsOf } from "../ledger.js";
import type { Settings } from "../list.js";
import type { Row } from "../rows.js";
import type { Batch, Ended, Plan, Sent, Watcher } from "../store.js";
import { taken } from "../trouble.js";
import { createElsewhere } from "./elsewhere.js";
import { createGroup, END, type GroupEntry, type Kind, machineOf, PLAN } from "./group.js";
import type { Log } from "./log.js";
import { type Applied, createWriter } from "./writer.js";

/** What a batch needs of the store that keeps it. */
export interface BatchOptions {
  name: string;
  /** This machine, in claims. It has a new ID after the connection was lost. */
  machine(): string;
  /** Gives it a new ID if it needs one. Rejects as `toError` says. */
  renew(): Promise<void>;
  /** Milliseconds after which a machine that was frozen may have lost its pages. */
  stale: number;
  log(take: (text: string) => void): Log;
  /** An error as the engine wants it. */
  toError(cause: unknown): SeoError;
  /** The list came too late, because the batch ends: another batch of its name is begun. Returns its number of rows. */
  succeed(settings: Settings, rows: string): Promise<number>;
  /** Removes it from the server. */
  discard(): Promise<void>;
  /** It had finished, and is worked on again. */
  reopened(): void;
}

export interface SharedBatch extends Batch {
  /** Adds the rows of a list, as one text. Returns how many are new. */
  add(settings: Settings, rows: string): Promise<number>;
  /** Applies what other machines have written. */
  read(): Promise<void>;
  /** The machines that have something of the batch. */
  machines(): Set<string>;
  /** A machine has lost its lock: others get what it had. */
  bury(machine: string): Promise<void>;
  /** Undefined as long as it is worked on; true if nothing is left for msg.retry. */
  finished(): boolean | undefined;
  /** It can be joined. */
  isOpen(): boolean;
  /** It was removed from the server, or finished. */
  vanish(): void;
  close(): Promise<void>;
}

/** The rows of a list as one text. */
export function textOf(rows: Iterable<Row>): string {
  let text = "";
  for (const row of rows) text += `${row.text}\n`;
  return text;
}

/** Of this process, which may load a batch again. */
let claims = 0;

/** A batch whose state is what its log says. Nothing changes it before it was read back from there. */
export function createSharedBatch(settings: Settings, rows: string, around: BatchOptions): SharedBatch {
  const { name, machine, toError } = around;
  const group = createGroup();
  const { ledger, pages } = group;
  const mine = new Map<number, string>();
  /** Rows that were told, which the log does not say yet. */
  const told = new Set<number>();
  /** How pages ended whose claim was lost meanwhile. If they are taken again, this is known, and not looked for. */
  const known = new Map<number, Ended>();
  /** By claim, what is true of a page instead of its last note, which says that its request was sent. */
  const unsent = new Map<string, Sent>();
  const plans: [number, Plan][] = [];
  let watcher: Watcher | undefined;
  let notified = false;
  let closed = false;
  let wasFinished = false;
  const writer = createWriter({ ...around, apply, late, applied });
  const { append, insist } = writer;
  writer.check("list", () => group.apply({ list: settings, rows }));

  const isOwn = (by: string) => machineOf(by) === machine();
  const elsewhere = createElsewhere(group, isOwn);
  const claim = () => `${machine()}/${++claims}`;

  function notify(): void {
    if (notified) return;
    notified = true;
    setImmediate(() => {
      notified = false;
      if (!closed) watcher?.changed();
    });
  }

  function apply(entry: GroupEntry): Applied {
    const result = group.apply(entry);
    if ("told" in entry && result === true) told.delete(entry.row);
    if ("sent" in entry && result === true) known.delete(entry.row);
    elsewhere.applied(entry, result);
    return result;
  }

  /** The process had given up what it has taken now. */
  function late(entry: GroupEntry, result: Applied): void {
    if ("take" in entry && typeof result === "number" && isOwn(entry.by)) void leave(result, entry.by);
  }

  function applied(): void {
    const hasFinished = group.finished() !== undefined;
    if (hasFinished && !wasFinished && !isOwn(group.owners.get(END) ?? "/")) watcher?.finished();
    if (wasFinished && !hasFinished && watcher) around.reopened();
    wasFinished = hasFinished;
    notify();
  }

  async function leave(key: number, by: string): Promise<void> {
    if (mine.get(key) === by) mine.delete(key);
    const request = unsent.get(by);
    unsent.delete(by);
    // Otherwise, whoever takes the page would look for the request until the end of the horizon.
    if (request) await insist({ row: key, ...request, by });
    await insist({ left: key, by });
  }

  async function take(which: Kind): Promise<number | undefined> {
    // Its pages were given to others, and nothing that it takes by this ID counts.
    if (group.dead.has(machine())) await around.renew();
    const by = claim();
    const key = await append({ take: which, by });
    // Or it was given away at once, because its machine was frozen meanwhile.
    if (typeof key !== "number" || group.owners.get(key) !== by) return undefined;
    mine.set(key, by);
    return key;
  }

  /** Writes for a page that this process has. */
  async function write(page: number, entry: GroupEntry & { row: number }): Promise<void> {
    const by = mine.get(page);
    if (by === undefined || !(await append({ ...entry, by }))) throw taken;
  }

  /** A process that was frozen finds out, before it sends a request, that its pages were given to others. */
  async function send(page: number, sent: Sent): Promise<void> {
    const by = mine.get(page);
    const before = ledger.sent.get(page) ?? { ...sent, intent: undefined };
    try {
      let began = Date.now();
      await write(page, { row: page, at: new Date(began).toISOString(), ...sent });
      while (Date.now() - began > around.stale) {
        began = Date.now();
        await writer.read().catch((cause) => {
          throw toError(cause);
        });
        if (by === undefined || group.owners.get(page) !== by) throw taken;
      }
    } catch (cause) {
      if (by !== undefined) unsent.set(by, before);
      throw cause;
    }
  }

  /** Notes that a row was told: again if its page was lost meanwhile, and taken again by this process, which does not tell it twice. */
  async function noteTold(row: number): Promise<void> {
    const page = pages.pageOf(row);
    while (told.has(row)) {
      const by = mine.get(page);
      if (by !== undefined) await insist({ row, told: true, by });
      if (mine.get(page) !== by) continue;
      told.delete(row);
      if (group.owners.get(page) !== by) mine.delete(page);
    }
  }

  const delivery = createDelivery((row) => void noteTold(row));

  const untold = (page: number) => ledger.untold(page).filter((row) => !told.has(row));

  const number = (result: Applied) => (typeof result === "number" ? result : 0);

  async function end(complete: boolean): Promise<void> {
    await delivery.settled();
    const by = mine.get(END);
    // It goes on: a machine has sent msg.retry, or has taken this one's lock away.
    if (by !== undefined && !(await append({ finished: complete, by }))) around.reopened();
  }

  const batch: SharedBatch = {
    name,
    get reports() {
      return elsewhere.reports();
    },
    ...readingsOf(ledger),
    streak: () => ledger.streakOf(machine()),

    async take(which) {
      const broken = writer.broken();
      if (broken) throw broken;
      if (!ledger.has(which, group.planEnd())) return undefined;
      const page = await take(which);
      if (page === undefined) return undefined;
      const end = known.get(page);
      known.delete(page);
      if (end && !ledger.ended.has(page))
        await batch.ended(page, end).catch((cause) => {
          batch.release(page);
          throw cause;
        });
      return {
        page,
        url: group.urlOf(page),
        settings: group.listOf(page),
        request: ledger.requestOf(page, group.plans.get(page)),
        ended: ledger.ended.get(page),
        repeated: group.repeated.has(page),
      };
    },
    takeInvalid: async () => (ledger.has("invalid", 0) ? take("invalid") : undefined),
    release(page) {
      const by = mine.get(page);
      // What was told is given back by the note that says so.
      if (by !== undefined && untold(page).length > 0) void leave(page, by);
    },

    sent: send,
    async ended(page: number, ended: Ended) {
      const by = mine.get(page) ?? mine.get(PLAN);
      if (by !== undefined) mine.set(page, by);
      // It was written, although the server did not respond.
      if (by !== undefined && group.owners.get(page) === by && ledger.ended.has(page)) return;
      await write(page, { row: page, ...ended }).catch((cause) => {
        if (cause === taken && !ended.error) known.set(page, ended);
        // It is not this machine's any more. Or its end was written, although the server did not respond, and is to be told.
        if (cause === taken && by !== undefined) void leave(page, by);
        throw cause;
      });
    },
    untold,
    input: async (row) => group.rowOf(row),
    told(row) {
      told.add(row);
      delivery.add(row);
    },
    async again(some) {
      delivery.flush();
      await Promise.all(some.map((row) => append({ row, again: true })));
    },
    async letGo() {
      await append({ letGo: true });
    },

    async unplanned() {
      for (;;) {
        const list = group.lists[group.unplanned()];
        if (!list) return undefined;
        const by = group.owners.get(PLAN);
        if (by === undefined ? (await take("plan")) === undefined : by !== mine.get(PLAN)) return undefined;
        const count = ledger.countNew(list);
        if (count > 0) return { list, pages: count };
        await batch.planned(list);
      }
    },
    plan(page, plan) {
      plans.push([page, plan]);
    },
    async planned(list) {
      const by = mine.get(PLAN);
      const planned = group.lists.indexOf(list as (typeof group.lists)[number]);
      const made = plans.splice(0);
      if (by === undefined || !(await append({ planned, plans: made, by }))) throw taken;
      mine.delete(PLAN);
    },

    unplan() {
      plans.length = 0;
      const by = mine.get(PLAN);
      if (by !== undefined) void leave(PLAN, by);
    },

    join: (settings, rows) => batch.add(settings, textOf(rows)),
    async add(settings, rows) {
      const added = await append({ list: settings, rows });
      return typeof added === "number" ? added : around.succeed(settings, rows);
    },
    async pause(paused) {
      await append({ paused });
    },
    async retry() {
      delivery.flush();
      return number(await append({ retry: true }));
    },
    async reset() {
      if (writer.broken()) await around.discard();
      else await append({ reset: true });
    },
    async last() {
      if (!group.isOver()) return undefined;
      // The end is this machine's already if a message came meanwhile that did not reopen the batch.
      const by = group.owners.get(END);
      const isOurs = by === undefined ? (await take("end")) !== undefined : by === mine.get(END);
      return isOurs ? { repeated: group.repeated.has(END) } : undefined;
    },
    finish: () => end(false),
    remove: () => end(true),

    watch(given) {
      // It vanished before it was to be worked on.
      if (closed) return given.finished();
      watcher = given;
      elsewhere.watch(given);
      if (group.finished() !== undefined) given.finished();
    },
    read: writer.read,
    machines: () => new Set([...[...group.owners.values()].map(machineOf), ...ledger.machines()]),
    async bury(machine) {
      await append({ gone: machine });
    },
    finished: group.finished,
    isOpen: () => !closed && group.finished() === undefined && !ledger.dropped() && !group.owners.has(END),
    vanish() {
      closed = true;
      elsewhere.end();
      void writer.close(taken);
      if (!wasFinished) watcher?.finished();
    },
    async close() {
      delivery.close();
      if (mine.size > 0 || ledger.machines().includes(machine())) await append({ gone: machine() }).catch(() => {});
      closed = true;
      elsewhere.end();
      await writer.close(cancelled);
    },
  };
  return batch;
}

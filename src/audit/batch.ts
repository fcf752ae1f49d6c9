import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import type { SeoError } from "../errors.js";
import type { Ended, Entry, Settings } from "./entries.js";
import { keyOf, type Row } from "./rows.js";
import { apply, hasFailed, listOf, pageOf, type Reading, type State, stageOf, total } from "./state.js";

/** The log of one batch: a file, or that of a job in a queue. Rejects with a Trouble, or as `taken` if another machine leads. */
export interface Journal {
  /** Resolves when the entry is saved; with `synced` false, when it is written. */
  append(entry: Entry, synced?: boolean): Promise<void>;
  /** Rejects if another machine leads. */
  check?(): Promise<void>;
  /** Whether the message that is processed has changed this batch before. */
  isHandled?(): boolean;
  /** Waits for what was appended. Nothing more is. */
  close(): Promise<void>;
  /** Closes a batch that has finished. It stays for msg.retry. */
  keep(): Promise<void>;
  remove(): Promise<void>;
}

/** A list of pages, as a message brings it. */
export interface List {
  settings: Settings;
  rows: Iterable<Row>;
}

/** Rows that are saved together. Between them, the process does other things, such as a deploy. */
const ROWS = 1000;
/** Milliseconds that a result takes to its next nodes: Node-RED delivers messages later, and several nodes in turn. */
const DELIVERY = 50;

/** A batch that is worked on: what its journal says, and which page is next. */
export class Batch {
  readonly state: State;
  /** The reports that earlier processes got. */
  readonly reports: readonly string[];
  /** Pages that failed before it was opened. */
  readonly failed: readonly number[];
  readonly #journal: Journal;
  /** By page: the timer of the note that its result was delivered. */
  readonly #notes = new Map<number, NodeJS.Timeout>();
  #noted = Promise.resolve();
  /** How pages ended before it was opened, whose results may have been delivered. */
  readonly #earlier: WeakSet<Ended>;
  /** Pages that somebody works on. */
  readonly #busy = new Set<number>();
  /** Pages that were sent or have ended, and that nobody works on. */
  readonly #begun = new Set<number>();
  /** Pages that wait behind all others. */
  readonly #later = new Set<number>();
  /** No page before it is new. */
  #cursor = 0;
  #isUnchanged = true;

  constructor(journal: Journal, { state, reports }: Reading) {
    this.state = state;
    this.reports = reports;
    this.failed = [...state.ended].flatMap(([page, ended]) => (hasFailed(ended) ? page : []));
    this.#journal = journal;
    this.#earlier = new WeakSet(state.ended.values());
    // Pages that were sent are looked for before anything else is done.
    for (const begun of ["sent", "ended"])
      for (const [page, stage] of state.stages) if (stage === begun) this.#begun.add(page);
  }

  /** Nothing was saved since it was opened: if it is over, its end may have been reported before. */
  get isUnchanged(): boolean {
    return this.#isUnchanged;
  }

  /** Nothing counts before it is saved. */
  async write(entry: Entry): Promise<void> {
    await this.#journal.append(entry);
    this.#isUnchanged = false;
    apply(this.state, entry);
    if (entry.type === "list")
      for (const row of this.state.invalid) if (row >= (this.state.lists.at(-1)?.first ?? 0)) this.#begun.add(row);
    if (entry.type !== "retry") return;
    for (const page of this.#begun) if (stageOf(this.state, page) === "waiting") this.#begun.delete(page);
    this.#cursor = 0;
  }

  /** Does what a message says, once. */
  async change(type: "pause" | "resume" | "retry" | "reset"): Promise<void> {
    if (!this.#journal.isHandled?.()) await this.write({ type });
  }

  /** Adds the pages that are new, and has those that wait take the settings. Returns how many rows were added. */
  async add({ settings, rows }: List): Promise<number> {
    const relisted = new Set<number>();
    const saved = await this.#saveRows({ settings, rows }, relisted);
    if (saved + relisted.size > 0) await this.write({ type: "list", settings, rows: saved, pages: [...relisted] });
    return saved;
  }

  async #saveRows({ settings, rows }: List, relisted: Set<number>): Promise<number> {
    const differs = ({ existing, maxAge, privacy }: Settings) =>
      existing !== settings.existing || maxAge !== settings.maxAge || privacy !== settings.privacy;
    let some: Row[] = [];
    let saved = 0;
    let count = 0;
    const save = async () => {
      await this.write({ type: "rows", from: saved, rows: some });
      saved += some.length;
      some = [];
    };
    for (const row of rows) {
      const page = pageOf(this.state, keyOf(row));
      if (page === undefined) some.push(row);
      else if (stageOf(this.state, page) === "waiting" && differs(this.settingsOf(page))) relisted.add(page);
      if (some.length === ROWS) await save();
      else if (++count % ROWS === 0) await breathe();
    }
    if (some.length > 0 || (saved === 0 && relisted.size > 0)) await save();
    return saved;
  }

  settingsOf(page: number): State["lists"][number] {
    return this.state.lists[listOf(this.state, page)] as State["lists"][number];
  }

  isWaiting(page: number): boolean {
    return stageOf(this.state, page) === "waiting" && !this.#busy.has(page);
  }

  /** Whether an earlier process may have delivered how a page ended. */
  isEarlier(ended: Ended): boolean {
    return this.#earlier.has(ended);
  }

  /** The next page that was begun, or else is new: first those that do not wait behind the others. */
  next(): { page: number; isLater: boolean } | undefined {
    for (const page of this.#begun) return { page, isLater: false };
    if (this.state.dropped) return undefined;
    const isNew = (page: number) => this.isWaiting(page) && !this.#later.has(page);
    while (this.#cursor < total(this.state) && !isNew(this.#cursor)) this.#cursor++;
    if (this.#cursor < total(this.state)) return { page: this.#cursor, isLater: false };
    for (const page of this.#later) if (this.isWaiting(page)) return { page, isLater: true };
    return undefined;
  }

  take(page: number): void {
    this.#busy.add(page);
    this.#begun.delete(page);
    this.#later.delete(page);
  }

  /** Nobody works on the page any more. If it is not done, it is taken again; `last`: behind all others. */
  release(page: number, last = false): void {
    this.#busy.delete(page);
    const stage = stageOf(this.state, page);
    if (stage === "sent" || stage === "ended") this.#begun.add(page);
    else if (stage === "waiting" && last) this.#later.add(page);
    else if (stage === "waiting") this.#cursor = Math.min(this.#cursor, page);
  }

  /** The result of a page was sent to the flow. If the process dies before that is noted, it is sent again. */
  delivered(page: number): void {
    apply(this.state, { type: "delivered", page });
    const note = () => {
      this.#notes.delete(page);
      // After msg.retry, the note would be that of a later result.
      if (stageOf(this.state, page) !== "delivered") return;
      this.#noted = this.#journal.append({ type: "delivered", page }, false).catch(() => {});
    };
    clearTimeout(this.#notes.get(page));
    this.#notes.set(page, setTimeout(note, DELIVERY));
  }

  /** Resolves if the end can be reported. */
  async check(): Promise<void> {
    await this.#journal.check?.();
  }

  /** Ends a batch that is over. It stays for msg.retry, unless all pages have succeeded, or it was reset. */
  async finish(): Promise<void> {
    // Timers of the same time end in their order.
    if (this.#notes.size > 0) await sleep(DELIVERY);
    // Not with the end, because a note that cannot be saved is not saved again.
    await this.#noted;
    const { failed, uncertain } = this.state.counts;
    if (this.state.dropped || failed + uncertain === 0) return this.#journal.remove();
    await this.#journal.append({ type: "finished" });
    await this.#journal.keep();
  }

  async close(): Promise<void> {
    for (const timer of this.#notes.values()) clearTimeout(timer);
    await this.#journal.close();
  }

  /** Drops it, with everything that it says. */
  async remove(): Promise<void> {
    for (const timer of this.#notes.values()) clearTimeout(timer);
    await this.#journal.remove();
  }
}

/** Where the batches of one node are kept. */
export interface Store {
  /** The batches that are not finished, the oldest first. */
  readonly batches: readonly Batch[];
  /** Batches that cannot be read. */
  readonly broken: readonly { name: string; error: SeoError }[];
  /** A new batch, which is kept once it has a list. One of the same name that has finished is removed. */
  create(name: string, list: List): Promise<Batch>;
  /** Opens finished batches again, one or all. Throws at the first that cannot be opened. */
  reopen(name?: string): AsyncIterable<Batch>;
  /** Removes finished batches, and those that cannot be read. Returns how many. */
  forget(name?: string): Promise<number>;
  /** Rejects if nothing can be saved. */
  probe(): Promise<void>;
  /** Milliseconds until the next probe, if it is not a minute. */
  readonly between?: number;
  close(): Promise<void>;
}

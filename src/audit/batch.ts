import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import type { SeoError } from "../errors.js";
import { moment } from "./clock.js";
import { type Entry, FORMAT, type Settings } from "./entries.js";
import { type Row, rowKey } from "./rows.js";
import { apply, failedPages, isBegun, pageOf, phaseOf, type State, total } from "./state.js";

/** The log of one batch: a file, or that of a job in a queue. Rejects with a Trouble, or as `deposed` if another machine leads. */
export interface Journal {
  /**
   * Resolves when the entry is saved; with `synced` false, when it is written. Resolves with false if the message that is
   * processed has changed this batch before: then the entry does not count.
   */
  append(entry: Entry, synced?: boolean): Promise<unknown>;
  /** Rejects if another machine leads. */
  check?(): Promise<void>;
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
/** Milliseconds, and then iterations of the event loop, that a result takes to its next nodes: to each, Node-RED delivers in a later one. */
const DELIVERY = 50;
const ITERATIONS = 10;
/** A process that is held up for longer than that has iterated no more. */
async function iterations(): Promise<void> {
  for (let i = 0; i < ITERATIONS; i++) await breathe();
}

/** A batch that is worked on: what its journal says, and which page is next. */
export class Batch {
  /** How many rows were saved before it was opened. */
  readonly earlier: number;
  /** Nothing was saved since it was opened: if it is over, its end may have been reported before. */
  isUnchanged = true;
  /** Pages that failed before it was opened. */
  readonly failed: readonly number[];
  /** The work ends, and the next nodes may be closed, too: no more results are noted, because the last ones may not reach them. */
  isClosing = false;
  /** The note that it was opened, if it could not be saved: it is saved with the next entry. */
  #opening: Entry | undefined;
  /** The last note that a result was delivered. */
  #noted: Promise<unknown> = Promise.resolve();
  /** Pages that somebody works on. */
  readonly #busy = new Set<number>();
  /** Pages that were sent or have ended; some of them may be worked on or done. */
  readonly #begun = new Set<number>();
  /** Pages that wait behind all others. */
  readonly #later = new Set<number>();
  /** No page before it is new. */
  #cursor = 0;

  constructor(
    readonly journal: Journal,
    readonly state: State,
  ) {
    this.failed = failedPages(state);
    this.earlier = total(state);
    // Pages that were sent are looked for before anything else is done.
    for (const begun of ["sent", "ended"])
      for (const [page, phase] of state.phases) if (phase === begun) this.#begun.add(page);
  }

  /** Nothing counts before it is saved. */
  async write(entry: Entry): Promise<void> {
    const opening = this.#opening && this.journal.append(this.#opening, false);
    const [isNew] = await Promise.all([this.journal.append(entry), opening]);
    this.#opening = undefined;
    if (isNew === false) return;
    this.isUnchanged = false;
    const added = total(this.state);
    apply(this.state, entry);
    // Rows that are no page have ended.
    for (let row = added; row < total(this.state); row++) if (isBegun(this.state, row)) this.#begun.add(row);
    if (entry.type === "retry") this.#cursor = 0;
  }

  /** Notes when it was opened, and for which service, so that what is known of earlier requests goes on from there in the next process. */
  opened(service: string): void {
    const entry: Entry = { type: "opened", service, ...moment() };
    apply(this.state, entry);
    this.journal.append(entry, false).catch(() => {
      this.#opening = entry;
    });
  }

  /** Begins its journal, with its first list. */
  async begin(name: string, list: List): Promise<void> {
    await this.write({ type: "batch", format: FORMAT, name });
    await this.add(list);
  }

  /** Adds the pages that are new, and has those that wait take the settings. Returns how many rows were added. */
  async add({ settings, rows }: List): Promise<number> {
    const differs = ({ existing, maxAge, privacy }: Settings) =>
      existing !== settings.existing || maxAge !== settings.maxAge || privacy !== settings.privacy;
    const relisted = new Set<number>();
    let some: Row[] = [];
    let saved = 0;
    let count = 0;
    const save = async () => {
      await this.write({ type: "rows", from: saved, rows: some });
      saved += some.length;
      some = [];
    };
    for (const row of rows) {
      const page = pageOf(this.state, rowKey(row));
      if (page === undefined) some.push(row);
      else if (phaseOf(this.state, page) === "waiting" && differs(this.settingsOf(page))) relisted.add(page);
      if (some.length === ROWS) await save();
      else if (++count % ROWS === 0) await breathe();
    }
    if (some.length > 0 || (saved === 0 && relisted.size > 0)) await save();
    if (saved + relisted.size > 0) await this.write({ type: "list", settings, rows: saved, pages: [...relisted] });
    return saved;
  }

  settingsOf(page: number): State["lists"][number] {
    return this.state.lists[this.state.listOf[page] as number] as State["lists"][number];
  }

  isWaiting(page: number): boolean {
    return phaseOf(this.state, page) === "waiting" && !this.#busy.has(page);
  }

  /** Whether a page waits for the plan of its list. */
  needsPlan(): boolean {
    return this.state.inputs.some((_, page) => this.isWaiting(page) && !this.settingsOf(page).planned);
  }

  /**
   * The next page that was begun, or else is new, one from `anywhere` or the first one, and only then one that waits behind the
   * others.
   */
  next(anywhere = false): { page: number; isLater: boolean } | undefined {
    for (const page of this.#begun) {
      if (!this.#busy.has(page) && isBegun(this.state, page)) return { page, isLater: false };
      this.#begun.delete(page);
    }
    if (this.state.dropped) return undefined;
    const isNew = (page: number) => this.isWaiting(page) && !this.#later.has(page);
    const rows = total(this.state);
    while (this.#cursor < rows && !isNew(this.#cursor)) this.#cursor++;
    let page = this.#cursor + (anywhere ? Math.floor(Math.random() * (rows - this.#cursor)) : 0);
    while (page < rows && !isNew(page)) page++;
    for (const one of [page, this.#cursor]) if (one < rows) return { page: one, isLater: false };
    for (const page of this.#later) if (this.isWaiting(page)) return { page, isLater: true };
    return undefined;
  }

  /** A step begins to work on the page. */
  acquire(page: number): void {
    this.#busy.add(page);
    this.#begun.delete(page);
    this.#later.delete(page);
  }

  /** Has a page wait behind all others. */
  putLast(page: number): void {
    this.#later.add(page);
  }

  /** No step works on the page any more. If it is not done, `next` returns it again. */
  release(page: number): void {
    this.#busy.delete(page);
    if (isBegun(this.state, page)) this.#begun.add(page);
    else if (this.isWaiting(page) && !this.#later.has(page)) this.#cursor = Math.min(this.#cursor, page);
  }

  /** The result of a page was sent to the flow. If the process dies before that is noted, it is sent again. */
  delivered(page: number): void {
    apply(this.state, { type: "delivered", page });
    setTimeout(async () => {
      await iterations();
      // After msg.retry, the note would be that of a later result.
      if (this.isClosing || phaseOf(this.state, page) !== "delivered") return;
      this.#noted = this.journal.append({ type: "delivered", page }, false).catch(() => {});
    }, DELIVERY);
  }

  /** Resolves when the notes of all results were written, or could not be. */
  async noted(): Promise<void> {
    // Timers of the same time end in their order, and so do their iterations.
    await sleep(DELIVERY);
    await iterations();
    await this.#noted;
  }

  /** Ends a batch that is over. It stays for msg.retry, unless all pages have succeeded, or it was reset. */
  async finish(): Promise<void> {
    // Not with the end, because a note that cannot be saved is not saved again.
    await this.noted();
    const { failed, uncertain } = this.state.counts;
    if (this.state.dropped || failed + uncertain === 0) return this.journal.remove();
    await this.journal.append({ type: "finished" });
    await this.journal.keep();
  }
}

/** The batches of one node. */
export interface Store {
  /** The batches that are not finished, the oldest first. */
  readonly batches: readonly Batch[];
  /** Batches that cannot be read. */
  readonly broken: readonly { name: string; error: SeoError }[];
  /** A new batch, which is saved once it has a list. One of the same name that has finished is removed. */
  create(name: string, list: List): Promise<Batch>;
  /** Opens finished batches again, one or all. Throws at one that cannot be opened. */
  reopen(name?: string): AsyncIterable<Batch>;
  /** Removes finished batches, and those that cannot be read. Returns how many. */
  forget(name?: string): Promise<number>;
  /** Rejects if nothing can be saved. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

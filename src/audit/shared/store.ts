import { type Code, cancelled, SeoError } from "../../errors.js";
import type { Audit } from "../audit.js";
import { Batch, type List, type Store } from "../batch.js";
import type { Entry } from "../entries.js";
import { createReading } from "../state.js";
import { taken } from "../trouble.js";
import { appendAlone, type Journal as JobJournal, type Line, openJournal, readLines } from "./journal.js";
import type { Given, Known } from "./known.js";
import { type Answer, FORMAT, idsIn, type JobEntry, obey, type Packed, prefixOf, readJob } from "./letter.js";
import type { Queue } from "./server.js";

/** The machine that leads, as the store needs it. */
export interface Lead {
  /** An error as the engine wants it. */
  toError(cause: unknown): SeoError;
  /** The store takes over nothing more: its node was closed, or the machine does not lead any more. */
  isOver(): boolean;
  /** Why a job that was there is missing. */
  gone(): Promise<unknown>;
  /** Rejects if the server cannot save more than a lock. */
  probe(): Promise<void>;
}

/** A job without a priority is a letter or an open batch, another one a batch that is kept for msg.retry. */
const OPEN = 0;
const KEPT = 1;
const MINUTE = 60_000;
/** So many jobs are read at the same time. */
const GROUP = 20;
/** The entries that a message causes. */
const CONTROLS: readonly string[] = ["list", "pause", "resume", "retry", "reset"];

/** The batches of one node, for the machine that leads. */
export class QueueStore implements Store {
  /** Milliseconds. */
  readonly between = 2000;
  readonly #queue: Queue;
  readonly #node: string;
  readonly #lead: Lead;
  /** The jobs that were read, but for batches that are kept. */
  readonly #jobs = new Map<string, Known>();
  /** Batches that are kept, although there is a new one of their name. */
  readonly #replaced = new Set<string>();
  /** The letter that is handled. */
  #current: Given | undefined;

  constructor(queue: Queue, node: string, lead: Lead) {
    this.#queue = queue;
    this.#node = node;
    this.#lead = lead;
  }

  get batches(): Batch[] {
    return [...this.#jobs.values()].flatMap(({ opened }) => opened?.batch ?? []);
  }

  get broken() {
    return [...this.#jobs.values()].flatMap(({ broken }) => broken ?? []);
  }

  async #safely<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } catch (cause) {
      throw this.#lead.toError(cause);
    }
  }

  #idsIn(state: "wait" | "prioritized", name?: string): Promise<string[]> {
    return this.#safely(() => idsIn(this.#queue, this.#node, state, name));
  }

  #finish(id: string): void {
    this.#jobs.set(id, { done: performance.now() });
  }

  #setPriority(id: string, priority: number) {
    return this.#safely(() => this.#queue.getBackend().changePriority(id, priority));
  }

  #work(id: string, journal: JobJournal<JobEntry>, reading = createReading(), letters = new Set<string>()): Batch {
    const save = (...entries: JobEntry[]) => this.#safely(() => journal.append(...entries));
    const append = async (entry: Entry) => {
      const letter = CONTROLS.includes(entry.type) ? this.#current?.id : undefined;
      await save({ ...entry, letter });
      if (letter !== undefined) letters.add(letter);
    };
    const isHandled = () => letters.has(this.#current?.id ?? "");
    const keep = async () => {
      await this.#setPriority(id, KEPT);
      this.#jobs.delete(id);
    };
    const remove = async () => {
      await save({ type: "removed" });
      this.#finish(id);
    };
    const batch = new Batch({ append, isHandled, check: save, close: journal.close, keep, remove }, reading);
    this.#jobs.set(id, { opened: { batch, letters } });
    return batch;
  }

  #check(): void {
    if (this.#lead.isOver()) throw cancelled;
  }

  /** Takes a job over, unless nothing is left to do, and works on it if it is a batch. */
  async #take(id: string, reopens = false): Promise<void> {
    const [found, before] = await Promise.all([this.#queue.getJob(id), readLines<JobEntry>(this.#queue, id)]);
    const data = found?.data as Packed | undefined;
    if (!data) return;
    const fail = (code: Code, why: string): void => {
      const error = new SeoError(code, `The batch ${data.name} ${why}`);
      this.#jobs.set(id, { broken: { name: JSON.parse(data.name), error } });
    };
    if (data.format !== FORMAT)
      return fail("SEO_CONFIG", "is of another version of this package: update it on all machines.");
    const read = (lines: readonly Line<JobEntry>[]) => {
      try {
        return readJob(lines);
      } catch (cause) {
        const why = (cause as Error).message;
        fail("SEO_INPUT", `cannot continue: its log in the queue is damaged (${why}). Send msg.reset.`);
      }
    };
    const earlier = read(before);
    if (!earlier) return;
    // A job that is done needs no fence: only the lead that has answered its letter can void that line, to answer again.
    if (earlier.isDone) return this.#finish(id);
    this.#check();
    const opened = await openJournal<JobEntry>(this.#queue, id, this.#lead.gone, before);
    if (!opened) return;
    const { journal, lines } = opened;
    // Unless another machine has come in between, nothing has changed since.
    const job = lines.length === before.length + 1 ? earlier : read(lines);
    if (!job) return;
    if (job.isDone) this.#finish(id);
    else if (!job.isBatch)
      this.#jobs.set(id, { given: { id, letter: JSON.parse(data.text), journal, again: lines.length > 1 } });
    else if (!job.isKept || reopens) this.#work(id, journal, job.reading, job.letters);
    else await this.#setPriority(id, KEPT);
  }

  /** A batch that is kept is not reopened any more. */
  async #discard(id: string): Promise<void> {
    this.#check();
    await appendAlone(this.#queue, id, { type: "removed" });
    await this.#setPriority(id, OPEN);
    this.#finish(id);
  }

  async #discardReplaced(): Promise<void> {
    for (const id of this.#replaced) {
      await this.#discard(id);
      this.#replaced.delete(id);
    }
  }

  /** Whether a list was added to another batch, by a machine that could not say so. */
  async #isJoined({ id, again }: Given, name: string): Promise<boolean> {
    if (!again) return false;
    const read = (job: string) => this.#safely(() => readLines<JobEntry>(this.#queue, job));
    for (const other of [...(await this.#idsIn("wait", name)), ...(await this.#idsIn("prioritized", name))]) {
      // A line of an open batch may still become void.
      const letters = this.#jobs.get(other)?.opened?.letters ?? readJob(await read(other)).letters;
      if (other !== id && letters.has(id)) return true;
    }
    return false;
  }

  async #obey(given: Given, audit: Audit): Promise<Answer> {
    const { letter, again } = given;
    const isDone = letter.do === "list" && (await this.#isJoined(given, letter.name));
    const answer = isDone ? { count: 1 } : await obey(letter, audit);
    // A batch that a machine has changed before it died may be over.
    return again && "count" in answer ? { count: Math.max(1, answer.count) } : answer;
  }

  /** Takes over what is open. */
  load(): Promise<void> {
    return this.#safely(async () => {
      const ids = await this.#idsIn("wait");
      for (let first = 0; first < ids.length; first += GROUP) {
        const all = await Promise.allSettled(ids.slice(first, first + GROUP).map((id) => this.#take(id)));
        // Not before all have ended, because what goes on would fence the next load.
        for (const one of all) if (one.status === "rejected") throw one.reason;
      }
      // The oldest first, whichever was read first.
      const jobs = new Map(this.#jobs);
      this.#jobs.clear();
      for (const id of ids) if (jobs.has(id)) this.#jobs.set(id, jobs.get(id) as Known);
      // The machine that led before has made a batch, and died.
      const named = this.batches.flatMap(({ state }) => (state.dropped ? [] : prefixOf(this.#node, state.name)));
      for (const id of await this.#idsIn("prioritized"))
        if (named.some((prefix) => id.startsWith(prefix))) this.#replaced.add(id);
    });
  }

  /** Handles a job that is a letter, unless that was done. Rejects with a Trouble if it is to be handled again. */
  handle(id: string, audit: Audit): Promise<void> {
    return this.#safely(async () => {
      await this.#discardReplaced();
      const isNew = !this.#jobs.has(id);
      if (isNew) await this.#take(id);
      const { given, opened } = this.#jobs.get(id) ?? {};
      // After this machine had read all batches, one that led before has made it, or opened it again.
      if (isNew && opened) throw taken;
      if (!given) return;
      this.#current = { ...given, again: true };
      this.#jobs.set(id, { given: this.#current });
      try {
        const answer = await this.#obey(given, audit);
        if (!this.#jobs.get(id)?.given) return;
        await given.journal.append({ type: "answer", answer });
        this.#finish(id);
      } finally {
        this.#current = undefined;
      }
    });
  }

  /** Removes jobs that were done a minute ago, and batches that were replaced. */
  clean(): Promise<void> {
    return this.#safely(async () => {
      await this.#discardReplaced();
      for (const [id, { done = Number.POSITIVE_INFINITY }] of this.#jobs) {
        if (performance.now() - done < MINUTE) continue;
        await this.#queue.remove(id);
        this.#jobs.delete(id);
      }
    });
  }

  /** The letter's job becomes the batch. */
  create(name: string, list: List): Promise<Batch> {
    return this.#safely(async () => {
      const given = this.#current as Given;
      const { id, journal } = given;
      const kept = await this.#idsIn("prioritized", name);
      const batch = this.#work(id, journal);
      try {
        await batch.write({ type: "batch", name });
        await batch.add(list);
      } catch (cause) {
        this.#jobs.set(id, { given });
        throw cause;
      }
      // Not now, because the batch could not be begun if that failed.
      for (const old of kept) this.#replaced.add(old);
      return batch;
    });
  }

  async *reopen(name?: string): AsyncGenerator<Batch> {
    // The priority of a job can have changed although there was no response.
    const isReopened = (id: string) =>
      id.startsWith(prefixOf(this.#node, name)) && this.#jobs.get(id)?.opened?.batch.state.finished;
    const reopened = [...this.#jobs.keys()].filter(isReopened);
    for (const id of new Set([...reopened, ...(await this.#idsIn("prioritized", name))])) {
      if (!this.#jobs.get(id)?.opened) await this.#safely(() => this.#take(id, true));
      const { broken, opened } = this.#jobs.get(id) ?? {};
      if (broken) throw broken.error;
      // The machine that has handled the letter before has finished the batch, too.
      if (opened?.batch.state.finished && opened.letters.has(this.#current?.id ?? "")) this.#jobs.delete(id);
      else if (opened) {
        await this.#setPriority(id, OPEN);
        yield opened.batch;
      }
    }
  }

  forget(name?: string): Promise<number> {
    return this.#safely(async () => {
      const isMeant = ({ broken }: Known) => broken && (name === undefined || broken.name === name);
      const damaged = [...this.#jobs].filter(([, job]) => isMeant(job));
      for (const [id] of damaged) {
        await this.#queue.remove(id);
        this.#jobs.delete(id);
      }
      const kept = await this.#idsIn("prioritized", name);
      for (const id of kept) await this.#discard(id);
      return damaged.length + kept.length;
    });
  }

  probe(): Promise<void> {
    return this.#safely(this.#lead.probe);
  }

  async close(): Promise<void> {
    await Promise.all(this.batches.map((batch) => batch.close()));
  }
}

/** Opens the jobs of one node. Rejects as `toError` says. */
export async function openStore(queue: Queue, node: string, lead: Lead): Promise<QueueStore> {
  const store = new QueueStore(queue, node, lead);
  await store.load();
  return store;
}

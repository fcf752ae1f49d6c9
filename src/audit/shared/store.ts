import { type Code, SeoError } from "../../errors.js";
import type { Audit } from "../audit.js";
import { Batch, type List, type Store } from "../batch.js";
import { createReading } from "../state.js";
import { taken } from "../trouble.js";
import { appendAlone, type Journal as JobJournal, openJournal, readLines } from "./journal.js";
import {
  type Answer,
  FORMAT,
  type JobEntry,
  type Letter,
  obey,
  type Packed,
  prefixOf,
  readJob,
  toJournal,
} from "./letter.js";
import type { Queue } from "./server.js";

/** What the store needs of the machine that leads. */
export interface Lead {
  /** An error as the engine wants it. */
  toError(cause: unknown): SeoError;
  /** Why a job that was there is missing. */
  gone(): Promise<unknown>;
  /** Rejects if the server cannot save more than a lock. */
  probe(): Promise<void>;
}

/** A job without a priority is a letter or an open batch, another one a batch that is kept for msg.retry. */
const OPEN = 0;
const KEPT = 1;
const MINUTE = 60_000;

/** A letter that is handled, and its journal. `again`: it may have been, but its answer is not known. */
interface Current {
  id: string;
  letter: Letter;
  journal: JobJournal<JobEntry>;
  again: boolean;
}

interface Opened {
  batch: Batch;
  /** The letters that have changed it. */
  letters: ReadonlySet<string>;
}

/** The batches of one node, for the machine that leads. */
export class QueueStore implements Store {
  /** Milliseconds. */
  readonly between = 2000;
  readonly #queue: Queue;
  readonly #node: string;
  readonly #lead: Lead;
  readonly #open = new Map<string, Opened>();
  readonly #broken = new Map<string, { name: string; error: SeoError }>();
  /** When jobs were done. They are removed later, because their senders may not know what became of them. */
  readonly #done = new Map<string, number>();
  /** Letters that were read, but not answered yet. */
  readonly #pending = new Map<string, Current>();
  #current: Current | undefined;

  constructor(queue: Queue, node: string, lead: Lead) {
    this.#queue = queue;
    this.#node = node;
    this.#lead = lead;
  }

  get batches(): Batch[] {
    return Array.from(this.#open.values(), ({ batch }) => batch);
  }

  get broken() {
    return [...this.#broken.values()];
  }

  async #safely<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } catch (cause) {
      throw this.#lead.toError(cause);
    }
  }

  async #idsIn(state: "wait" | "prioritized", name?: string): Promise<string[]> {
    const ids = await this.#safely(() => this.#queue.getRanges([state], 0, -1, true));
    return ids.filter((id) => id.startsWith(prefixOf(this.#node, name)));
  }

  #finish(id: string): void {
    this.#done.set(id, performance.now());
  }

  #setPriority(id: string, priority: number) {
    return this.#safely(() => this.#queue.getBackend().changePriority(id, priority));
  }

  #work(id: string, journal: JobJournal<JobEntry>, reading = createReading(), letters = new Set<string>()): Batch {
    const save = (...entries: JobEntry[]) => this.#safely(() => journal.append(...entries));
    const current = () => this.#current?.id;
    const keep = async () => {
      await this.#setPriority(id, KEPT);
      this.#open.delete(id);
    };
    const remove = async () => {
      await save({ type: "removed" });
      this.#open.delete(id);
      this.#finish(id);
    };
    const { close } = journal;
    const batch = new Batch({ ...toJournal(save, letters, current), check: save, close, keep, remove }, reading);
    this.#open.set(id, { batch, letters });
    return batch;
  }

  /** Takes a job over, and works on it if it is a batch. Returns it if it is a letter that was not handled. */
  async #take(id: string, reopens = false): Promise<Current | undefined> {
    const data = (await this.#queue.getJob(id))?.data as Packed | undefined;
    if (!data) return undefined;
    const fail = (code: Code, why: string): undefined => {
      const error = new SeoError(code, `The batch ${data.name} ${why}`);
      this.#broken.set(id, { name: JSON.parse(data.name), error });
    };
    if (data.format !== FORMAT)
      return fail("SEO_CONFIG", "is of another version of this package: update it on all machines.");
    const opened = await openJournal<JobEntry>(this.#queue, id, this.#lead.gone);
    if (!opened) return undefined;
    const { journal, lines } = opened;
    let job: ReturnType<typeof readJob>;
    try {
      job = readJob(lines);
      if (!job.isBatch && !job.isDone) return { id, letter: JSON.parse(data.text), journal, again: lines.length > 1 };
    } catch (cause) {
      const why = (cause as Error).message;
      return fail("SEO_INPUT", `cannot continue: its log in the queue is damaged (${why}). Send msg.reset.`);
    }
    if (job.isDone) this.#finish(id);
    else if (!job.isKept || reopens) this.#work(id, journal, job.reading, job.letters);
    else await this.#setPriority(id, KEPT);
    return undefined;
  }

  /** A batch that is kept is not reopened any more. */
  async #discard(id: string): Promise<void> {
    await appendAlone(this.#queue, id, { type: "removed" });
    await this.#setPriority(id, OPEN);
    this.#finish(id);
  }

  /** Whether a list was added to another batch, by a machine that could not say so. */
  async #isJoined({ id, again }: Current, name: string): Promise<boolean> {
    if (!again) return false;
    const read = (job: string) => this.#safely(() => readLines<JobEntry>(this.#queue, job));
    for (const other of [...(await this.#idsIn("wait", name)), ...(await this.#idsIn("prioritized", name))]) {
      // A line of an open batch may still become void.
      const letters = this.#open.get(other)?.letters ?? readJob(await read(other)).letters;
      if (other !== id && letters.has(id)) return true;
    }
    return false;
  }

  async #obey(given: Current, audit: Audit): Promise<Answer> {
    const { letter, again } = given;
    const isDone = letter.do === "list" && (await this.#isJoined(given, letter.name));
    const answer = isDone ? { count: 1 } : await obey(letter, audit);
    // What a machine that died has done may be over.
    return again && "count" in answer ? { count: Math.max(1, answer.count) } : answer;
  }

  /** Takes over what is open. */
  load(): Promise<void> {
    return this.#safely(async () => {
      for (const id of await this.#idsIn("wait")) {
        const letter = await this.#take(id);
        if (letter) this.#pending.set(id, letter);
      }
    });
  }

  /** Handles a job that is a letter, unless that was done. Rejects with a Trouble if it is to be handled again. */
  handle(id: string, audit: Audit): Promise<void> {
    return this.#safely(async () => {
      if (this.#open.has(id) || this.#done.has(id) || this.#broken.has(id)) return;
      const given = this.#pending.get(id) ?? (await this.#take(id));
      // After this machine had read all batches, one that led before has made it, or opened it again.
      if (this.#open.has(id)) throw taken;
      if (!given) return;
      this.#pending.set(id, { ...given, again: true });
      this.#current = given;
      try {
        const answer = await this.#obey(given, audit);
        if (!this.#open.has(id)) {
          await given.journal.append({ type: "answer", answer });
          this.#finish(id);
        }
        this.#pending.delete(id);
      } finally {
        this.#current = undefined;
      }
    });
  }

  /** Removes jobs that were done a minute ago. */
  clean(): Promise<void> {
    return this.#safely(async () => {
      for (const [id, at] of this.#done) {
        if (performance.now() - at < MINUTE) continue;
        await this.#queue.remove(id);
        this.#done.delete(id);
      }
    });
  }

  /** The letter's job becomes the batch. */
  create(name: string, list: List): Promise<Batch> {
    return this.#safely(async () => {
      const { id, journal } = this.#current as Current;
      for (const old of await this.#idsIn("prioritized", name)) await this.#discard(old);
      const batch = this.#work(id, journal);
      try {
        await batch.write({ type: "batch", name });
        await batch.add(list);
      } catch (cause) {
        this.#open.delete(id);
        throw cause;
      }
      return batch;
    });
  }

  async *reopen(name?: string): AsyncGenerator<Batch> {
    // The priority of a job can have changed although there was no response.
    const isReopened = (id: string) =>
      id.startsWith(prefixOf(this.#node, name)) && this.#open.get(id)?.batch.state.finished;
    const reopened = [...this.#open.keys()].filter(isReopened);
    for (const id of new Set([...reopened, ...(await this.#idsIn("prioritized", name))])) {
      if (!this.#open.has(id)) await this.#safely(() => this.#take(id, true));
      const error = this.#broken.get(id)?.error;
      if (error) throw error;
      const opened = this.#open.get(id);
      // The machine that has handled the letter before has finished the batch, too.
      if (opened?.batch.state.finished && opened.letters.has(this.#current?.id ?? "")) this.#open.delete(id);
      else if (opened) {
        await this.#setPriority(id, OPEN);
        yield opened.batch;
      }
    }
  }

  forget(name?: string): Promise<number> {
    return this.#safely(async () => {
      const damaged = [...this.#broken].filter(([, one]) => name === undefined || one.name === name);
      for (const [id] of damaged) {
        await this.#queue.remove(id);
        this.#broken.delete(id);
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

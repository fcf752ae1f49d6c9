import { type Code, cancelled, SeoError } from "../../errors.js";
import type { Audit } from "../audit.js";
import { Batch, type List, type Store } from "../batch.js";
import { controls, type Entry, FORMAT } from "../entries.js";
import { State } from "../state.js";
import { deposed } from "../trouble.js";
import { idsIn, type JobEntry, type Letter, obey, type Packed, prefixOf, type Reply, readJob } from "./letter.js";
import { appendAlone, type JobLog, lastEntry, openLog, readLines } from "./log.js";
import type { Queue } from "./server.js";

/** The machine that leads, as the store needs it. */
interface Lead {
  /** Gets an exception, which may end the work. Returns the error as the engine wants it. */
  fail(cause: unknown): SeoError;
  /** The store takes over nothing more: its node was closed, or the machine does not lead any more. */
  isOver(): boolean;
  /** Why a job that was there is missing. */
  gone(): Promise<unknown>;
  /** Rejects if the server cannot save more than a lock. */
  probe(): Promise<void>;
}

/** A letter without a reply, and its log. */
interface OpenLetter {
  is: "letter";
  id: string;
  letter: Letter;
  log: JobLog<JobEntry>;
  /** The letter may have been handled before. */
  again: boolean;
}

/** A batch that is worked on. */
interface OpenBatch {
  is: "batch";
  batch: Batch;
  /** The letters that have changed it. */
  letters: ReadonlySet<string>;
}

/** A job, as far as it is known. */
type Known =
  | OpenLetter
  | OpenBatch
  /** A batch that cannot be read. */
  | { is: "broken"; name: string; error: SeoError }
  /** A batch that is kept, although there is a new one of its name. */
  | { is: "replaced" }
  /** Nothing is left to do. The job is removed later, because its sender may not know what became of it. */
  | { is: "done"; since: number };

const done = (): Known => ({ is: "done", since: performance.now() });

/** A job without a priority is a letter or an open batch, another one a batch that is kept for msg.retry. */
const OPEN = 0;
const KEPT = 1;
const MINUTE = 60_000;
/** So many jobs are read at the same time. */
const GROUP = 20;
/** The entries that a message causes. */
const OF_MESSAGES: readonly string[] = ["list", ...controls];

/** The batches of one node, for the machine that leads. */
export class QueueStore implements Store {
  readonly #queue: Queue;
  readonly #node: string;
  readonly #lead: Lead;
  /** The jobs that were read, but for batches that are kept. */
  readonly #jobs = new Map<string, Known>();
  /** The letter that is handled. */
  #current: OpenLetter | undefined;

  constructor(queue: Queue, node: string, lead: Lead) {
    this.#queue = queue;
    this.#node = node;
    this.#lead = lead;
  }

  get batches(): Batch[] {
    return [...this.#jobs.values()].flatMap((job) => (job.is === "batch" ? job.batch : []));
  }

  get broken() {
    return [...this.#jobs.values()].flatMap((job) => (job.is === "broken" ? job : []));
  }

  async #safely<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } catch (cause) {
      throw this.#lead.fail(cause);
    }
  }

  /** The batches that are kept for msg.retry. */
  async #kept(name?: string): Promise<string[]> {
    const ids = await idsIn(this.#queue, this.#node, ["prioritized"], name);
    return ids.filter((id) => {
      const job = this.#jobs.get(id);
      return job?.is !== "replaced" && (job?.is !== "batch" || job.batch.state.finished);
    });
  }

  #openedAs(id: string): OpenBatch | undefined {
    const job = this.#jobs.get(id);
    return job?.is === "batch" ? job : undefined;
  }

  #setPriority(id: string, priority: number) {
    return this.#safely(() => this.#queue.getBackend().changePriority(id, priority));
  }

  #work(id: string, log: JobLog<JobEntry>, state = new State(), letters = new Set<string>()): OpenBatch {
    const save = (...entries: JobEntry[]) => this.#safely(() => log.add(...entries));
    const append = async (entry: Entry) => {
      const letter = OF_MESSAGES.includes(entry.type) ? this.#current?.id : undefined;
      if (letter === undefined) return save(entry);
      if (letters.has(letter)) return false;
      await save({ ...entry, letter });
      return letters.add(letter);
    };
    const keep = async () => {
      await this.#setPriority(id, KEPT);
      this.#jobs.delete(id);
    };
    const remove = async () => {
      await save({ type: "removed" });
      this.#jobs.set(id, done());
    };
    const batch = new Batch({ append, check: save, close: log.close, keep, remove }, state);
    return { is: "batch", batch, letters };
  }

  #check(): void {
    if (this.#lead.isOver()) throw cancelled;
  }

  /** Takes a job over. Undefined if it is gone, or kept. */
  async #takeOver(id: string, reopens = false): Promise<Known | undefined> {
    const data = (await this.#queue.getJob(id))?.data as Packed | undefined;
    if (!data) return undefined;
    const { format, name, text } = data;
    function broken(code: Code, why: string): Known {
      return { is: "broken", name: JSON.parse(name), error: new SeoError(code, `The batch ${name} ${why}`) };
    }
    if (format !== FORMAT)
      return broken("SEO_CONFIG", "is of another version of this package: update it on all machines.");
    this.#check();
    const opened = await openLog<JobEntry>(this.#queue, id, this.#lead.gone);
    if (!opened) return undefined;
    const { log, lines } = opened;
    let job: ReturnType<typeof readJob>;
    try {
      job = readJob(lines);
    } catch (cause) {
      const why = (cause as Error).message;
      return broken("SEO_INPUT", `cannot continue: its log in the queue is damaged (${why}). Use msg.reset.`);
    }
    const { is, state, letters } = job;
    if (is === "done") return done();
    if (is === "letter") return { is, id, letter: JSON.parse(text), log, again: lines.length > 1 };
    if (is === "batch" || reopens) return this.#work(id, log, state, letters);
    await this.#setPriority(id, KEPT);
    return undefined;
  }

  /** Takes a job over that was not read, or is kept. */
  async #open(id: string, reopens?: boolean): Promise<Known | undefined> {
    const job = await this.#takeOver(id, reopens);
    if (job) this.#jobs.set(id, job);
    return job;
  }

  /** Takes over what looks like a kept batch, if it was opened again: the command that kept it took effect after that. */
  async #takeReopened(id: string): Promise<Known | undefined> {
    const last = await lastEntry<JobEntry>(this.#queue, id);
    if (last?.type === "finished" || last?.type === "removed") return undefined;
    const job = await this.#takeOver(id);
    if (job?.is === "batch") await this.#setPriority(id, OPEN);
    return job;
  }

  /** A batch that is kept is not reopened any more. */
  async #discard(id: string): Promise<void> {
    this.#check();
    await appendAlone(this.#queue, id, { type: "removed" });
    await this.#setPriority(id, OPEN);
    this.#jobs.set(id, done());
  }

  /** Whether a list was added to another batch, by a machine that could not say so. */
  async #isJoined({ id, again }: OpenLetter, name: string): Promise<boolean> {
    if (!again) return false;
    for (const other of await idsIn(this.#queue, this.#node, ["wait", "prioritized"], name)) {
      // A line of an open batch may still become void.
      const letters = this.#openedAs(other)?.letters ?? readJob(await readLines<JobEntry>(this.#queue, other)).letters;
      if (other !== id && letters.has(id)) return true;
    }
    return false;
  }

  async #obey(given: OpenLetter, audit: Audit): Promise<Reply> {
    const { letter, again } = given;
    const isDone = letter.do === "list" && (await this.#isJoined(given, letter.name));
    const reply = isDone ? { count: 1 } : await obey(letter, audit);
    // A batch that a machine has changed before it died may be over.
    return again && "count" in reply ? { count: Math.max(1, reply.count) } : reply;
  }

  /** Takes over what is open, the oldest first. Rejects as `fail` returns. */
  load(): Promise<this> {
    return this.#safely(async () => {
      const open = new Set(await idsIn(this.#queue, this.#node, ["wait"]));
      const ids = [...new Set([...open, ...(await this.#kept())])];
      const take = (id: string) => (open.has(id) ? this.#takeOver(id) : this.#takeReopened(id));
      for (let first = 0; first < ids.length; first += GROUP) {
        const jobs = ids.slice(first, first + GROUP).map((id) => [id, take(id)] as const);
        // Not before all have ended, because what goes on would fence the next load.
        await Promise.allSettled(jobs.map(([, taking]) => taking));
        for (const [id, taking] of jobs) {
          const job = await taking;
          if (job) this.#jobs.set(id, job);
        }
      }
      // The machine that led before has made a batch, and died.
      const named = this.batches.flatMap(({ state }) => (state.dropped ? [] : prefixOf(this.#node, state.name)));
      for (const id of await this.#kept())
        if (named.some((prefix) => id.startsWith(prefix))) this.#jobs.set(id, { is: "replaced" });
      return this;
    });
  }

  /** Handles a job that is a letter, unless that was done. Rejects with a Trouble, or as the server, if it is to be handled again. */
  async handle(id: string, audit: Audit): Promise<void> {
    const known = this.#jobs.get(id);
    const job = known ?? (await this.#open(id));
    // After this machine had read all batches, one that led before has made it, or opened it again.
    if (!known && job?.is === "batch") throw deposed;
    if (job?.is !== "letter") return;
    this.#current = job;
    try {
      const reply = await this.#obey(job, audit);
      if (this.#jobs.get(id) !== job) return;
      await job.log.add({ type: "answer", answer: reply });
      this.#jobs.set(id, done());
    } finally {
      job.again = true;
      this.#current = undefined;
    }
  }

  /** Removes jobs that were done a minute ago, and batches that were replaced. */
  async clean(): Promise<void> {
    for (const [id, job] of this.#jobs) {
      if (job.is === "replaced") await this.#discard(id);
      else if (job.is === "done" && performance.now() - job.since > MINUTE) {
        await this.#queue.remove(id);
        this.#jobs.delete(id);
      }
    }
  }

  /** The letter's job becomes the batch. */
  create(name: string, list: List): Promise<Batch> {
    return this.#safely(async () => {
      const { id, log } = this.#current as OpenLetter;
      const kept = await this.#kept(name);
      const job = this.#work(id, log);
      await job.batch.begin(name, list);
      this.#jobs.set(id, job);
      // Not discarded now, because the batch could not be begun if that failed.
      for (const old of kept) this.#jobs.set(old, { is: "replaced" });
      return job.batch;
    });
  }

  async *reopen(name?: string): AsyncGenerator<Batch> {
    // The priority of a job can have changed although there was no response.
    const isReopened = (id: string) =>
      id.startsWith(prefixOf(this.#node, name)) && this.#openedAs(id)?.batch.state.finished;
    const reopened = [...this.#jobs.keys()].filter(isReopened);
    for (const id of new Set([...reopened, ...(await this.#safely(() => this.#kept(name)))])) {
      const job = this.#openedAs(id) ?? (await this.#safely(() => this.#open(id, true)));
      if (job?.is === "broken") throw job.error;
      if (job?.is !== "batch") continue;
      await this.#setPriority(id, OPEN);
      yield job.batch;
    }
  }

  forget(name?: string): Promise<number> {
    return this.#safely(async () => {
      const isMeant = (job: Known) => job.is === "broken" && (name === undefined || job.name === name);
      const damaged = [...this.#jobs].filter(([, job]) => isMeant(job));
      for (const [id] of damaged) {
        await this.#queue.remove(id);
        this.#jobs.delete(id);
      }
      const kept = await this.#kept(name);
      for (const id of kept) await this.#discard(id);
      return damaged.length + kept.length;
    });
  }

  probe(): Promise<void> {
    return this.#lead.probe();
  }

  async close(): Promise<void> {
    await Promise.all(this.batches.map((batch) => batch.journal.close()));
  }
}

import { type Code, cancelled, SeoError } from "../../errors.js";
import type { Audit } from "../audit.js";
import { toJSON } from "../requests.js";
import type { Store } from "../store.js";
import { Trouble, taken } from "../trouble.js";
import { type JobBatch, openBatch } from "./batch.js";
import { appendLine, entriesIn, type Journal, newName, openJournal, readLines } from "./journal.js";
import {
  type Answer,
  answerIn,
  FORMAT,
  type JobEntry,
  type Letter,
  type ListLetter,
  type pack,
  prefixOf,
  rowsIn,
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
  /** Another machine can lead. */
  yield(): void;
}

/** The batches of one node, for the machine that leads. */
export interface QueueStore extends Store {
  /** Handles a job that is a letter, unless that was done. Rejects with a Trouble if it is to be handled again. */
  handle(id: string, audit: Audit): Promise<Answer | undefined>;
  /** Removes jobs that were done a minute ago. */
  clean(): Promise<void>;
}

/** A job without a priority is a letter or an open batch, another one a batch that is kept for msg.retry. */
const OPEN = 0;
const KEPT = 1;
const MINUTE = 60_000;
const BETWEEN_PROBES = 2000;

/** A letter that is handled, and its journal. `again`: it may have been, but its answer is not known. */
interface Current {
  id: string;
  letter: Letter;
  journal: Journal<JobEntry>;
  again: boolean;
}

/** Opens the jobs of one node. Rejects as `toError` says. */
export async function openStore(
  queue: Queue,
  node: string,
  { toError, gone, probe, yield: give }: Lead,
): Promise<QueueStore> {
  const backend = queue.getBackend();
  const open = new Map<string, JobBatch>();
  const broken = new Map<string, { name: string; error: SeoError }>();
  /** When jobs were done. They are removed later, because their senders may not know what became of them. */
  const done = new Map<string, number>();
  /** Letters that were read, but not answered yet. */
  const pending = new Map<string, Current>();
  let current: Current | undefined;

  const safely = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    try {
      return await work();
    } catch (cause) {
      throw toError(cause);
    }
  };
  const idsIn = async (state: "wait" | "prioritized", name?: string) =>
    (await queue.getRanges([state], 0, -1, true)).filter((id) => id.startsWith(prefixOf(node, name)));
  const finish = (id: string) => void done.set(id, performance.now());

  function work(id: string, letter: ListLetter, journal: Journal<JobEntry>, entries: readonly JobEntry[]): JobBatch {
    const append = (...some: JobEntry[]) => safely(() => journal.append(...some));
    async function left(complete: boolean): Promise<void> {
      if (complete) finish(id);
      else await safely(() => backend.changePriority(id, KEPT));
      open.delete(id);
    }
    const batch = openBatch(letter, { append, close: journal.close }, entries, () => current?.id ?? "", left);
    open.set(id, batch);
    return batch;
  }

  /** Takes a job over, and works on it if it is a batch. Returns it if it is a letter that was not handled. */
  async function take(id: string, reopens = false): Promise<Current | undefined> {
    const data = (await queue.getJob(id))?.data as ReturnType<typeof pack> | undefined;
    if (!data) return undefined;
    const fail = (code: Code, why: string): undefined => {
      const error = new SeoError(code, `The batch ${data.name} ${why}`);
      broken.set(id, { name: JSON.parse(data.name), error });
    };
    if (data.format !== FORMAT)
      return fail("SEO_CONFIG", "is of another version of this package: update it on all machines.");
    const opened = await openJournal<JobEntry>(queue, id, gone);
    if (!opened) return undefined;
    const { journal, lines } = opened;
    let isKept = false;
    try {
      const letter: Letter = JSON.parse(data.text);
      const entries = entriesIn(lines);
      const isBack = "back" in (lines[0] as object);
      if (!isBack && !answerIn(entries)) return { id, letter, journal, again: lines.length > 1 };
      const end = entries.findLast((entry) => "finished" in entry || "retry" in entry);
      const finished = end && "finished" in end ? end.finished : undefined;
      if (letter.do !== "list" || finished === true || !entries.some((entry) => "begin" in entry)) finish(id);
      else if (finished === undefined || reopens) work(id, letter, journal, entries);
      else isKept = true;
    } catch (cause) {
      const why = (cause as Error).message;
      return fail("SEO_INPUT", `cannot continue: its log in the queue is damaged (${why}). Send msg.reset.`);
    }
    if (isKept) await backend.changePriority(id, KEPT);
    return undefined;
  }

  /** A batch that is kept is not reopened any more. */
  async function discard(id: string): Promise<void> {
    const by = newName();
    await appendLine(queue, id, { took: by });
    await appendLine(queue, id, { by, n: 1, entries: [{ finished: true }] });
    await backend.changePriority(id, OPEN);
    finish(id);
  }

  /** Whether a list was added to another batch, by a machine that could not say so. */
  async function isJoined({ id, again }: Current, name: string): Promise<boolean> {
    if (!again) return false;
    for (const other of [...(await idsIn("wait", name)), ...(await idsIn("prioritized", name))]) {
      // A line of an open batch may still become void.
      const batch = open.get(other);
      if (batch?.letters.has(id)) return true;
      if (batch) continue;
      const entries = entriesIn(await readLines<JobEntry>(queue, other));
      if (entries.some((entry) => "letter" in entry && entry.letter === id)) return true;
    }
    return false;
  }

  async function obey(given: Current, audit: Audit): Promise<Answer> {
    const { letter, again } = given;
    try {
      if (letter.do === "work") give();
      if (letter.do === "work" || (letter.do === "list" && (await isJoined(given, letter.name)))) return { count: 1 };
      const count =
        letter.do === "list"
          ? await audit.add({ batch: letter.name, settings: letter.settings, rows: rowsIn(letter.rows) })
          : await audit[letter.do](letter.name);
      // What a machine that died has done may be over.
      return { count: again ? Math.max(1, count) : count };
    } catch (cause) {
      if (cause instanceof Trouble || cause === taken || cause === cancelled) throw cause;
      return { error: toJSON(cause instanceof SeoError ? cause : new SeoError("SEO_INPUT", String(cause))) };
    }
  }

  await safely(async () => {
    for (const id of await idsIn("wait")) {
      const letter = await take(id);
      if (letter) pending.set(id, letter);
    }
  });

  return {
    batches: [...open.values()],
    get broken() {
      return [...broken.values()];
    },
    between: BETWEEN_PROBES,
    probe: () => safely(probe),

    create: (name) =>
      safely(async () => {
        const { id, letter, journal } = current as Current;
        for (const old of await idsIn("prioritized", name)) await discard(old);
        const batch = work(id, letter as ListLetter, journal, []);
        try {
          await journal.append({ begin: true, answer: { count: batch.total() } });
        } catch (cause) {
          open.delete(id);
          throw cause;
        }
        return batch;
      }),

    async *reopen(name) {
      for (const id of await safely(() => idsIn("prioritized", name))) {
        await safely(() => take(id, true));
        const error = broken.get(id)?.error;
        if (error) throw error;
        const batch = open.get(id);
        if (batch?.letters.has(current?.id ?? "")) open.delete(id);
        else if (batch) {
          await safely(() => backend.changePriority(id, OPEN));
          try {
            await batch.retry();
          } finally {
            // If that fails, the engine closes the batch again.
            yield batch;
          }
        }
      }
    },

    forget: (name) =>
      safely(async () => {
        const damaged = [...broken].filter(([, one]) => name === undefined || one.name === name).map(([id]) => id);
        for (const id of damaged) {
          await queue.remove(id);
          broken.delete(id);
        }
        const kept = await idsIn("prioritized", name);
        for (const id of kept) await discard(id);
        return damaged.length + kept.length;
      }),

    handle: (id, audit) =>
      safely(async () => {
        if (open.has(id) || done.has(id) || broken.has(id)) return undefined;
        const given = pending.get(id) ?? (await take(id));
        if (!given) return undefined;
        pending.set(id, { ...given, again: true });
        current = given;
        try {
          const answer = await obey(given, audit);
          if (!open.has(id)) {
            await given.journal.append({ answer });
            finish(id);
          }
          pending.delete(id);
          return answer;
        } finally {
          current = undefined;
        }
      }),

    clean: () =>
      safely(async () => {
        for (const [id, at] of done) {
          if (performance.now() - at < MINUTE) continue;
          await queue.remove(id);
          done.delete(id);
        }
      }),

    async close() {
      await Promise.all(Array.from(open.values(), (batch) => batch.close()));
    },
  };
}

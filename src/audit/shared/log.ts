import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createGroups } from "../../turns.js";
import { deposed } from "../trouble.js";
import { lostData } from "./faults.js";
import type { Queue } from "./server.js";

/**
 * A line of a job's log: a machine takes the job over; it does something (`n` counts its lines, those in `void` do not count);
 * or a sender takes its letter back.
 */
export type Line<Entry> =
  | { took: string }
  | { by: string; n: number; entries: Entry[]; void?: number[] | undefined }
  | { back: true }
  | { damaged: string };

const MISSING = -1;
const UNIQUE_VIOLATION = "23505";
/** Milliseconds. */
const COLLISION = 4;
/** A response that takes longer does not prove that no other machine has come after. */
const PROMPT = 3000;
const CHUNK = 50_000;
/** Lines at the end of a log, one of which has its last entry: whoever takes a job over appends one without. */
const TAIL = 10;

export const newName = (): string => randomBytes(8).toString("hex");
export const isMissing = (cause: unknown): boolean => Object(cause).code === MISSING;

/** Appends a line. Returns how many the log has. Rejects as BullMQ does. */
export async function appendLine(queue: Queue, id: string, line: Line<unknown>): Promise<number> {
  for (;;) {
    try {
      return await queue.getBackend().addLog(id, JSON.stringify(line));
    } catch (cause) {
      // In PostgreSQL, another machine's line came in between.
      if (Object(cause).code !== UNIQUE_VIOLATION) throw cause;
      await sleep(Math.random() * COLLISION);
    }
  }
}

/** Takes a job over for one entry. */
export async function appendAlone<Entry>(queue: Queue, id: string, entry: Entry): Promise<void> {
  const by = newName();
  await appendLine(queue, id, { took: by });
  await appendLine(queue, id, { by, n: 1, entries: [entry] });
}

function parse<Entry>(text: string): Line<Entry> {
  try {
    return JSON.parse(text);
  } catch {
    return { damaged: text };
  }
}

/** Reads the lines from `start` on. */
export async function readLines<Entry>(queue: Queue, id: string, start = 0): Promise<Line<Entry>[]> {
  const { logs } = await queue.getJobLogs(id, start, start + CHUNK - 1, true);
  const lines = logs.map(parse<Entry>);
  return logs.length < CHUNK ? lines : [...lines, ...(await readLines<Entry>(queue, id, start + CHUNK))];
}

/** The last entry of a log, also if it is void; undefined if only a reader of the whole log can say. */
export async function lastEntry<Entry>(queue: Queue, id: string): Promise<Entry | undefined> {
  const { logs } = await queue.getJobLogs(id, -TAIL, -1, true);
  return logs
    .map(parse<Entry>)
    .flatMap((line) => ("entries" in line ? line.entries : []))
    .at(-1);
}

/** The entries that count: by whoever had the job then, and not void. Throws if a line is damaged. */
export function entriesIn<Entry>(lines: readonly Line<Entry>[]): Entry[] {
  if (lines.some((line) => "damaged" in line)) throw new Error("a line is no JSON");
  let holder: string | undefined;
  const held = lines.filter((line) => {
    if ("took" in line) holder = line.took;
    return "by" in line && line.by === holder;
  }) as Extract<Line<Entry>, { by: string }>[];
  const voids = new Set(held.flatMap((line) => (line.void ?? []).map((n) => `${line.by} ${n}`)));
  return held.flatMap((line) => (voids.has(`${line.by} ${line.n}`) ? [] : line.entries));
}

/** Takes a job over, and reads its log. Undefined if there is no such job. `gone` says why it is missing. */
export async function openLog<Entry>(queue: Queue, id: string, gone: () => Promise<unknown>) {
  const own = newName();
  const isForeign = (line: Line<Entry>) => "took" in line && line.took !== own;
  const took = await appendLine(queue, id, { took: own }).catch((cause) => {
    if (!isMissing(cause)) throw cause;
  });
  if (took === undefined) return undefined;
  const lines = await readLines<Entry>(queue, id);
  if (lines.length < took) throw lostData;
  if (lines.slice(took).some(isForeign)) throw deposed;
  let position = lines.length;
  let count = 0;
  /** Lines that may be in the log although their entries were rejected. */
  let unsure: number[] = [];

  async function write(entries: Entry[]): Promise<void> {
    const n = ++count;
    const began = performance.now();
    try {
      const length = await appendLine(queue, id, { by: own, n, entries, void: unsure.length > 0 ? unsure : undefined });
      if (length <= position) throw lostData;
      const isNext = length === position + 1 && performance.now() - began < PROMPT;
      const others = isNext ? [] : await readLines<Entry>(queue, id, position);
      if (others.some(isForeign)) throw deposed;
      position += isNext ? 1 : others.length;
      unsure = [];
    } catch (cause) {
      unsure = [...unsure, n];
      throw isMissing(cause) ? await gone() : cause;
    }
  }

  /** `add` rejects with `deposed` if another machine has taken the job over. */
  return { log: createGroups(write), lines };
}

/** The log of a job, to which only the machine that took it over last can add entries. */
export type JobLog<Entry> = NonNullable<Awaited<ReturnType<typeof openLog<Entry>>>>["log"];

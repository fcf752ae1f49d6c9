import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SeoError } from "../../errors.js";
import { taken } from "../trouble.js";
import type { GroupEntry } from "./group.js";
import type { Log } from "./log.js";

/** What applying an entry returned. */
export type Applied = number | boolean | undefined;

interface WriterOptions {
  /** The batch's name. */
  name: string;
  log(take: (text: string) => void): Log;
  /** Throws if the entry has no meaning. */
  apply(entry: GroupEntry): Applied;
  /** An entry of this process has been applied that its writer had given up, because the server did not respond. */
  late(entry: GroupEntry, result: Applied): void;
  /** All entries of a line were applied. */
  applied(): void;
  /** An error as the engine wants it. */
  toError(cause: unknown): SeoError;
}

interface Waiting {
  entry: GroupEntry;
  resolve(result: Applied): void;
  reject(cause: unknown): void;
}

/** A line of a shared log: what a process wrote at once. */
interface Line {
  from: string;
  number: number;
  entries: GroupEntry[];
}

const AGAIN = 1000;

/** Writes entries to a shared log, a line at a time, and applies them when they come back, between those of others. */
export function createWriter({ name, log, apply, late, applied, toError }: WriterOptions) {
  const own = randomBytes(6).toString("hex");
  const inFlight = new Map<number, Waiting[]>();
  const lines = log(take);
  let waiting: Waiting[] = [];
  let writing: Promise<void> | undefined;
  let last = 0;
  let broken: SeoError | undefined;
  /** Why nothing is written any more. */
  let over: SeoError | undefined;

  /** Reads a part of the batch. If that throws, the batch is damaged. */
  function check(what: "list" | "log", read: () => void): void {
    try {
      read();
    } catch (cause) {
      const reason = `The batch ${JSON.stringify(name)} cannot continue: its ${what} in the queue is damaged`;
      broken = new SeoError("SEO_INPUT", `${reason} (${(cause as Error).message}). Send msg.reset.`);
    }
  }

  function take(text: string): void {
    if (broken) return;
    check("log", () => {
      const { from, number, entries } = JSON.parse(text) as Line;
      const written = from === own ? inFlight.get(number) : undefined;
      if (written) inFlight.delete(number);
      for (const [index, entry] of entries.entries()) {
        const result = apply(entry);
        if (written) written[index]?.resolve(result);
        else if (from === own) late(entry, result);
      }
    });
    applied();
  }

  async function writeAll(): Promise<void> {
    await Promise.resolve();
    while (waiting.length > 0) {
      const some = waiting;
      waiting = [];
      const number = ++last;
      inFlight.set(number, some);
      const line: Line = { from: own, number, entries: some.map(({ entry }) => entry) };
      try {
        await lines.append(JSON.stringify(line));
        if (broken) throw broken;
      } catch (cause) {
        inFlight.delete(number);
        for (const { reject } of some) reject(toError(cause));
      }
    }
    writing = undefined;
  }

  /** Resolves when the entry was applied. Rejects if the server does not respond; it can still be applied later. */
  function append(entry: GroupEntry): Promise<Applied> {
    return new Promise((resolve, reject) => {
      const reason = broken ?? over;
      if (reason) return reject(reason);
      waiting.push({ entry, resolve, reject });
      writing ??= writeAll();
    });
  }

  return {
    append,
    check,
    broken: () => broken,

    /** Applies what others have written. */
    async read(): Promise<void> {
      if (!broken) await lines.read();
    },

    /** Appends an entry that does no harm if it is applied twice, again until the server has it. */
    async insist(entry: GroupEntry): Promise<void> {
      while (!over && !broken) {
        try {
          await append(entry);
          return;
        } catch (cause) {
          // The log was removed.
          if (cause === taken) return;
          await sleep(AGAIN, undefined, { ref: false });
        }
      }
    },

    /** Later entries are rejected with `reason`. */
    close(reason: SeoError): Promise<void> | undefined {
      over = reason;
      return writing;
    },
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import type { SeoError } from "../../errors.js";
import { createSequence } from "../../turns.js";
import { Trouble } from "../trouble.js";
import { appendLine } from "./journal.js";
import { type Answer, countIn, newId, type Packed, pack, type Request, readAnswer } from "./letter.js";
import type { Queue } from "./server.js";

interface PostOptions {
  /** The queue; undefined as long as it is not connected. Throws why it cannot be. */
  letters(): Queue | undefined;
  toError(cause: unknown): SeoError;
  /** Milliseconds for which a letter waits to be added and answered. */
  patience: number;
  added(): void;
}

const TRIES = 60;
/** An answer that nobody has read so many milliseconds later may have been removed. */
const LATE = 15_000;
const SILENCE = "No machine that leads has responded.";

const ineffective = (why: string) => new Trouble("server", `${why} The message has no effect.`);
const unknown = (why: string) => new Trouble("server", `${why} The message can still take effect.`);

/** Sends letters to the machine that leads, in order, and waits for its answers. */
export function createPost({ letters, toError, patience, added }: PostOptions) {
  const waiting = new Map<string, (answer: Answer) => void>();
  const inOrder = createSequence();

  const put = (queue: Queue, id: string, data: Packed) => queue.add("letter", data, { jobId: id });

  /** A command whose response was lost can still be carried out. */
  async function add(id: string, data: Packed, until: number): Promise<void> {
    let failure = ineffective("The queue's server cannot be reached.");
    for (;;) {
      const queue = letters();
      try {
        if (queue) return void (await put(queue, id, data));
      } catch (cause) {
        const error = toError(cause);
        if (!(error instanceof Trouble)) throw error;
        failure = unknown(error.message);
      }
      if (performance.now() > until) throw failure;
      await sleep(patience / TRIES, undefined, { ref: false });
    }
  }

  /** Whoever is first in the letter's log has it: the machine that leads, or this one, which then takes it back. */
  async function takeBack(id: string, data: Packed, until: number): Promise<Answer> {
    // The answer came in time.
    if (!waiting.has(id)) return { count: 0 };
    try {
      const queue = letters() as Queue;
      // Also if the server gets the letter only now.
      await put(queue, id, data);
      const isFirst = (await appendLine(queue, id, { back: true })) === 1;
      if (isFirst && performance.now() - until < LATE) throw ineffective(SILENCE);
      const answer = await readAnswer(queue, id);
      if (answer) return answer;
    } catch (cause) {
      if (cause instanceof Trouble) throw cause;
    }
    throw unknown(SILENCE);
  }

  return {
    isWaiting: () => waiting.size > 0,

    /** Reads the answers to the letters that wait for one. */
    async read(queue: Queue): Promise<void> {
      for (const [id, received] of waiting) {
        const answer = await readAnswer(queue, id);
        if (answer) received(answer);
      }
    },

    /** Resolves with the number in the answer. Rejects with its error, or if there is none in time. */
    async send(node: string, request: Request): Promise<number> {
      const id = newId(node, request);
      const until = performance.now() + patience;
      const received = new Promise<Answer>((resolve) => waiting.set(id, resolve));
      try {
        const data = await inOrder(async () => {
          const packed = await pack(request);
          await add(id, packed, until);
          return packed;
        });
        added();
        const late = sleep(Math.max(0, until - performance.now()), undefined, { ref: false });
        return countIn(await Promise.race([received, late.then(() => takeBack(id, data, until))]));
      } finally {
        waiting.delete(id);
      }
    },
  };
}

export type Post = ReturnType<typeof createPost>;

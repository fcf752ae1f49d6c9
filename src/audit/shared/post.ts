import { setTimeout as sleep } from "node:timers/promises";
import type { SeoError } from "../../errors.js";
import { createSequence } from "../../turns.js";
import { Trouble } from "../trouble.js";
import { appendLine } from "./journal.js";
import { type Answer, type Command, countIn, newId, type Packed, pack, readAnswer } from "./letter.js";
import type { Queue } from "./server.js";

interface PostOptions {
  /** The queue; undefined as long as it is not connected. Throws why it cannot be. */
  letters(): Queue | undefined;
  /** An exception, as its sender gets it. */
  explain(cause: unknown): SeoError;
  /** Milliseconds for which a letter waits to be added and answered. */
  patience: number;
  added(): void;
}

/** Until an answer is there, each wait for it is so much longer than all before together. */
const GROWTH = 0.1;
const SILENCE = "No machine that leads has responded.";

const ineffective = (why: string) => new Trouble("server", `${why} The message has no effect.`);
const unknown = (why: string) => new Trouble("server", `${why} The message can still take effect.`);

/** Sends letters to the machine that leads, in order, and waits for its answers. */
export function createPost({ letters, explain, patience, added }: PostOptions) {
  const inOrder = createSequence();

  /** Waits before something is tried again. */
  function rest(until: number): Promise<unknown> {
    const left = until - performance.now();
    return sleep(Math.max(0, Math.min(left, (patience - left) * GROWTH)), undefined, { ref: false });
  }

  /** A command whose response was lost can still be carried out. */
  async function add(id: string, data: Packed, until: number): Promise<void> {
    let failure = ineffective("The queue's server cannot be reached.");
    for (;;) {
      const queue = letters();
      try {
        if (queue) return void (await queue.add("letter", data, { jobId: id }));
      } catch (cause) {
        const error = explain(cause);
        if (!(error instanceof Trouble)) throw error;
        failure = unknown(error.message);
      }
      if (performance.now() > until) throw failure;
      await rest(until);
    }
  }

  /** Undefined if there is none in time. */
  async function receive(id: string, until: number): Promise<Answer | undefined> {
    while (performance.now() < until) {
      try {
        const queue = letters();
        const answer = queue && (await readAnswer(queue, id));
        if (answer) return answer;
      } catch {
        // The member reports why the queue cannot be used.
      }
      await rest(until);
    }
    return undefined;
  }

  /** Whoever is first in the letter's log has it: the machine that leads, or this one, which then takes it back. */
  async function takeBack(id: string): Promise<Answer> {
    try {
      const queue = letters() as Queue;
      // A letter that was answered a minute ago is missing.
      const isFirst = (await appendLine(queue, id, { back: true })) === 1;
      if (isFirst) throw ineffective(SILENCE);
      const answer = await readAnswer(queue, id);
      if (answer) return answer;
    } catch (cause) {
      if (cause instanceof Trouble) throw cause;
    }
    throw unknown(SILENCE);
  }

  /** Resolves with the number in the answer. Rejects with its error, or if there is none in time. */
  return async function send(node: string, command: Command): Promise<number> {
    const id = newId(node, command);
    const until = performance.now() + patience;
    await inOrder(async () => add(id, await pack(command), until));
    added();
    return countIn((await receive(id, until)) ?? (await takeBack(id)));
  };
}

export type Send = ReturnType<typeof createPost>;

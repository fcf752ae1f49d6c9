import { setTimeout as sleep } from "node:timers/promises";
import { Trouble } from "../trouble.js";
import { type Command, countIn, newId, type Packed, pack, type Reply, readReply } from "./letter.js";
import { appendLine } from "./log.js";
import type { Member } from "./member.js";
import type { Queue } from "./server.js";

/** Until a reply is there, each wait for it is so much longer than all before together. */
const GROWTH = 0.1;
const SILENCE = "No machine that leads has responded.";

const ineffective = (why: string) => new Trouble("server", `${why} The message has no effect: send it again.`);
const unknown = (why: string) =>
  new Trouble("server", `${why} The message can still take effect: look at the progress before you send it again.`);

/** Waits before something is tried again. */
function rest({ options: { patience } }: Member, until: number): Promise<unknown> {
  const left = until - performance.now();
  return sleep(Math.max(0, Math.min(left, (patience - left) * GROWTH)), undefined, { ref: false });
}

/** A command whose response was lost can still be carried out. */
async function add(member: Member, id: string, data: Packed, until: number): Promise<void> {
  let failure = ineffective("The queue's server cannot be reached.");
  for (;;) {
    const queue = member.jobs();
    try {
      if (queue) return void (await queue.add("letter", data, { jobId: id }));
    } catch (cause) {
      const error = member.explain(cause);
      if (!(error instanceof Trouble)) throw error;
      failure = unknown(error.message);
    }
    if (performance.now() > until) throw failure;
    await rest(member, until);
  }
}

/** Undefined if there is none in time. */
async function awaitReply(member: Member, id: string, until: number): Promise<Reply | undefined> {
  while (performance.now() < until) {
    try {
      const queue = member.jobs();
      const reply = queue && (await readReply(queue, id));
      if (reply) return reply;
    } catch {
      // The member reports why the queue cannot be used.
    }
    await rest(member, until);
  }
  return undefined;
}

/** Whoever is first in the letter's log has it: the machine that leads, or this one, which then withdraws it. */
async function withdraw(member: Member, id: string): Promise<Reply> {
  try {
    const queue = member.jobs() as Queue;
    // A letter whose reply is a minute old is missing.
    const isFirst = (await appendLine(queue, id, { back: true })) === 1;
    if (isFirst) throw ineffective(SILENCE);
    const reply = await readReply(queue, id);
    if (reply) return reply;
  } catch (cause) {
    if (cause instanceof Trouble) throw cause;
  }
  throw unknown(SILENCE);
}

/**
 * Posts a letter to the machine that leads, after those before. Resolves with the number in its reply. Rejects with the error in
 * it, or if there is none in time.
 */
export async function post(member: Member, node: string, command: Command): Promise<number> {
  const id = newId(node, command);
  const until = performance.now() + member.options.patience;
  await member.sendInOrder(async () => add(member, id, await pack(command), until));
  member.wake();
  return countIn((await awaitReply(member, id, until)) ?? (await withdraw(member, id)));
}

import type { Journals } from "../failures.js";
import type { State } from "../state.js";
import { readLines } from "./journal.js";
import { idsIn, type JobEntry, readJob } from "./letter.js";
import type { Queue } from "./server.js";

async function readLog(queue: Queue, id: string): Promise<State | undefined> {
  // A fault of the server is not the state of the journal.
  const lines = await readLines<JobEntry>(queue, id);
  try {
    const { is, state } = readJob(lines);
    return is === "batch" || is === "kept" ? state : undefined;
  } catch {
    return undefined;
  }
}

/** The journals of a node in a queue: any machine can read the logs of its jobs. `letters` is undefined as long as it is not connected. */
export const journalsOf = (letters: () => Queue | undefined, node: string): Journals =>
  async function* (name) {
    const queue = letters();
    if (!queue) throw new Error("The queue is not connected.");
    // Open ones first, which are newer.
    for (const id of await idsIn(queue, node, name === undefined ? ["prioritized"] : ["wait", "prioritized"], name)) {
      const { count } = await queue.getJobLogs(id, 0, 0);
      yield { key: `${id} ${count}`, read: () => readLog(queue, id) };
    }
  };

import type { Journals } from "../failures.js";
import type { State } from "../state.js";
import { readLines } from "./journal.js";
import { idsIn, type JobEntry, readJob } from "./letter.js";
import type { Queue } from "./server.js";

/** The journals of a node in a queue: any machine can read the logs of its jobs. `letters` is undefined as long as it is not connected. */
export function journalsOf(letters: () => Queue | undefined, node: string): Journals {
  function connected(): Queue {
    const queue = letters();
    if (!queue) throw new Error("The queue is not connected.");
    return queue;
  }

  async function read(id: string): Promise<State | undefined> {
    // A fault of the server is not the state of the journal.
    const lines = await readLines<JobEntry>(connected(), id);
    try {
      const { isBatch, isDone, reading } = readJob(lines);
      return isBatch && !isDone ? reading.state : undefined;
    } catch {
      return undefined;
    }
  }

  return {
    async kept() {
      const ids = await idsIn(connected(), node, "prioritized");
      return Promise.all(
        ids.map(async (id) => [`${id} ${(await connected().getJobLogs(id, 0, 0)).count}`, () => read(id)]),
      );
    },

    async find(name) {
      // An open batch comes before one that is kept.
      for (const id of [
        ...(await idsIn(connected(), node, "wait", name)),
        ...(await idsIn(connected(), node, "prioritized", name)),
      ]) {
        const state = await read(id);
        if (state) return state;
      }
    },
  };
}

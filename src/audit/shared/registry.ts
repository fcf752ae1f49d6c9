import { hash, randomBytes } from "node:crypto";
import type { Settings } from "../list.js";
import { lostData } from "./faults.js";
import { isMissing, logOf, segmentOf } from "./log.js";
import type { Queue } from "./server.js";

/** The job that is a batch. No worker processes it. */
export interface Job {
  /** `FORMAT`. */
  format: number;
  name: string;
  settings: Settings;
  rows: string;
}

/** Of the job and its log. A machine with another version of the package must not misread them. */
export const FORMAT = 1;
/** The ID of a job that is always there. */
const MARK = "mark";
/** A job without a priority is worked on, another one has finished and is kept for msg.retry. */
const OPEN = 0;
const KEPT = 1;

const keyOf = (name: string) => hash("sha256", name, "hex").slice(0, 16);

/** The batches of a node on the server. A batch's ID is also its log's, and no other batch ever has it. */
export function createRegistry(jobs: Queue, logs: Queue) {
  const backend = jobs.getBackend();
  /** When the mark was added, which tells the server's data from that of an emptied server. */
  const dataOf = async () => (await jobs.getJob(MARK))?.timestamp;
  let data: number | undefined;
  const exists = async (id: string) => (await jobs.getJobState(id)) !== "unknown";

  async function move(id: string, priority: number): Promise<boolean> {
    try {
      await backend.changePriority(id, priority);
      return true;
    } catch (cause) {
      if (!isMissing(cause)) throw cause;
      if ((await dataOf()) !== data) throw lostData;
      return false;
    }
  }

  return {
    exists,
    read: async (id: string) => (await jobs.getJob(id))?.data as Job | undefined,

    /** Those that are worked on, the oldest first. */
    async open(): Promise<string[]> {
      const ids = await jobs.getRanges(["wait"], 0, -1, true);
      if (!ids.includes(MARK)) throw lostData;
      return ids.filter((id) => id !== MARK);
    },
    /** Those that are kept: of one name, or all. */
    async kept(name?: string): Promise<string[]> {
      const ids = await jobs.getRanges(["prioritized"], 0, -1, true);
      return ids.filter((id) => name === undefined || id.startsWith(keyOf(name)));
    },
    /** Both return whether the batch exists. Both reject with `lostData` if it is missing because the server was emptied. */
    reopen: (id: string) => move(id, OPEN),
    keep: (id: string) => move(id, KEPT),

    /** The batch that was added last. */
    newest: (name: string) => jobs.getDeduplicationJobId(keyOf(name)),
    /** Adds a batch after `before`, which was the newest. Returns its ID, unless another machine was faster. */
    async add(name: string, settings: Settings, rows: string, before: string | null): Promise<string | undefined> {
      const key = keyOf(name);
      if (before) await backend.removeDeduplicationKey(key, before);
      const id = `${key}-${randomBytes(8).toString("hex")}`;
      const data: Job = { format: FORMAT, name, settings, rows };
      const job = await jobs.add("batch", data, { jobId: id, deduplication: { id: key } });
      return job.id === id ? id : undefined;
    },
    async remove(id: string): Promise<void> {
      await jobs.remove(id);
      for (let number = 0; ; number++) {
        const segment = segmentOf(id, number);
        if (!(await logs.getJob(segment))) return;
        // Unlike the job's own method, this does not reject if another machine was faster.
        await logs.remove(segment);
      }
    },

    /** A machine that died while it removed a batch has left segments. A batch is there before its segments. */
    async prepare(): Promise<void> {
      await jobs.add("mark", {}, { jobId: MARK });
      data = await dataOf();
      const segments = await logs.getRanges(["wait"], 0, -1);
      // PostgreSQL reads the two one after the other: a batch that is reopened meanwhile is in neither.
      const used = new Set(await jobs.getRanges(["wait", "prioritized"], 0, -1));
      for (const id of segments) if (!used.has(logOf(id)) && !(await exists(logOf(id)))) await logs.remove(id);
    },
  };
}

import type { SeoError } from "../../errors.js";
import type { Batch } from "../batch.js";
import type { JobEntry, Letter } from "./letter.js";
import type { JobLog } from "./log.js";

/** A letter without a reply, and its log. */
export interface Given {
  is: "letter";
  id: string;
  letter: Letter;
  log: JobLog<JobEntry>;
  /** The letter may have been handled before. */
  again: boolean;
}

/** A batch that is worked on. */
export interface Opened {
  is: "batch";
  batch: Batch;
  /** The letters that have changed it. */
  letters: ReadonlySet<string>;
}

/** The state of a job. */
export type Known =
  | Given
  | Opened
  /** A batch that cannot be read. */
  | { is: "broken"; name: string; error: SeoError }
  /** A batch that is kept, although there is a new one of its name. */
  | { is: "replaced" }
  /** Nothing is left to do. The job is removed later, because its sender may not know what became of it. */
  | { is: "done"; since: number };

export const done = (): Known => ({ is: "done", since: performance.now() });

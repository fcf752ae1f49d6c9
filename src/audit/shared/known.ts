import type { SeoError } from "../../errors.js";
import type { Batch } from "../batch.js";
import type { Journal } from "./journal.js";
import type { JobEntry, Letter } from "./letter.js";

/** A letter without an answer, and its journal. `again`: it may have been handled. */
export interface Given {
  id: string;
  letter: Letter;
  journal: Journal<JobEntry>;
  again: boolean;
}

/** A job: a letter, a batch that is worked on, or one that cannot be read; or nothing is left to do. */
export interface Known {
  given?: Given;
  /** `letters`: those that have changed it. */
  opened?: { batch: Batch; letters: ReadonlySet<string> };
  broken?: { name: string; error: SeoError };
  /** Since when. It is removed later, because its sender may not know what became of it. */
  done?: number;
}

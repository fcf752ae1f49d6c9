import { type Code, SeoError } from "../errors.js";
import type { Clock } from "./clock.js";
import { createPace, type Progress, progressOf } from "./progress.js";
import type { Batch } from "./store.js";

const BETWEEN = 5000;

/** Says that a batch is paused because of its last failures. */
export function streakOf({ name, held, heldError }: Batch): SeoError {
  const { code, message, ...details } = heldError ?? { code: "SEO_INPUT", message: "" };
  const sentence = `The batch ${JSON.stringify(name)} is paused: ${held.length} pages in a row failed. ${message}`;
  return new SeoError(code as Code, sentence, details);
}

/** What is in memory of a batch that is worked on, beside its pages. */
export function createRun(
  batch: Batch,
  clock: Clock,
  stalled: () => SeoError | undefined,
  tell: (progress: Progress) => void,
) {
  let pace = createPace(clock.now);
  let shown = Number.NEGATIVE_INFINITY;
  let cancel: (() => void) | undefined;
  let over = batch.finished;

  function progress(): Progress {
    const reason = batch.paused ? "Paused by msg.pause." : (run.trouble ?? stalled())?.message;
    return progressOf(batch, pace, over ? false : (reason ?? false), over);
  }

  function show(): void {
    cancel = undefined;
    shown = clock.now();
    tell(progress());
  }

  const run = {
    batch,
    /** Jobs in work. */
    active: 0,
    planning: false,
    /** Why the account cannot go on, and whether that was told. */
    trouble: undefined as SeoError | undefined,
    told: false,
    /** A probe can be sent. */
    due: false,
    /** The page that is the probe. `again`: it is one of the failures, because no other page is left. */
    probe: undefined as { page: number; again: boolean } | undefined,
    cancelProbe() {},
    progress,

    /** Everything was told. */
    over: () => over,
    requestEnded: () => pace.ended(),
    measureAnew() {
      pace = createPace(clock.now);
    },

    /** Tells the progress, at most every 5 s. */
    changed(): void {
      if (over || cancel) return;
      const wait = shown + BETWEEN - clock.now();
      if (wait <= 0) show();
      else cancel = clock.later(wait, show);
    },

    /** Tells the final progress. */
    end(): void {
      run.close();
      over = true;
      show();
    },

    restart(): void {
      over = false;
      run.measureAnew();
      run.changed();
    },

    close(): void {
      cancel?.();
      cancel = undefined;
      run.cancelProbe();
    },
  };
  return run;
}

export type Run = ReturnType<typeof createRun>;

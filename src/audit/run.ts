import { type Code, SeoError, ended as sentenceOf } from "../errors.js";
import type { Clock } from "./clock.js";
import { createPace, type Progress, progressOf } from "./progress.js";
import type { Requests } from "./requests.js";
import type { Batch } from "./store.js";
import { STREAK } from "./streaks.js";

const PROBE = 15 * 60_000;
const BETWEEN = 5000;

export interface RunOptions {
  clock: Clock;
  progress(progress: Progress): void;
  failed(error: SeoError, batch: string): void;
  /** The batch waits until its account can go on. */
  stopped?(error: SeoError): void;
  requests: Pick<Requests, "waitingFor">;
  /** Why no batch can go on. */
  stalled(): SeoError | undefined;
  /** A probe can be sent. */
  due(): void;
}

/** What is in memory of a batch that is worked on, beside its pages. */
export function createRun(batch: Batch, { clock, ...out }: RunOptions) {
  let pace = createPace(clock.now);
  let shown = Number.NEGATIVE_INFINITY;
  /** Why it was paused then. */
  let reason: string | undefined;
  let cancelShow: (() => void) | undefined;
  let cancelProbe = () => {};
  let ended = false;
  let finished = false;
  let trouble = batch.streak()?.before ? pausedAfter() : undefined;
  let told = false;
  /** It is stopped because of its last failures. */
  let held = trouble !== undefined;

  /** Says that a batch is paused because of `cause`, or of its last failures. */
  function pausedAfter(cause?: SeoError): SeoError {
    // No repair of the account ends it.
    if (cause?.code === "SEO_INPUT") return cause;
    const error = cause?.toJSON() ?? batch.streak()?.error;
    const { code, message, ...details } = error as { code: Code; message: string };
    const why = cause ? "" : `: ${STREAK} pages in a row failed`;
    const sentence = `The batch ${JSON.stringify(batch.name)} is paused${why}.`;
    const when = "It continues within 15 minutes of the repair, or at msg.resume.";
    return new SeoError(code, `${sentence} ${sentenceOf(message)} ${when}`, details);
  }

  const pausedBy = () => (batch.paused() ? "Paused by msg.pause." : (trouble ?? out.stalled())?.message);

  const progress = () => {
    const stuck = run.lost.size > 0 && run.lost.size === run.active;
    const paused = (!ended && pausedBy()) || false;
    return progressOf(batch, run.lost, pace, paused, finished, out.requests.waitingFor(), stuck);
  };

  function show(repeated = false): void {
    cancelShow?.();
    cancelShow = undefined;
    reason = pausedBy();
    shown = clock.now();
    const now = progress();
    if (now.secondsToWait !== undefined) run.changed();
    out.progress(repeated ? { ...now, repeated } : now);
  }

  const run = {
    batch,
    /** Jobs in work. */
    active: 0,
    planning: false,
    /** The pages whose response was lost, as long as it is looked for. */
    lost: new Set<number>(),
    /** The account could not go on, and a probe can be sent. At the beginning, because a deploy may have repaired it. */
    due: trouble !== undefined,
    /** A probe was requested since the last one was sent. */
    asked: false,
    /** The page that is the probe. */
    probe: undefined as number | undefined,
    progress,
    stopped: () => trouble !== undefined,
    requestEnded: () => pace.ended(),

    /** Has the batch wait until its account can go on, which a probe finds out. The error is told once. */
    stop(cause?: SeoError): void {
      trouble = pausedAfter(cause);
      held = batch.streak()?.before !== undefined;
      if (!told) out.failed(trouble, batch.name);
      told = true;
      out.stopped?.(trouble);
      run.due = run.asked;
      cancelProbe();
      cancelProbe = clock.later(PROBE, run.setDue);
      run.changed();
    },

    setDue(): void {
      run.asked = true;
      run.due = true;
      out.due();
    },

    /** The next request, or the plan, is the probe. */
    begin(): void {
      run.asked = false;
      run.due = false;
    },

    goOn(): void {
      trouble = undefined;
      held = false;
      told = false;
      cancelProbe();
      pace = createPace(clock.now);
      run.changed();
    },

    /** Tells the progress: at once if a pause begins or ends, otherwise at most every 5 s. */
    changed(): void {
      if (ended) return;
      const wait = shown + BETWEEN - clock.now();
      if (wait <= 0 || pausedBy() !== reason) show();
      else cancelShow ??= clock.later(wait, () => show());
    },

    /** The last failures may stop the batch, or it can go on. */
    agree(): void {
      const isStreak = batch.streak()?.before !== undefined;
      if (isStreak && !trouble) run.stop();
      else if (!isStreak && held && run.probe === undefined) run.goOn();
      else run.changed();
    },

    /** Tells the final progress. */
    end({ repeated }: { repeated: boolean }): void {
      run.close();
      finished = true;
      show(repeated);
    },

    close(): void {
      ended = true;
      cancelShow?.();
      cancelProbe();
    },
  };
  return run;
}

export type Run = ReturnType<typeof createRun>;

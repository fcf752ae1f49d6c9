import type { SeoError } from "../../errors.js";
import { type Audit, type AuditOptions, createAudit } from "../audit.js";
import type { Clock } from "../clock.js";
import { BETWEEN, type Progress } from "../progress.js";
import { LIST } from "../requests.js";
import { blockedBy, reasonOf } from "../trouble.js";
import { prefixOf } from "./letter.js";
import type { QueueStore } from "./store.js";

/** An audit whose batches are in a queue. */
export interface SharedOptions extends Omit<AuditOptions, "open"> {
  /** The audit node and its SEO service node, by their IDs, which are the same on all machines. */
  node: string;
  service: string;
  /** Another machine leads: what it says of the batches, and those of them that are due: at once if a pause begins or ends, or every 5 s. */
  standBy(all: readonly Progress[], due: readonly Progress[]): void;
  /** Gets a sentence if the server should be set otherwise. */
  warn?(sentence: string): void;
}

/** Failures that another machine may not have: those of the key, and of the network. */
const OWN: readonly string[] = ["SEO_UNAUTHORIZED", "SEO_FORBIDDEN", "SEO_NETWORK", "SEO_TIMEOUT"];

/** Figures of batches, with the reason why nothing can go on. */
const stoppedBy = (why: SeoError, all: readonly Progress[]): Progress[] =>
  all.map((one) =>
    one.finished ? one : { ...one, ...blockedBy(one.batch, why), secondsLeft: undefined, perMinute: 0 },
  );

/** The machine, as a node needs it. */
interface Machine {
  /** The work cannot be done here. */
  offer(): void;
  /** The work can be done here. */
  worked(): void;
}

/** The work of a node while its machine leads. */
interface Work {
  audit?: Audit;
  /** Resolves when nothing more is taken over, with the store. */
  opening?: Promise<QueueStore>;
  store?: QueueStore;
}

/** An audit node of this process. It works on its batches while this machine leads, and otherwise shows what the lead says. */
export class Host {
  /** While this machine leads. */
  #work: Work = {};
  /** The news of the last lead; undefined if none was seen. */
  #news: readonly Progress[] | undefined;
  /** By batch: what was due last, and when. */
  #due = new Map<string, { one: Progress; at: number }>();
  /** The reason of the last error of each batch, and of the queue. */
  readonly #reported = new Map<string | undefined, string>();

  constructor(
    readonly options: SharedOptions & { clock: Clock },
    readonly machine: Machine,
  ) {}

  latest = (): readonly Progress[] => this.#work.audit?.latest() ?? this.#news ?? this.options.earlier ?? [];
  progress = async (): Promise<readonly Progress[]> => this.#work.audit?.progress() ?? this.latest();
  /** Begins nothing more, and waits for the responses to what is in flight. */
  drain = async (): Promise<void> => this.#work.audit?.drain();

  /** Whether this machine reaches the SEO service, with a valid key. */
  async canWork(): Promise<boolean> {
    try {
      for await (const _ of this.options.connect(() => {}).pages(LIST, {})) break;
      return true;
    } catch {
      return false;
    }
  }

  /** Reports an error once. Of the queue's, the figures of another machine say it, too: they are as old. */
  failed = (error: SeoError, batch?: string): void => {
    if (batch === undefined && !this.#work.audit && this.#news) this.show(stoppedBy(error, this.#news));
    if (this.#reported.get(batch) === reasonOf(error)) return;
    this.#reported.set(batch, reasonOf(error));
    this.options.failed(error, batch);
  };

  /** The queue can be used. */
  recovered(): void {
    if (this.#reported.delete(undefined)) this.options.recovered?.(false);
  }

  /** Another machine leads. */
  show(all: readonly Progress[]): void {
    for (const { batch, paused } of all) if (paused === false) this.#reported.delete(batch);
    const now = this.options.clock.now();
    const isDue = (one: Progress, last: { one: Progress; at: number }) =>
      (one.finished || one.paused !== last.one.paused || now - last.at >= BETWEEN) &&
      JSON.stringify(one) !== JSON.stringify(last.one);
    const before = this.#due;
    this.#due = new Map();
    for (const one of all) {
      const last = before.get(one.batch);
      this.#due.set(one.batch, last && !isDue(one, last) ? last : { one, at: now });
    }
    const due = all.filter(({ batch }) => this.#due.get(batch) !== before.get(batch));
    // Batches that had finished before are no news.
    const news = this.#news ? due : due.filter(({ finished }) => !finished);
    this.#news = all;
    this.options.standBy(all, news);
  }

  /** Begins the work: this machine leads. `isOver`: the work has ended. */
  begin(open: (isOver: () => boolean) => Promise<QueueStore>): void {
    const { options } = this;
    const work: Work = {};
    this.#work = work;
    work.audit = createAudit({
      ...options,
      earlier: this.latest(),
      failed: this.failed,
      recovered: (opened) => {
        this.#reported.delete(undefined);
        options.recovered?.(opened);
      },
      stopped: ({ code }) => OWN.includes(code) && this.machine.offer(),
      result: (result) => {
        // Others are results of earlier processes, or need no request.
        if (!result.error && result.attempts > 0 && !result.repeated) this.machine.worked();
        options.result(result);
      },
      progress: (progress, all) => {
        if (progress.paused === false) this.#reported.delete(progress.batch);
        options.progress(progress, all);
      },
      open: async () => {
        work.opening = open(() => this.#work !== work);
        work.store = await work.opening;
        return work.store;
      },
    });
  }

  /** Handles those jobs of the node that are letters, in order. */
  async handle(ids: readonly string[]): Promise<void> {
    const { audit, store } = this.#work;
    if (!audit || !store) return;
    const own = ids.filter((id) => id.startsWith(prefixOf(this.options.node)));
    for (const id of own) await store.handle(id, audit);
    await store.clean();
  }

  /** Ends the work: this machine does not lead any more; or nobody can, and the progress says why. Returns how many rows wait. */
  async end(why?: SeoError): Promise<number> {
    const { audit, opening } = this.#work;
    const news = audit?.latest() ?? this.#news ?? [];
    this.#work = {};
    if (audit) this.#news = why ? stoppedBy(why, news) : news;
    const waiting = audit ? await audit.close(why) : news.reduce((sum, one) => sum + one.waiting, 0);
    // Jobs that an ended work takes over would stop the next one.
    await opening?.catch(() => {});
    return waiting;
  }
}

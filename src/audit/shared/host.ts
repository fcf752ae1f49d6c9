import type { SeoError } from "../../errors.js";
import { type Audit, type AuditOptions, createAudit } from "../audit.js";
import type { Progress } from "../progress.js";
import { reasonOf } from "../trouble.js";
import { prefixOf } from "./letter.js";
import type { QueueStore } from "./store.js";

/** An audit whose batches are in a queue. */
export interface SharedOptions extends Omit<AuditOptions, "open"> {
  /** The audit node and its SEO service node, by their IDs, which are the same on all machines. */
  node: string;
  service: string;
  /** Another machine leads: what it says of the batches, and those of them that have changed. */
  standBy(all: readonly Progress[], changed: readonly Progress[]): void;
  /** Gets a sentence if the server should be set otherwise. */
  warn?(sentence: string): void;
}

/** Failures that another machine may not have: those of the key, and of the network. */
const OWN: readonly string[] = ["SEO_UNAUTHORIZED", "SEO_FORBIDDEN", "SEO_NETWORK", "SEO_TIMEOUT"];

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
  /** The latest progress of the batches. Finished ones are known until another one continues. */
  #news: readonly Progress[] = [];
  /** The code of the last error of each batch, and of the queue. */
  readonly #reported = new Map<string | undefined, string>();

  constructor(
    readonly options: SharedOptions,
    readonly offerLead: () => void,
  ) {}

  news = (): readonly Progress[] => this.#news;
  unfinished = (): Progress[] => this.#news.filter(({ finished }) => !finished);
  progress = async (): Promise<Progress[]> => this.#work.audit?.progress() ?? [...this.#news];
  /** Begins nothing more, and waits for the responses to what is in flight. */
  drain = async (): Promise<void> => this.#work.audit?.drain();

  /** Reports an error once. */
  failed = (error: SeoError, batch?: string): void => {
    if (this.#reported.get(batch) === error.code) return;
    this.#reported.set(batch, error.code);
    this.options.failed(error, batch);
  };

  /** The queue can be used. */
  recovered(): void {
    if (this.#reported.delete(undefined)) this.options.recovered?.(false);
  }

  /** Another machine leads. */
  show(all: readonly Progress[]): void {
    const shown = new Set(this.#news.map((one) => JSON.stringify(one)));
    const changed = all.filter((one) => !shown.has(JSON.stringify(one)));
    for (const { batch, paused } of all) if (paused === false) this.#reported.delete(batch);
    this.#news = all;
    this.options.standBy(all, changed);
  }

  /** Begins the work: this machine leads. `isOver`: the work has ended. */
  begin(open: (isOver: () => boolean) => Promise<QueueStore>): void {
    const { options } = this;
    const work: Work = {};
    this.#work = work;
    this.#news = [];
    work.audit = createAudit({
      ...options,
      failed: this.failed,
      recovered: (opened) => {
        this.#reported.delete(undefined);
        options.recovered?.(opened);
      },
      stopped: ({ code }) => OWN.includes(code) && this.offerLead(),
      result: (result) => {
        if (!result.error) this.#reported.delete(result.batch);
        options.result(result);
      },
      progress: (progress) => {
        if (progress.finished) this.#reported.delete(progress.batch);
        const known = progress.finished ? this.#news : this.unfinished();
        this.#news = [...known.filter(({ batch }) => batch !== progress.batch), progress];
        options.progress(progress);
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
    // The others show the latest figures. Those of a pause do not change, and there are none once the work has ended.
    if (this.#work.audit !== audit || !this.unfinished().some(({ paused }) => paused === false)) return;
    this.#news = [...this.#news.filter(({ finished }) => finished), ...audit.unfinished()];
  }

  /** Ends the work: this machine does not lead any more; or nobody can, and the progress says why. */
  async end(why?: SeoError): Promise<void> {
    const { audit, opening } = this.#work;
    this.#work = {};
    if (!audit && why)
      this.show(this.#news.map((one) => (one.finished ? one : { ...one, paused: why.message, reason: reasonOf(why) })));
    await audit?.close(why);
    // Jobs that an ended work takes over would stop the next one.
    await opening?.catch(() => {});
  }
}

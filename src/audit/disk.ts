import { cancelled } from "../errors.js";
import { deferred } from "../turns.js";
import type { Store } from "./batch.js";
import type { Clock } from "./clock.js";
import { Trouble } from "./trouble.js";

const MINUTE = 60_000;

export interface DiskOptions {
  clock: Clock;
  store: Pick<Store, "probe" | "between">;
  /** Gets an error once, until something was saved. */
  failed(error: Trouble): void;
  changed(): void;
}

/** Holds everything up while nothing can be saved: until a probe of the store succeeds. */
export class Disk {
  /** Why nothing can be saved. */
  trouble: Trouble | undefined;
  readonly #options: DiskOptions;
  #isReported = false;
  /** The end of the trouble. */
  #free = deferred();
  #cancel = () => {};
  #closed = false;

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  /** Saves something, or rejects as `work` does. */
  async try<Value>(work: () => Promise<Value>): Promise<Value> {
    const value = await work();
    this.#isReported = false;
    return value;
  }

  /** Saves something, and tries again until it is saved. Rejects with SEO_CANCELLED once this is closed. */
  async keep<Value>(work: () => Promise<Value>): Promise<Value> {
    for (;;) {
      try {
        return await this.try(work);
      } catch (cause) {
        if (!(cause instanceof Trouble)) throw cause;
        this.stall(cause);
        if (!this.#closed) await this.#free.promise;
        if (this.#closed) throw cancelled;
      }
    }
  }

  stall(error: Trouble): void {
    if (this.trouble || this.#closed) return;
    this.trouble = error;
    this.#free = deferred();
    this.#probeLater();
    if (!this.#isReported) this.#options.failed(error);
    this.#isReported = true;
    this.#options.changed();
  }

  #probeLater(): void {
    const { clock, store } = this.#options;
    this.#cancel();
    this.#cancel = clock.later(store.between ?? MINUTE, () => this.probe());
  }

  /** Ends the trouble if something can be saved. */
  async probe(): Promise<void> {
    if (!this.trouble) return;
    const isFree = await this.#options.store.probe().then(
      () => true,
      () => false,
    );
    if (this.#closed || !this.trouble) return;
    if (!isFree) return this.#probeLater();
    this.#cancel();
    this.trouble = undefined;
    this.#options.changed();
    this.#free.resolve();
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
    this.#free.resolve();
  }
}

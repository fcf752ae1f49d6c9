import { cancelled, SeoError } from "../errors.js";
import { deferred } from "../turns.js";
import type { Store } from "./batch.js";
import type { Options } from "./options.js";
import { reasonOf, Trouble } from "./trouble.js";

const MINUTE = 60_000;
/** Milliseconds until a server is tried again. */
const SOON = 1000;

/** The engine, as it is needed here. */
interface Listener {
  /** Says that reports of the store will be claimed. Returns what says that they are. */
  announceClaims(): () => void;
  open(store: Store): void;
  /** Nothing can go on, or everything can. */
  changed(): void;
  close(): Promise<void>;
}

/** Opens the place of the journals. As long as they cannot be opened or written, nothing goes on, and it tries again. */
export class Access {
  /** The store, as long as it is open. */
  store: Store | undefined;
  /** Why nothing can go on. */
  error: SeoError | undefined;
  closed = false;
  /** Nothing more is begun. */
  isEnding = false;
  readonly #engine: Listener;
  readonly #claimed: () => void;
  /** The reason that was reported, until something is saved. */
  #reported: string | undefined;
  /** The end of the error, or of the store. */
  #free = deferred();
  #cancel = () => {};
  /** The attempt to open the store, as long as it lasts. */
  #opening: Promise<void> | undefined;

  constructor(
    readonly options: Options,
    engine: Listener,
  ) {
    this.#engine = engine;
    this.#claimed = engine.announceClaims();
    this.#opening = this.#open();
  }

  async #open(): Promise<void> {
    let gone: SeoError | undefined;
    try {
      const store = await this.options.open((error) => {
        if (gone) return;
        gone = error;
        if (this.store) this.#lose(error);
      });
      if (this.closed || gone) {
        await store.close();
        throw gone ?? cancelled;
      }
      this.store = store;
      this.error = undefined;
      this.#reported = undefined;
      this.#engine.open(store);
      this.#claimed();
    } catch (cause) {
      this.stop(cause);
    }
    this.#opening = undefined;
  }

  #lose(error: SeoError): void {
    this.#leave().catch(() => {});
    this.stop(error);
  }

  /** The store. Rejects while it cannot be opened. */
  async ready(): Promise<Store> {
    await this.#opening;
    if (!this.store) throw this.error ?? cancelled;
    return this.store;
  }

  /** Nothing can go on. While the store is open, its first error stands. */
  stop(cause: unknown): void {
    if (this.closed || (this.store && this.error)) return;
    const error = cause instanceof SeoError ? cause : new SeoError("SEO_INPUT", String(cause));
    this.error = error;
    this.#free = deferred();
    this.#retryLater(error);
    if (this.#reported !== reasonOf(error)) this.options.failed(error);
    this.#reported = reasonOf(error);
    this.#engine.changed();
  }

  #retryLater(error: SeoError): void {
    const isServer = error instanceof Trouble && error.kind === "server";
    this.#cancel();
    this.#cancel = this.options.clock.later(isServer ? SOON : MINUTE, () => {
      void this.probe();
    });
  }

  /** Goes on if the store can be opened, or something can be saved. */
  async probe(): Promise<void> {
    const { store, error } = this;
    if (!error) return;
    if (!store) {
      if (!this.closed) this.#opening ??= this.#open();
      return this.#opening;
    }
    const isFree = await store.probe().then(
      () => true,
      () => false,
    );
    if (this.store !== store || this.error !== error) return;
    if (!isFree) return this.#retryLater(error);
    this.#cancel();
    this.error = undefined;
    this.#engine.changed();
    this.options.recovered?.(false);
    this.#free.resolve();
  }

  /** Saves something, or rejects as `work` does. */
  async saveOnce<Value>(work: () => Promise<Value>): Promise<Value> {
    const value = await work();
    this.#reported = undefined;
    return value;
  }

  /** Saves something, and tries again until it is saved. Rejects with SEO_CANCELLED once the store is closed. */
  async save<Value>(work: () => Promise<Value>): Promise<Value> {
    const { store } = this;
    const isOpen = () => store !== undefined && this.store === store;
    for (;;) {
      try {
        return await this.saveOnce(work);
      } catch (cause) {
        if (!(cause instanceof Trouble)) throw cause;
        if (isOpen()) {
          this.stop(cause);
          await this.#free.promise;
        }
        if (!isOpen()) throw cancelled;
      }
    }
  }

  /** Ends the work at once, then closes the store. `saved` resolves when messages save nothing more. */
  async #leave(saved?: Promise<unknown>): Promise<void> {
    const { store } = this;
    this.store = undefined;
    this.#free.resolve();
    if (!store) return;
    await this.#engine.close();
    await saved;
    await store.close();
  }

  /** Ends everything, but for a store that is being opened: that ends by itself. */
  close(saved: Promise<unknown>): Promise<void> {
    this.closed = true;
    this.#claimed();
    this.#cancel();
    return this.#leave(saved);
  }
}

import { cancelled, SeoError } from "../errors.js";
import type { Store } from "./batch.js";
import { type Clock, clock as realClock } from "./clock.js";
import { Engine, type EngineOptions } from "./engine.js";
import { Trouble } from "./trouble.js";

export interface OpenOptions extends Omit<EngineOptions, "store" | "clock"> {
  /** Opens the place where the journals are kept. `lost` is called if they are taken over. */
  open(lost: (error: SeoError) => void): Promise<Store>;
  clock?: Clock;
}

export interface Parts {
  store: Store;
  engine: Engine;
}

const MINUTE = 60_000;
const SOON = 1000;

/** Opens the place where the journals are kept, and tries again while that fails: a server soon, files in a minute. */
export class Opener {
  /** Rejects while it cannot be opened. */
  opened: Promise<Parts>;
  parts: Parts | undefined;
  closed = false;
  readonly #options: OpenOptions;
  readonly #clock: Clock;
  /** The code of the error that was reported. */
  #reported: string | undefined;
  #cancel = () => {};

  constructor({ clock = realClock, ...options }: OpenOptions) {
    this.#options = options;
    this.#clock = clock;
    this.opened = this.#start();
  }

  async #load(): Promise<Parts> {
    const { open, failed, recovered, ...engineOptions } = this.#options;
    let gone: SeoError | undefined;
    const store = await open((error) => {
      if (gone) return;
      gone = error;
      if (this.parts) this.#lose(this.parts, error);
    });
    if (this.closed || gone) {
      await store.close();
      throw gone ?? cancelled;
    }
    recovered?.(true);
    const engine = new Engine({ ...engineOptions, failed, ...(recovered && { recovered }), store, clock: this.#clock });
    for (const { name, error } of store.broken) failed(error, name);
    for (const batch of store.batches) engine.add(batch);
    this.#reported = undefined;
    this.parts = { store, engine };
    return this.parts;
  }

  #lose({ engine }: Parts, error: SeoError): void {
    this.#options.failed(error);
    engine.lose(error);
    this.#reported = error.code;
    this.opened = Promise.reject(error);
    this.opened.catch(() => {});
    void this.#end()
      .catch(() => {})
      .finally(() => this.#later(MINUTE));
  }

  #start(): Promise<Parts> {
    const loading = this.#load();
    loading.catch((cause) => {
      if (this.closed) return;
      const error = cause instanceof SeoError ? cause : new SeoError("SEO_INPUT", String(cause));
      if (this.#reported !== error.code) this.#options.failed(error);
      this.#reported = error.code;
      this.#later(error instanceof Trouble && error.kind === "server" ? SOON : MINUTE);
    });
    return loading;
  }

  #later(ms: number): void {
    if (this.closed) return;
    this.#cancel = this.#clock.later(ms, () => {
      this.opened = this.#start();
    });
  }

  /** Does not wait for what is not open yet: that ends by itself. */
  async #end(saved?: Promise<unknown>): Promise<void> {
    const { engine, store } = this.parts ?? {};
    this.parts = undefined;
    // What a message saves is saved before the store closes, which would not know of it.
    await Promise.all([engine?.close(), engine && saved]);
    await store?.close();
  }

  /** Ends everything at once. `saved`: what messages still save. */
  async close(saved: Promise<unknown>): Promise<void> {
    this.closed = true;
    this.#cancel();
    await this.#end(saved);
  }
}

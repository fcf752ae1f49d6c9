import { cancelled, SeoError } from "../errors.js";
import type { Store } from "./batch.js";
import { type Clock, clock as realClock } from "./clock.js";
import { Engine, type EngineOptions } from "./engine.js";
import { Trouble } from "./trouble.js";

export interface OpenOptions extends Omit<EngineOptions, "clock"> {
  /** Opens the place where the journals are kept. `lost` is called if they are taken over. */
  open(lost: (error: SeoError) => void): Promise<Store>;
  clock?: Clock;
}

const MINUTE = 60_000;
const SOON = 1000;

/** Opens the place where the journals are kept, and tries again while that fails: a server soon, files in a minute. */
export class Opener {
  /** Rejects while it cannot be opened. */
  opened: Promise<Engine>;
  engine: Engine | undefined;
  closed = false;
  readonly #options: OpenOptions & { clock: Clock };
  /** The code of the error that was reported. */
  #reported: string | undefined;
  #cancel = () => {};

  constructor(options: OpenOptions) {
    this.#options = { clock: realClock, ...options };
    this.opened = this.#start();
  }

  async #load(): Promise<Engine> {
    let gone: SeoError | undefined;
    const store = await this.#options.open((error) => {
      if (gone) return;
      gone = error;
      if (this.engine) this.#lose(this.engine, error);
    });
    if (this.closed || gone) {
      await store.close();
      throw gone ?? cancelled;
    }
    this.#options.recovered?.(true);
    this.#reported = undefined;
    this.engine = new Engine(store, this.#options);
    return this.engine;
  }

  #lose(engine: Engine, error: SeoError): void {
    this.#report(error);
    engine.lose(error);
    this.opened = Promise.reject(error);
    this.opened.catch(() => {});
    this.engine = undefined;
    void engine
      .close()
      .catch(() => {})
      .finally(() => this.#later(MINUTE));
  }

  #report(error: SeoError): void {
    if (this.#reported !== error.code) this.#options.failed(error);
    this.#reported = error.code;
  }

  #start(): Promise<Engine> {
    const loading = this.#load();
    loading.catch((cause) => {
      if (this.closed) return;
      const error = cause instanceof SeoError ? cause : new SeoError("SEO_INPUT", String(cause));
      this.#report(error);
      this.#later(error instanceof Trouble && error.kind === "server" ? SOON : MINUTE);
    });
    return loading;
  }

  #later(ms: number): void {
    if (this.closed) return;
    this.#cancel = this.#options.clock.later(ms, () => {
      this.opened = this.#start();
    });
  }

  /** Ends everything at once, but not what is not open yet: that ends by itself. `saved`: what messages still save. */
  async close(saved: Promise<unknown>): Promise<void> {
    this.closed = true;
    this.#cancel();
    const { engine } = this;
    this.engine = undefined;
    await engine?.close(saved);
  }
}

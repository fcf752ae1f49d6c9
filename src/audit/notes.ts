import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds that a result takes to its next nodes: Node-RED delivers messages later, and several nodes in turn. */
const DELIVERY = 50;

/** Notes that results were delivered, somewhat later: if the process dies before, they are sent again. */
export class Notes {
  readonly #write: (page: number) => Promise<void>;
  /** Pages whose results may be on their way, and those that were before them. */
  #latest: number[] = [];
  #next: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #written: Promise<unknown> = Promise.resolve();

  constructor(write: (page: number) => Promise<void>) {
    this.#write = write;
  }

  add(page: number): void {
    this.#latest.push(page);
    this.#timer ??= setTimeout(() => this.#note(), DELIVERY);
  }

  #note(): void {
    this.#written = Promise.allSettled([this.#written, ...this.#next.map(this.#write)]);
    const isMore = this.#next.length + this.#latest.length > 0;
    this.#timer = isMore ? setTimeout(() => this.#note(), DELIVERY) : undefined;
    this.#next = this.#latest;
    this.#latest = [];
  }

  /** Drops the notes of other pages: they would be those of a later result. */
  keep(isDelivered: (page: number) => boolean): void {
    this.#latest = this.#latest.filter(isDelivered);
    this.#next = this.#next.filter(isDelivered);
  }

  async settled(): Promise<void> {
    while (this.#timer) await sleep(DELIVERY);
    await this.#written;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

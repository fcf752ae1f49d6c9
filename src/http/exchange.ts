import type { Dispatcher } from "undici";
import type { SeoError } from "../errors.js";
import { decode, type Headers } from "./response.js";

/** An answer as it came. */
export interface Received {
  statusCode: number;
  headers: Headers;
  text: string;
}

/**
 * One request on its way: what undici tells of it, and the answer or the failure that comes of it. In place of undici's
 * `request`, which makes a stream, an abort signal and their listeners for each answer, only for them to be read at once.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly received: Promise<Received>;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #reason: SeoError | undefined;
  #statusCode = 0;
  #headers: Headers = {};
  #resolve!: (received: Received) => void;
  #reject!: (cause: unknown) => void;

  constructor() {
    this.received = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /**
   * Fails with `reason` at once, also while undici waits for a connection and hears of it only afterwards. It is uncertain
   * whether the service acted once undici has begun to send the request.
   */
  abort(reason: SeoError): void {
    this.#reason = reason.with({ uncertain: this.#controller !== undefined });
    this.#reject(this.#reason);
    this.#controller?.abort(this.#reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#reason) controller.abort(this.#reason);
    else this.#controller = controller;
  }

  /** Also called for each 1xx, before the answer itself. */
  onResponseStart(_: Dispatcher.DispatchController, statusCode: number, headers: Headers): void {
    this.#statusCode = statusCode;
    this.#headers = headers;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const statusCode = this.#statusCode;
    const headers = this.#headers;
    const [chunk, ...more] = this.#chunks;
    decode(chunk && more.length === 0 ? chunk : Buffer.concat(this.#chunks), headers).then(
      (text) => this.#resolve({ statusCode, headers, text }),
      this.#reject,
    );
  }

  onResponseError(_: Dispatcher.DispatchController, cause: Error & { code?: string }): void {
    const begun = this.#statusCode !== 0;
    // A 204 has no body, but undici takes one that gives a length for an answer that was cut short.
    if (this.#statusCode === 204 && !this.#reason) this.onResponseEnd();
    // Where the connection is not kept, an answer that breaks off is one whose length or last chunk is wrong.
    else if (begun && (cause.code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" || /Invalid EOF/.test(cause.message)))
      this.#reject({ code: "UND_ERR_SOCKET" });
    else this.#reject(cause);
  }
}

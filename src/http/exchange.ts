import { performance } from "node:perf_hooks";
import type { Dispatcher } from "undici";
import type { SeoError } from "../errors.js";
import type { Headers } from "../responses.js";
import type { Task } from "../scheduler.js";
import type { RawResponse } from "./response.js";

/** One for all: even an empty one takes time to allocate. */
const EMPTY = Buffer.alloc(0);
/** Headers that no message gets: the first would change the prototype of its clone; the others can hold a session. */
const dropped = ["__proto__", "set-cookie", "set-cookie2"];

/**
 * One request in flight: undici's events of it, and the response or the error that it ends with. It replaces undici's
 * `request`, which makes a stream, an abort signal and their listeners for each response, only for them to be read at once.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly response: Promise<RawResponse>;
  /** When it has taken too long, in the clock of `performance.now()`. */
  readonly due: number;
  /** The body so far, and room for more of it. */
  #body: Buffer = EMPTY;
  #length = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #reason: SeoError | undefined;
  #statusCode = 0;
  #headers: Headers = {};
  #resolve!: (response: RawResponse) => void;
  #reject!: (cause: unknown) => void;

  /** `timeout` is in milliseconds. */
  constructor(
    readonly task: Task,
    readonly timeout: number,
  ) {
    this.due = performance.now() + timeout;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Whether undici has begun to send the request: it may have taken effect. */
  get begun(): boolean {
    return this.#controller !== undefined;
  }

  /** Fails with `reason` at once, even while undici waits for a connection and cannot be aborted yet. */
  abort(reason: SeoError): void {
    this.#reason = reason.with({ uncertain: this.begun });
    this.#reject(this.#reason);
    this.#controller?.abort(this.#reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#reason) controller.abort(this.#reason);
    else this.#controller = controller;
  }

  /** Also called for each 1xx, before the response itself. */
  onResponseStart(_: Dispatcher.DispatchController, statusCode: number, headers: Headers): void {
    this.#statusCode = statusCode;
    for (const name of dropped) if (Object.hasOwn(headers, name)) Reflect.deleteProperty(headers, name);
    this.#headers = headers;
  }

  /** Chunks can be as small as a byte, and each that is kept takes hundreds. The usual single one is not copied. */
  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (this.#length === 0) this.#body = chunk;
    else {
      if (length > this.#body.length) {
        const larger = Buffer.allocUnsafe(2 * length);
        this.#body.copy(larger);
        this.#body = larger;
      }
      chunk.copy(this.#body, this.#length);
    }
    this.#length = length;
  }

  onResponseEnd(): void {
    const bytes = this.#body.subarray(0, this.#length);
    this.#resolve({ statusCode: this.#statusCode, headers: this.#headers, bytes, sentAt: this.due - this.timeout });
  }

  onResponseError(_: Dispatcher.DispatchController, cause: Error & { code?: string }): void {
    const begun = this.#statusCode !== 0;
    // A 204 has no body, but undici takes one with a length for a response that was cut short.
    if (this.#statusCode === 204 && !this.#reason) this.onResponseEnd();
    // On a connection that is not kept alive, undici reports a cut response as a wrong length or last chunk.
    else if (begun && (cause.code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" || /Invalid EOF/.test(cause.message)))
      this.#reject({ code: "UND_ERR_SOCKET" });
    // So undici reports that a proxy to which it forwards wants a password.
    else if (cause.code === "UND_ERR_INVALID_ARG" && /\(407\)/.test(cause.message))
      this.#reject({ code: "UND_ERR_PRX_CONN" });
    else this.#reject(cause);
  }
}

import type { Socket } from "node:net";
import type { buildConnector } from "undici";

const LF = 10;
const CR = 13;
const TWO = 50;
/** `HTTP/1.1 100`: the characters of a status line up to its status. */
const STATUS_END = 12;

/**
 * Turns each `100 Continue` before a response into a `102 Processing`, which undici skips. At a 100 it closes the connection,
 * although clients must expect one that they did not request (RFC 9110, 15.2).
 */
class InterimFilter {
  /** The beginning of the status line; undefined after that of the response itself. */
  #status: string | undefined;
  /** True while the line of an interim head is empty. */
  #blank = false;

  /** A request was sent, so a response begins. */
  expect(): void {
    this.#status = "";
  }

  /** Changes a chunk in place. */
  filter(chunk: Buffer): void {
    for (let i = 0; i < chunk.length && this.#status !== undefined; i++) this.#read(chunk, i, this.#status);
  }

  #read(chunk: Buffer, i: number, status: string): void {
    const code = chunk[i] ?? 0;
    if (status.length === STATUS_END) {
      // A blank line ends the head of an interim response.
      if (code === LF && this.#blank) this.#status = "";
      this.#blank = code === LF || (code === CR && this.#blank);
    } else if (status !== "" || (code !== CR && code !== LF)) {
      this.#status = status + String.fromCharCode(code);
      if (this.#status.length < STATUS_END) return;
      this.#blank = false;
      if (!/^HTTP\/1\.\d 1\d\d$/.test(this.#status)) this.#status = undefined;
      else if (this.#status.endsWith("100")) chunk[i] = TWO;
    }
  }
}

/** Has the sockets of a connector skip each `100 Continue`. */
export const skippingContinue =
  (connect: buildConnector.connector): buildConnector.connector =>
  (options, done) =>
    connect(options, (...[cause, socket]) => (cause ? done(cause, null) : done(null, skipContinue(socket))));

function skipContinue(socket: Socket): Socket {
  const filter = new InterimFilter();
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  const read = socket.read.bind(socket);
  return Object.assign(socket, {
    write(...args: unknown[]) {
      filter.expect();
      return write(...args);
    },
    read(size?: number) {
      const chunk: Buffer | null = read(size);
      if (chunk) filter.filter(chunk);
      return chunk;
    },
  });
}

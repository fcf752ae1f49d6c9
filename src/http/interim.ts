import type { Socket } from "node:net";
import type { buildConnector } from "undici";

const START = "HTTP/1.1 1";
const [H, ONE] = Buffer.from("H1");
/** Whole interim responses, but no 101, which undici reports. */
const INTERIM = /^(?:\s*HTTP\/1\.1 1(?!01)\d\d.*?\n\r?\n)+/s;
/** A longer head is left to undici, which rejects it. */
const LONGEST = 16 << 10;

/** Whether bytes can be the beginning of an interim response. */
function mayBeInterim(bytes: Buffer): boolean {
  // Of most responses, these two bytes say so, in a tenth of the time.
  if (bytes.length >= START.length && bytes[0] === H && bytes[START.length - 1] !== ONE) return false;
  const start = bytes.toString("latin1", 0, 2 * START.length).trimStart();
  return START.startsWith(start.slice(0, START.length)) && !start.startsWith("01", START.length);
}

/**
 * Has the sockets of a connector skip the interim responses before each response. At a `100 Continue`, undici closes the
 * connection, although clients must expect one that they did not request (RFC 9110, 15.2).
 */
export const skippingInterim =
  (connect: buildConnector.connector): buildConnector.connector =>
  (options, done) =>
    connect(options, (...[cause, socket]) => (cause ? done(cause, null) : done(null, skipInterim(socket))));

function skipInterim(socket: Socket): Socket {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  const read = socket.read.bind(socket);
  const none = Buffer.alloc(0);
  /** A request was sent, and its response has not begun. */
  let isExpected = false;
  /** A part of an interim response. */
  let partial: Buffer = none;

  return Object.assign(socket, {
    write(...args: unknown[]) {
      isExpected = true;
      return write(...args);
    },
    read(size?: number): Buffer | null {
      const chunk: Buffer | null = read(size);
      if (!chunk || !isExpected) return chunk;
      let rest = partial.length > 0 ? Buffer.concat([partial, chunk]) : chunk;
      partial = none;
      if (mayBeInterim(rest)) {
        rest = rest.subarray(INTERIM.exec(rest.toString("latin1", 0, LONGEST))?.[0].length);
        if (mayBeInterim(rest) && rest.length < LONGEST) {
          partial = rest;
          return socket.read(size);
        }
      }
      isExpected = false;
      return rest;
    },
  });
}

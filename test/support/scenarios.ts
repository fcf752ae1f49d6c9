import type { Socket } from "node:net";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Code } from "../../src/errors.js";
import { answer, type Behaviour, type ListenOptions } from "./faulty.js";

/** One way in which a service, or what is in front of it, answers; and what a message that meets it ends with. */
export interface Scenario {
  behave: Behaviour;
  /** Absent: the message succeeds. */
  code?: Code;
  /** Another attempt may succeed. */
  transient?: true;
  /** The service may have done what was asked. */
  acted?: boolean;
  /** The status that the failure tells. */
  status?: number;
  /** The payload of a success, where it is not `fine`. */
  payload?: unknown;
  /** Enough for a delete, though for nothing else. */
  empty?: true;
  /** The requests do not get as far as the server. */
  unseen?: true;
  server?: ListenOptions | "none";
  /** Properties of the service node. */
  settings?: object;
  /** The requests go through a proxy, which refuses a tunnel so. */
  proxy?: "works" | "down" | ((socket: Socket) => void);
}

export const fine = { data: { id: 7, url: "example.com", password: false }, status: 200 };
const body = JSON.stringify(fine);
/** An answer that is well, as it goes over the wire. */
export const ok = answer(200, body);
const html = "<!doctype html><title>Log in</title>";

const lost = { code: "SEO_NETWORK", transient: true, acted: true } as const;
const unsent = { code: "SEO_NETWORK", transient: true, unseen: true } as const;
const late = { code: "SEO_TIMEOUT", transient: true, acted: true, settings: { timeout: "5" } } as const;
const wrong = { code: "SEO_RESPONSE", acted: true } as const;
const elsewhere = { code: "SEO_RESPONSE" } as const;

const say =
  (bytes: Buffer | string): Behaviour =>
  (socket) =>
    socket.write(bytes);
const end =
  (bytes: Buffer | string = ""): Behaviour =>
  (socket) =>
    socket.end(bytes);
const reset =
  (bytes: Buffer | string = ""): Behaviour =>
  (socket) =>
    // The reset must not overtake what was written.
    bytes ? socket.write(bytes, () => setTimeout(() => socket.resetAndDestroy(), 20)) : socket.resetAndDestroy();
const half = ok.subarray(0, ok.length - 10);
/** The same, with the word that the connection is not kept. */
const notKept = (bytes: Buffer | string) => String(bytes).replace("\r\n", "\r\nConnection: close\r\n");
const head = (status: number, ...lines: string[]) =>
  `HTTP/1.1 ${status} Said\r\n${lines.map((l) => `${l}\r\n`).join("")}\r\n`;
const chunked = head(200, "Content-Type: application/json", "Transfer-Encoding: chunked");

/** Sends the same again and again, as fast as it is read. */
function pour(socket: Socket, bytes: Buffer): void {
  const more = () => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on("drain", more);
  more();
}

/** Sends something every `ms`. */
function drip(socket: Socket, ms: number, next: () => string): void {
  const timer = setInterval(() => socket.write(next()), ms);
  socket.on("close", () => clearInterval(timer));
}

const connection: Record<string, Scenario> = {
  "nothing listens": { behave: say(ok), server: "none", ...unsent },
  "reset when connected": {
    behave: say(ok),
    server: { connected: (socket) => socket.resetAndDestroy() },
    ...lost,
    unseen: true,
  },
  "closed when connected": { behave: () => {}, server: { connected: (socket) => socket.end() }, ...lost },
  "reset before the answer": { behave: reset(), ...lost },
  "closed before the answer": { behave: end(), ...lost },
  "reset within the headers": { behave: reset(ok.subarray(0, 30)), ...lost },
  "closed within the headers": { behave: end(ok.subarray(0, 30)), ...lost },
  "reset within the body": { behave: reset(half), ...lost },
  "closed within the body": { behave: end(half), ...lost },
  "closed within a chunk": { behave: end(`${chunked}ff\r\n{"data":`), ...lost },
  "closed before the last chunk": { behave: end(`${chunked}2\r\n{}\r\n`), ...lost },
  "closed within the body, of a connection that is not kept": { behave: end(notKept(half)), ...lost },
  "reset within the body, of a connection that is not kept": { behave: reset(notKept(half)), ...lost },
  "closed within a chunk, of a connection that is not kept": {
    behave: end(notKept(`${chunked}ff\r\n{"data":`)),
    ...lost,
  },
  "well, of a connection that is not kept": { behave: end(notKept(ok)) },
  "reset once, then well": {
    behave: (socket, request, nth) => (nth === 1 ? reset() : say(ok))(socket, request, nth),
    ...lost,
  },
};

const time: Record<string, Scenario> = {
  "never answers": { behave: () => {}, ...late },
  "stops within the headers": { behave: say(ok.subarray(0, 30)), ...late },
  "stops within the body": { behave: say(half), ...late },
  "a header's letter at a time": {
    behave: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nX-Slow: ");
      drip(socket, 50, () => "x");
    },
    ...late,
  },
  "a trickle of blanks": {
    behave: (socket) => {
      socket.write(chunked);
      drip(socket, 50, () => "1\r\n \r\n");
    },
    ...late,
  },
  "still processing, for ever": { behave: (socket) => drip(socket, 50, () => head(102)), ...late },
  "slow, but in time": { behave: (socket) => setTimeout(() => socket.write(ok), 300) },
};

const protocol: Record<string, Scenario> = {
  "longer than it says": { behave: say(answer(200, body, { "Content-Length": "9" })), ...wrong, status: 200 },
  "two lengths": { behave: say(`${head(200, "Content-Length: 2", "Content-Length: 3")}{}`), ...wrong },
  "a length and chunks": { behave: say(`${head(200, "Content-Length: 2", "Transfer-Encoding: chunked")}{}`), ...wrong },
  "a bad chunk size": { behave: say(`${chunked}zz\r\n{}\r\n`), ...wrong },
  "not HTTP": { behave: say("SSH-2.0-OpenSSH_9.6\r\n"), ...wrong },
  "100 KB of one header": { behave: say(answer(200, body, { "X-Long": "x".repeat(100_000) })), ...wrong },
  "600 headers": {
    behave: say(
      answer(200, body, Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`X-Header-${i}`, "x".repeat(20)]))),
    ),
    ...wrong,
  },
  "100 that was not asked for": { behave: end(head(100)), ...lost },
  "101 that was not asked for": { behave: end(head(101, "Upgrade: x", "Connection: upgrade")), ...lost },
  "102 and 103 first": { behave: say(head(102) + head(103, "Link: </x>; rel=preload") + ok) },
  "HTTP/1.0 until the end": { behave: end(`HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n${body}`) },
  "in many chunks": {
    behave: say(
      `${chunked}${(body.match(/.{1,7}/g) ?? []).map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join("")}0\r\n\r\n`,
    ),
  },
  "in chunks": { behave: say(`${chunked}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`) },
};

const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const coded = (coding: string, bytes: Buffer) => say(answer(200, bytes, { "Content-Encoding": coding }));
const bomb = Buffer.alloc((64 << 20) + 1, " ");
const megabyte = Buffer.alloc(1 << 20, " ");

const bodies: Record<string, Scenario> = {
  "HTML with 200": { behave: say(answer(200, html, { "Content-Type": "text/html" })), ...wrong, status: 200 },
  "nothing with 200": { behave: say(answer(200)), ...wrong, status: 200, empty: true },
  "nothing with 204": { behave: say(head(204)), ...wrong, status: 204, empty: true },
  "204 that has a length": { behave: say(head(204, "Content-Length: 2")), ...wrong, status: 204, empty: true },
  "blanks with 200": { behave: say(answer(200, " \r\n")), ...wrong, status: 200, empty: true },
  "half of a JSON text": { behave: say(answer(200, body.slice(0, 20))), ...wrong, status: 200 },
  "two JSON texts": { behave: say(answer(200, body + body)), ...wrong, status: 200 },
  "NaN in JSON": { behave: say(answer(200, '{"data":NaN}')), ...wrong, status: 200 },
  "too deep": { behave: say(answer(200, deep(3000))), ...wrong, status: 200 },
  "too deep by one": { behave: say(answer(200, deep(65))), ...wrong, status: 200 },
  "as deep as allowed": { behave: say(answer(200, deep(64))), payload: JSON.parse(deep(64)) },
  "100 MB announced": {
    behave: (socket) => {
      socket.write(head(200, "Content-Length: 100000000"));
      pour(socket, megabyte);
    },
    ...wrong,
  },
  "an endless body": {
    behave: (socket) => {
      socket.write(head(200));
      pour(socket, megabyte);
    },
    ...wrong,
  },
  "endless chunks": {
    behave: (socket) => {
      socket.write(chunked);
      pour(socket, Buffer.concat([Buffer.from("100000\r\n"), megabyte, Buffer.from("\r\n")]));
    },
    ...wrong,
  },
  "a gzip bomb": { behave: coded("gzip", gzipSync(bomb, { level: 1 })), ...wrong },
  "a brotli bomb": {
    behave: coded("br", brotliCompressSync(bomb, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })),
    ...wrong,
  },
  "gzip that is none": { behave: coded("gzip", Buffer.from(body)), ...wrong },
  "gzip cut short": { behave: coded("gzip", gzipSync(body).subarray(0, 20)), ...wrong },
  "gzip twice": { behave: coded("gzip, gzip", gzipSync(gzipSync(body))), ...wrong },
  "a coding not asked for": { behave: coded("zstd", Buffer.from(body)), ...wrong },
  gzip: { behave: coded("gzip", gzipSync(body)) },
  brotli: { behave: coded("br", brotliCompressSync(Buffer.from(body))) },
  "a byte order mark": { behave: say(answer(200, `\ufeff${body}`)) },
  "no UTF-8": { behave: say(answer(200, Buffer.from('{"data":"\xff"}', "latin1"))), payload: { data: "\ufffd" } },
  "201 that says 200": { behave: say(answer(201, body)) },
  "JSON that says to be HTML": { behave: say(answer(200, body, { "Content-Type": "text/html" })) },
  "null with 200": { behave: say(answer(200, "null")), payload: null },
  "a number with 200": { behave: say(answer(200, "7")), payload: 7 },
  __proto__: {
    behave: say(answer(200, '{"data":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"id":7}}')),
    payload: { data: { id: 7 } },
  },
};

const redirects = (other: string): Record<string, Scenario> => ({
  "to the login page": { behave: say(answer(302, html, { Location: "/login" })), ...elsewhere, status: 302 },
  "to https": { behave: say(answer(301, "", { Location: "https://127.0.0.1/" })), ...elsewhere, status: 301 },
  ...Object.fromEntries(
    [301, 302, 303, 307, 308].map((status) => [
      `${status} to another origin`,
      { behave: say(answer(status, "", { Location: `${other}/api/v1/reports` })), ...elsewhere, status },
    ]),
  ),
  "to nowhere": { behave: say(answer(302)), ...elsewhere, status: 302 },
  "not modified": { behave: say(head(304)), ...elsewhere, status: 304 },
});

/** Each status that the service, or what is before it, gives, by what it means. */
const meanings: [statuses: number[], scenario: Omit<Scenario, "behave">][] = [
  [[401], { code: "SEO_UNAUTHORIZED" }],
  [[403], { code: "SEO_FORBIDDEN" }],
  [[404], { code: "SEO_NOT_FOUND" }],
  [[400, 402, 405, 409, 410, 413, 415, 419, 422, 451], { code: "SEO_REJECTED" }],
  [[408], { code: "SEO_REJECTED", transient: true, acted: true }],
  [[429], { code: "SEO_RATE_LIMITED", transient: true }],
  [[500, 502, 503, 504], { code: "SEO_SERVER", transient: true, acted: true }],
  [[501, 505, 520, 522, 524], { code: "SEO_SERVER", acted: true }],
];

const statuses = Object.fromEntries(
  meanings.flatMap(([all, scenario]) =>
    all.flatMap((status) => [
      [`${status} as JSON`, { behave: say(answer(status, '{"message":"Said so."}')), status, ...scenario }],
      [
        `${status} as HTML`,
        { behave: say(answer(status, html, { "Content-Type": "text/html" })), status, ...scenario },
      ],
    ]),
  ),
);

const limited = { code: "SEO_RATE_LIMITED", status: 429, transient: true } as const;
const maintained = { code: "SEO_SERVER", status: 503, transient: true } as const;
const asks =
  (status: number, after: () => Record<string, string>): Behaviour =>
  (socket) =>
    socket.write(answer(status, '{"message":"Too Many Attempts."}', after()));

const waits: Record<string, Scenario> = {
  "429 for no seconds": { behave: asks(429, () => ({ "Retry-After": "0" })), ...limited },
  "429 for a second": { behave: asks(429, () => ({ "Retry-After": "1" })), ...limited },
  "429 until a date": {
    behave: asks(429, () => ({ "Retry-After": new Date(Date.now() + 900).toUTCString() })),
    ...limited,
  },
  "429 until a past date": {
    behave: asks(429, () => ({ "Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT" })),
    ...limited,
  },
  "429 with a reset": {
    behave: asks(429, () => ({ "X-RateLimit-Reset": String(Math.floor(Date.now() / 1000)) })),
    ...limited,
  },
  "429 for nonsense": { behave: asks(429, () => ({ "Retry-After": "-5" })), ...limited },
  "429 for an hour": { behave: asks(429, () => ({ "Retry-After": "3600" })), code: "SEO_RATE_LIMITED", status: 429 },
  "503 for a second": { behave: asks(503, () => ({ "Retry-After": "1" })), ...maintained },
  "503 until a past date": {
    behave: asks(503, () => ({ "Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT" })),
    ...maintained,
  },
  "503 for an hour": { behave: asks(503, () => ({ "Retry-After": "3600" })), code: "SEO_SERVER", status: 503 },
};

const refused = { code: "SEO_NETWORK", unseen: true } as const;
const trusting = { tls: "trusting" };

const tls: Record<string, Scenario> = {
  "a CA that is not known": { behave: say(ok), server: { certificate: "cert" }, ...refused },
  "a CA that is": { behave: say(ok), server: { certificate: "cert" }, settings: trusting },
  "nothing said to TLS": {
    behave: () => {},
    server: { scheme: "https" },
    ...late,
    acted: false,
    unseen: true,
  },
  "http where TLS is asked for": {
    behave: () => {},
    server: { scheme: "https", connected: (socket) => socket.once("data", () => socket.end(answer(400))) },
    ...refused,
  },
  "TLS where http is asked for": {
    behave: () => {},
    server: { scheme: "http", certificate: "cert" },
    ...lost,
    unseen: true,
  },
  "a certificate for another name": {
    behave: say(ok),
    server: { certificate: "other-name" },
    settings: trusting,
    ...refused,
  },
  "a certificate that has expired": {
    behave: say(ok),
    server: { certificate: "expired" },
    settings: trusting,
    ...refused,
  },
};

/** What a proxy can respond to CONNECT in place of a tunnel. */
const noTunnels: Record<string, (socket: Socket) => void> = {
  "proxy closes": (socket) => socket.end(),
  "proxy resets": (socket) => socket.resetAndDestroy(),
  "proxy refuses": (socket) => socket.end("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"),
  "proxy does not support CONNECT": (socket) => socket.write("HTTP/1.1 501 What\r\nContent-Length: 0\r\n\r\n"),
  "proxy does not speak HTTP": (socket) => socket.end("220 mail ready\r\n"),
  "proxy wants a password": (socket) => socket.end("HTTP/1.1 407 Who\r\n\r\n"),
  "proxy cannot connect": (socket) => socket.end("HTTP/1.1 502 Bad\r\n\r\n"),
};
const secure = { server: { certificate: "cert" }, settings: trusting };
const proxies: Record<string, Scenario> = {
  "http through a proxy": { behave: say(ok), proxy: "works" },
  "https through a proxy": { behave: say(ok), proxy: "works", ...secure },
  "https through a proxy, CA not known": {
    behave: say(ok),
    proxy: "works",
    server: { certificate: "cert" },
    ...refused,
  },
  "lost behind a proxy": { behave: end(), proxy: "works", ...secure, ...lost },
  "refused behind a proxy": {
    behave: say(answer(503, "", { "Retry-After": "0" })),
    proxy: "works",
    ...maintained,
  },
  "http, proxy down": { behave: say(ok), proxy: "down", ...unsent },
  "https, proxy down": { behave: say(ok), proxy: "down", ...secure, ...unsent },
  "https, proxy never answers": {
    behave: say(ok),
    proxy: () => {},
    ...secure,
    ...late,
    settings: { ...trusting, ...late.settings },
    acted: false,
    unseen: true,
  },
  ...Object.fromEntries(
    Object.entries(noTunnels).map(([name, proxy]) => [
      `https, ${name}`,
      { behave: say(ok), proxy, ...secure, ...unsent } satisfies Scenario,
    ]),
  ),
};

/** All of them. Redirects to another origin lead to `other`. */
export const scenarios = (other: string): Record<string, Scenario> => ({
  ...connection,
  ...time,
  ...protocol,
  ...bodies,
  ...redirects(other),
  ...statuses,
  ...waits,
  ...tls,
  ...proxies,
});

import type { Socket } from "node:net";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Code } from "../../src/errors.js";
import { answer, type Behaviour, type ListenOptions } from "./faulty.js";

/** One behavior of a service, or of a server in front of it, and the outcome of a request. */
export interface Scenario {
  behave: Behaviour;
  /** Absent: the request succeeds. */
  code?: Code;
  /** A retry may succeed. */
  transient?: true;
  /** The request may have taken effect. */
  acted?: boolean;
  /** The HTTP status of the error. */
  status?: number;
  /** The payload on success, if it is not `fine`. */
  payload?: unknown;
  /** A success for DELETE only. */
  empty?: true;
  /** The requests do not reach the server. */
  unseen?: true;
  server?: ListenOptions | "none";
  /** Properties of the service node. */
  settings?: object;
  /** The state of the proxy that the requests go through, or how it rejects CONNECT. */
  proxy?: "works" | "down" | ((socket: Socket) => void);
}

export const fine = { data: { id: 7, url: "example.com", password: false }, status: 200 };
const body = JSON.stringify(fine);
/** A successful response in bytes. */
export const ok = answer(200, body);
const html = "<!doctype html><title>Log in</title>";
const asHtml = { "Content-Type": "text/html" };

const lost = { code: "SEO_NETWORK", transient: true, acted: true } as const;
const lostUnseen = { ...lost, unseen: true } as const;
const unsent = { code: "SEO_NETWORK", transient: true, unseen: true } as const;
const late = { code: "SEO_TIMEOUT", transient: true, acted: true, settings: { timeout: "5" } } as const;
const lateUnseen = { ...late, acted: false, unseen: true } as const;
const wrong = { code: "SEO_RESPONSE", acted: true } as const;
const elsewhere = { code: "SEO_RESPONSE" } as const;

function say(bytes: Buffer | string): Behaviour {
  return (socket) => socket.write(bytes);
}
function end(bytes: Buffer | string = ""): Behaviour {
  return (socket) => socket.end(bytes);
}
function reset(bytes: Buffer | string = ""): Behaviour {
  return (socket) =>
    // The reset must not overtake the bytes already written.
    bytes ? socket.write(bytes, () => setTimeout(() => socket.resetAndDestroy(), 20)) : socket.resetAndDestroy();
}
const half = ok.subarray(0, ok.length - 10);
/** The same response with `Connection: close`. */
const notKept = (bytes: Buffer | string) => String(bytes).replace("\r\n", "\r\nConnection: close\r\n");
const head = (status: number, ...lines: string[]) =>
  `HTTP/1.1 ${status} Said\r\n${lines.map((l) => `${l}\r\n`).join("")}\r\n`;
const chunked = head(200, "Content-Type: application/json", "Transfer-Encoding: chunked");

/** Sends `first`, then the same bytes repeatedly, as fast as the client reads them. */
function pour(first: string, bytes: Buffer): Behaviour {
  return (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(bytes));
    };
    socket.write(first);
    socket.on("drain", more);
    more();
  };
}

/** Sends `first`, then the same bytes every 50 ms. */
function drip(first: string, bytes: string): Behaviour {
  return (socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(bytes), 50);
    socket.on("close", () => clearInterval(timer));
  };
}

const connection: Record<string, Scenario> = {
  "connection refused": { behave: say(ok), server: "none", ...unsent },
  "reset on connect": { behave: say(ok), server: { connected: (socket) => socket.resetAndDestroy() }, ...lostUnseen },
  "closed on connect": { behave: () => {}, server: { connected: (socket) => socket.end() }, ...lost },
  "reset before the response": { behave: reset(), ...lost },
  "closed before the response": { behave: end(), ...lost },
  "reset within the headers": { behave: reset(ok.subarray(0, 30)), ...lost },
  "closed within the headers": { behave: end(ok.subarray(0, 30)), ...lost },
  "reset within the body": { behave: reset(half), ...lost },
  "closed within the body": { behave: end(half), ...lost },
  "closed within a chunk": { behave: end(`${chunked}ff\r\n{"data":`), ...lost },
  "closed before the last chunk": { behave: end(`${chunked}2\r\n{}\r\n`), ...lost },
  "closed within the body, Connection: close": { behave: end(notKept(half)), ...lost },
  "reset within the body, Connection: close": { behave: reset(notKept(half)), ...lost },
  "closed within a chunk, Connection: close": { behave: end(notKept(`${chunked}ff\r\n{"data":`)), ...lost },
  "success, Connection: close": { behave: end(notKept(ok)) },
  "reset once, then success": {
    behave: (socket, request, nth) => (nth === 1 ? reset() : say(ok))(socket, request, nth),
    ...lost,
  },
};

const time: Record<string, Scenario> = {
  "no response": { behave: () => {}, ...late },
  "stalls within the headers": { behave: say(ok.subarray(0, 30)), ...late },
  "stalls within the body": { behave: say(half), ...late },
  "header sent one character at a time": { behave: drip("HTTP/1.1 200 OK\r\nX-Slow: ", "x"), ...late },
  "endless body of spaces, sent slowly": { behave: drip(chunked, "1\r\n \r\n"), ...late },
  "endless 102 Processing": { behave: drip("", head(102)), ...late },
  "slow, but within the timeout": { behave: (socket) => setTimeout(() => socket.write(ok), 300) },
};

const protocol: Record<string, Scenario> = {
  "body longer than Content-Length": {
    behave: say(answer(200, body, { "Content-Length": "9" })),
    ...wrong,
    status: 200,
    transient: true,
  },
  "two Content-Length headers": { behave: say(`${head(200, "Content-Length: 2", "Content-Length: 3")}{}`), ...wrong },
  "Content-Length and chunked encoding": {
    behave: say(`${head(200, "Content-Length: 2", "Transfer-Encoding: chunked")}{}`),
    ...wrong,
  },
  "invalid chunk size": { behave: say(`${chunked}zz\r\n{}\r\n`), ...wrong },
  "not HTTP": { behave: say("SSH-2.0-OpenSSH_9.6\r\n"), ...wrong },
  "header of 100 KB": { behave: say(answer(200, body, { "X-Long": "x".repeat(100_000) })), ...wrong },
  "unrequested 100 Continue": { behave: end(head(100)), ...lost },
  "unrequested 101 Switching Protocols": { behave: end(head(101, "Upgrade: x", "Connection: upgrade")), ...lost },
  "several 100 Continue before the response": { behave: say(head(100) + head(103) + head(100, "X-A: b") + ok) },
  "102 and 103 before the response": { behave: say(head(102) + head(103, "Link: </x>; rel=preload") + ok) },
  "HTTP/1.0 response that ends with the connection": {
    behave: end(`HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n${body}`),
  },
  "many chunks": {
    behave: say(
      `${chunked}${(body.match(/.{1,7}/g) ?? []).map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join("")}0\r\n\r\n`,
    ),
  },
};

const coded = (coding: string, bytes: Buffer) => say(answer(200, bytes, { "Content-Encoding": coding }));
const bomb = Buffer.alloc((16 << 20) + 1, " ");
const megabyte = Buffer.alloc(1 << 20, " ");

const bodies: Record<string, Scenario> = {
  "200 with HTML": { behave: say(answer(200, html, asHtml)), ...wrong, status: 200 },
  "200 with an empty body": { behave: say(answer(200)), ...wrong, status: 200, empty: true },
  "204 without a body": { behave: say(head(204)), ...wrong, status: 204, empty: true },
  "204 with Content-Length": { behave: say(head(204, "Content-Length: 2")), ...wrong, status: 204, empty: true },
  "200 with only white space": { behave: say(answer(200, " \r\n")), ...wrong, status: 200, empty: true },
  "truncated JSON": { behave: say(answer(200, body.slice(0, 20))), ...wrong, status: 200, transient: true },
  "Content-Length of 100 MB": { behave: pour(head(200, "Content-Length: 100000000"), megabyte), ...wrong },
  "endless body": { behave: pour(head(200), megabyte), ...wrong },
  "endless chunks": { behave: pour(chunked, Buffer.from(`100000\r\n${megabyte}\r\n`)), ...wrong },
  "gzip bomb": { behave: coded("gzip", gzipSync(bomb, { level: 1 })), ...wrong },
  "brotli bomb": {
    behave: coded("br", brotliCompressSync(bomb, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })),
    ...wrong,
  },
  "invalid gzip": { behave: coded("gzip", Buffer.from(body)), ...wrong },
  "truncated gzip": { behave: coded("gzip", gzipSync(body).subarray(0, 20)), ...wrong },
  "gzip applied twice": { behave: coded("gzip, gzip", gzipSync(gzipSync(body))), ...wrong, status: 200 },
  "unrequested content encoding": { behave: coded("zstd", gzipSync(body)), ...wrong, status: 200 },
  "unknown content encoding of plain JSON": { behave: coded("utf-8", Buffer.from(body)) },
  "a million values": { behave: coded("gzip", gzipSync(`[${"1,".repeat(1e6)}1]`)), ...wrong, status: 200 },
  "integers that a number does not hold exactly": {
    behave: say(answer(200, '{"id":9007199254740993,"in":"9007199254740993","n":[-1E400,9007199254740991]}')),
    payload: { id: "9007199254740993", in: "9007199254740993", n: [Number.NEGATIVE_INFINITY, 9007199254740991] },
  },
  gzip: { behave: coded("gzip", gzipSync(body)) },
  brotli: { behave: coded("br", brotliCompressSync(Buffer.from(body))) },
  "byte order mark": { behave: say(answer(200, `\ufeff${body}`)) },
  "invalid UTF-8": { behave: say(answer(200, Buffer.from('{"data":"\xff"}', "latin1"))), payload: { data: "\ufffd" } },
  "201 with status 200 in the body": { behave: say(answer(201, body)) },
  "JSON with a Content-Type of HTML": { behave: say(answer(200, body, asHtml)) },
  "200 with null": { behave: say(answer(200, "null")), payload: null },
  "200 with a number": { behave: say(answer(200, "7")), payload: 7 },
};

const redirects = (other: string): Record<string, Scenario> => ({
  "302 to the login page": { behave: say(answer(302, html, { Location: "/login" })), ...elsewhere, status: 302 },
  "301 to https": { behave: say(answer(301, "", { Location: "https://127.0.0.1/" })), ...elsewhere, status: 301 },
  ...Object.fromEntries(
    [301, 302, 303, 307, 308].map((status) => [
      `${status} to another origin`,
      {
        behave: say(answer(status, "", { Location: `${other}/api/v1/reports` })),
        ...elsewhere,
        status,
        acted: status === 303,
      },
    ]),
  ),
  "302 without Location": { behave: say(answer(302)), ...elsewhere, status: 302 },
  "304 Not Modified": { behave: say(head(304)), ...elsewhere, status: 304 },
});

/** The statuses that the service, or a server in front of it, returns, by their meaning. */
const meanings: [statuses: number[], scenario: Omit<Scenario, "behave">][] = [
  [[401], { code: "SEO_UNAUTHORIZED" }],
  [[403], { code: "SEO_FORBIDDEN" }],
  [[404], { code: "SEO_NOT_FOUND" }],
  [[400, 402, 405, 409, 410, 413, 415, 419, 422, 451], { code: "SEO_REJECTED" }],
  [[408], { code: "SEO_REJECTED", transient: true, acted: true }],
  [[429], { code: "SEO_RATE_LIMITED", transient: true }],
  [[500, 502, 503, 504, 520, 522, 524, 530], { code: "SEO_SERVER", transient: true, acted: true }],
  [[501, 505], { code: "SEO_SERVER", acted: true }],
];

const statuses = Object.fromEntries(
  meanings.flatMap(([all, scenario]) =>
    all.flatMap((status) => [
      [`${status} with JSON`, { behave: say(answer(status, '{"message":"Said so."}')), status, ...scenario }],
      [`${status} with HTML`, { behave: say(answer(status, html, asHtml)), status, ...scenario }],
    ]),
  ),
);

const limited = { code: "SEO_RATE_LIMITED", status: 429, transient: true } as const;
const maintained = { code: "SEO_SERVER", status: 503, transient: true } as const;
const asks = (status: number, after: string) =>
  say(answer(status, '{"message":"Too Many Attempts."}', { "Retry-After": after }));

const waits: Record<string, Scenario> = {
  "429, Retry-After 0": { behave: asks(429, "0"), ...limited },
  "429, Retry-After 1": { behave: asks(429, "1"), ...limited },
  "429, Retry-After 3600": { behave: asks(429, "3600"), code: "SEO_RATE_LIMITED", status: 429 },
  "503, Retry-After 1": { behave: asks(503, "1"), ...maintained },
  "503, Retry-After 3600": { behave: asks(503, "3600"), code: "SEO_SERVER", status: 503 },
};

const refused = { code: "SEO_NETWORK", unseen: true } as const;
const trusting = { tls: "trusting" };
const cert = { certificate: "cert" };

const tls: Record<string, Scenario> = {
  "TLS, unknown certificate authority": { behave: say(ok), server: cert, ...refused },
  "TLS, 100 Continue": { behave: say(head(100) + ok), server: cert, settings: trusting },
  "TLS, trusted certificate authority": { behave: say(ok), server: cert, settings: trusting },
  "TLS, handshake never completes": { behave: () => {}, server: { scheme: "https" }, ...lateUnseen },
  "TLS, server speaks plain HTTP": {
    behave: () => {},
    server: { scheme: "https", connected: (socket) => socket.once("data", () => socket.end(answer(400))) },
    ...refused,
  },
  "plain HTTP, server speaks TLS": { behave: () => {}, server: { scheme: "http", certificate: "cert" }, ...lostUnseen },
  "TLS, certificate for another host name": {
    behave: say(ok),
    server: { certificate: "other-name" },
    settings: trusting,
    ...refused,
  },
  "TLS, expired certificate": { behave: say(ok), server: { certificate: "expired" }, settings: trusting, ...refused },
};

/** The responses of a proxy to CONNECT, in place of a tunnel. */
const noTunnels: Record<string, (socket: Socket) => void> = {
  "proxy closes": (socket) => socket.end(),
  "proxy resets": (socket) => socket.resetAndDestroy(),
  "proxy refuses": (socket) => socket.end("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"),
  "proxy does not support CONNECT": (socket) => socket.write("HTTP/1.1 501 What\r\nContent-Length: 0\r\n\r\n"),
  "proxy does not speak HTTP": (socket) => socket.end("220 mail ready\r\n"),
  "proxy wants a password": (socket) => socket.end("HTTP/1.1 407 Who\r\n\r\n"),
  "proxy cannot connect": (socket) => socket.end("HTTP/1.1 502 Bad\r\n\r\n"),
};
const secure = { server: cert, settings: trusting };
const proxies: Record<string, Scenario> = {
  "http through a proxy": { behave: say(ok), proxy: "works" },
  "https through a proxy": { behave: say(ok), proxy: "works", ...secure },
  "https through a proxy, 100 Continue": { behave: say(head(100) + ok), proxy: "works", ...secure },
  "https through a proxy, unknown certificate authority": { behave: say(ok), proxy: "works", server: cert, ...refused },
  "https through a proxy, connection lost": { behave: end(), proxy: "works", ...secure, ...lost },
  "http through a proxy without CONNECT, 503": {
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
    ...lateUnseen,
    settings: { ...trusting, ...late.settings },
  },
  ...Object.fromEntries(
    Object.entries(noTunnels).map(([name, proxy]) => [
      `https, ${name}`,
      { behave: say(ok), proxy, ...secure, ...unsent } satisfies Scenario,
    ]),
  ),
};

/** All scenarios. Redirects to another origin lead to `other`. */
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

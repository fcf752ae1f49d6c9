import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { type LocalServer, openLocally } from "./local.js";

/** A request as the server received it. */
export interface Received {
  method: string;
  path: string;
  /** The request line and headers. */
  head: string;
  body: string;
}

/** How a server reacts to a request; `nth` counts identical requests from 1. */
export type Behaviour = (socket: Socket, request: Received, nth: number) => void;

export interface ListenOptions {
  /** The name of a certificate in test/support/tls. Absent: no TLS. */
  certificate?: string;
  /** The scheme of the server's URL, if it differs from the server's own. */
  scheme?: "http" | "https";
  /** Called for each connection before it is read. */
  connected?: (socket: Socket) => void;
}

export interface FaultyServer extends LocalServer {
  requests: Received[];
  /** The number of accepted connections. */
  connections: number;
}

/** A test certificate, issued by ca.pem and valid until 2120 (except expired.pem). */
export const tlsFile = (name: string) =>
  readFileSync(new URL(`../../../test/support/tls/${name}.pem`, import.meta.url), "utf8");

/** Identifies a request within one test. */
export const signature = ({ method, path, body = "" }: { method: string; path: string; body?: string | undefined }) =>
  `${method} ${path} ${body}`;

/** A response in bytes. */
export function answer(status: number, body: string | Buffer = "", headers: Record<string, string> = {}): Buffer {
  const all = { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} Said\r\n${lines.join("")}\r\n`), Buffer.from(body)]);
}

/** Splits a client's bytes into requests, each complete with its body. */
function parser(received: (request: Received) => void) {
  let text = "";
  return (chunk: Buffer) => {
    text += chunk.toString("latin1");
    for (;;) {
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = text.slice(0, end);
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      const rest = text.slice(end + 4);
      if (rest.length < length) return;
      text = rest.slice(length);
      const [method = "", path = ""] = head.split(" ");
      received({ method, path, head, body: rest.slice(0, length) });
    }
  };
}

/** A TCP server that reads requests and leaves the response to `behave`. */
export async function listen(behave: Behaviour, options: ListenOptions = {}): Promise<FaultyServer> {
  const { certificate, scheme = certificate ? "https" : "http", connected } = options;
  const counts = new Map<string, number>();
  const requests: Received[] = [];
  const accept = (socket: Socket) => {
    faulty.connections++;
    socket.on("error", () => {});
    connected?.(socket);
    socket.on(
      "data",
      parser((request) => {
        const nth = (counts.get(signature(request)) ?? 0) + 1;
        counts.set(signature(request), nth);
        requests.push(request);
        behave(socket, request, nth);
      }),
    );
  };
  const server = certificate
    ? createTlsServer({ key: tlsFile("key"), cert: tlsFile(certificate) }, accept).on("tlsClientError", () => {})
    : createServer(accept);
  const local = await openLocally(server);
  const faulty: FaultyServer = { ...local, url: local.url.replace("http:", `${scheme}:`), requests, connections: 0 };
  return faulty;
}

/** An address where nothing listens; a port just closed might soon belong to another server. */
export const deadUrl = "http://127.0.0.1:1";

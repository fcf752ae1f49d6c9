import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter } from "./limit.js";
import { startLive } from "./live.js";
import { createReports, type Reports } from "./reports.js";
import { answerTo } from "./request.js";
import type { Answer } from "./rules.js";

export type SandboxOptions = {
  port?: number;
  apiKey?: string;
  /** How many reports to begin with. */
  reports?: number;
  /** Let reports change by themselves, every `liveInterval` ms. */
  live?: boolean;
  liveInterval?: number;
  now?: () => number;
  /** Milliseconds between acting and answering. */
  latency?: number | ((request: { method: string; path: string }) => number);
  /** Requests a minute; what is above is refused with 429. Without it nothing is. */
  rateLimit?: number;
};

/** What was asked and answered; `query` as it was sent, without the question mark. */
type SeenRequest = { method: string; path: string; query: string; status: number };

export type Sandbox = {
  url: string;
  port: number;
  apiKey: string;
  reports: Reports;
  /** The latest requests, oldest first; a request is here before it is answered. */
  requests: SeenRequest[];
  close: () => Promise<void>;
};

const HOST = "127.0.0.1";
const REMEMBERED_REQUESTS = 10_000;

/** Starts a stand-in of the SEO reporting service on this machine; rejects with code EADDRINUSE if the port is taken. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { apiKey = "sandbox-key", latency = 0 } = options;
  const reports = createReports(options.reports ?? 36, options.now);
  const limiter = createLimiter(options.rateLimit);
  const requests: SeenRequest[] = [];

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "", ...query] = (request.url ?? "").split("?");
    const { method = "", headers } = request;
    const asked = { method, path, query: query.join("?"), headers, body: await text(request) };
    const limit = limiter();
    const answer = limit.refused ?? answerTo(asked, { url, apiKey, reports });
    requests.push({ method, path, query: asked.query, status: answer.status });
    if (requests.length > REMEMBERED_REQUESTS) requests.shift();
    const wait = typeof latency === "function" ? latency({ method, path }) : latency;
    if (wait > 0) await sleep(wait, undefined, { ref: false });
    send(response, { ...answer, headers: { ...limit.headers, ...answer.headers } });
  }

  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => {
      // A client that left needs no answer; anything else is a mistake of the sandbox's own.
      if (!response.destroyed) send(response, { status: 500, body: { message: String(error) } });
    });
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") error.message = `Port ${options.port} on ${HOST} is taken.`;
      reject(error);
    });
    server.listen(options.port ?? 0, HOST, () => resolve((server.address() as AddressInfo).port));
  });
  const url = `http://${HOST}:${port}`;
  const stopLive = options.live ? startLive(reports, options.liveInterval ?? 5000) : () => {};

  function close(): Promise<void> {
    stopLive();
    return new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  return { url, port, apiKey, reports, requests, close };
}

function send(response: ServerResponse, { status, body, headers }: Answer): void {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

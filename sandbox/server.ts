import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { createFaults, createLimiter, type Timed } from "./faults.js";
import { startLive } from "./live.js";
import { siteFiles } from "./pages.js";
import { createReports, type Reports } from "./reports.js";
import type { Reply } from "./response.js";
import { respond } from "./routes.js";

export type SandboxOptions = {
  port?: number;
  apiKey?: string;
  /** Number of reports at the start. */
  reports?: number;
  /** The last ID of an earlier sandbox: no report gets one of its IDs. */
  lastId?: number;
  /** Change reports every `liveInterval` ms. */
  live?: boolean;
  liveInterval?: number;
  now?: () => number;
  /** Milliseconds between taking effect and responding. */
  latency?: number | ((request: Timed) => number | Promise<number>);
  /** Requests per minute; further ones are rejected with 429. Without it, none is. */
  rateLimit?: number;
  /** Percentage of requests and of pages that fail. */
  fail?: number;
};

/** `query` is as it was sent, without the question mark. `status` is 0 if the connection was closed instead. */
type SeenRequest = { method: string; path: string; query: string; status: number };

export type Sandbox = {
  url: string;
  port: number;
  apiKey: string;
  reports: Reports;
  /** The latest API requests, oldest first; a request is added before its response is sent. */
  requests: SeenRequest[];
  close: () => Promise<void>;
};

const HOST = "127.0.0.1";
const MAX_SEEN_REQUESTS = 10_000;

/** Starts a local stand-in for the SEO reporting service; rejects with code EADDRINUSE if the port is taken. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { apiKey = "sandbox-key", latency = 0 } = options;
  const reports = createReports(options.reports ?? 36, options.now, options.lastId);
  const limit = createLimiter(options.rateLimit);
  const { requestFault, pageError } = createFaults(options.fail ?? 0);
  const requests: SeenRequest[] = [];

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "", ...rest] = (request.url ?? "").split("?");
    const { method = "", headers } = request;
    const query = rest.join("?");
    const body = await text(request);
    const file = method === "GET" ? siteFiles.get(path) : undefined;
    if (file) return send(response, { status: 200, body: file.content, headers: { "Content-Type": file.type } });

    const { rejection, headers: limitHeaders } = limit();
    const perform = () => respond({ method, path, query, headers, body }, { url, apiKey, reports, pageError });
    const reply = rejection ?? requestFault(`${method} ${path}?${query} ${body}`)(perform);
    requests.push({ method, path, query, status: reply?.status ?? 0 });
    if (requests.length > MAX_SEEN_REQUESTS) requests.shift();
    const wait = typeof latency === "function" ? await latency({ method, path, body }) : latency;
    if (wait > 0) await sleep(wait, undefined, { ref: false });
    if (reply) send(response, { ...reply, headers: { ...limitHeaders, ...reply.headers } });
    else response.socket?.resetAndDestroy();
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      // If the client is gone, no response is needed; anything else is an error in the sandbox itself.
      if (!response.destroyed) send(response, { status: 500, body: { message: String(error) } });
    });
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.once("error", reject);
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

function send(response: ServerResponse, { status, body, headers }: Reply): void {
  const html = typeof body === "string";
  response.writeHead(status, { "Content-Type": html ? "text/html" : "application/json", ...headers });
  response.end(html ? body : JSON.stringify(body));
}

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { hash } from "../../../sandbox/pages.js";

/**
 * A service with faults, in its own process. Each request has the number of its message: a store in its URL, a list in
 * its search. The number and the count of requests with it determine the fault. Requests without a number look for reports.
 * With the argument `loses`, every second store whose response is lost has no effect.
 */
const loses = process.argv[2] === "loses";
const SLOW = 100;
/** Longer than the client's timeout. */
const LATE = 3000;

type Respond = (response: ServerResponse, body: string) => unknown;
/** `share` is of 10,000 requests. `rejected`: the response says that the request did not take effect. */
type Fault = { share: number; rejected?: true; respond: Respond };

const json =
  (status: number, body: object, headers: Record<string, string> = {}): Respond =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
const html =
  (status: number, body: string): Respond =>
  (response) =>
    response.writeHead(status, { "content-type": "text/html" }).end(body);
const sound: Respond = (response, body) => response.writeHead(200, { "content-type": "application/json" }).end(body);
const after =
  (ms: number): Respond =>
  async (response, body) => {
    await setTimeout(ms);
    sound(response, body);
  };
async function breakOff(response: ServerResponse, body: string): Promise<void> {
  response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
  response.write(body.slice(0, 20));
  await setTimeout(5);
  response.socket?.resetAndDestroy();
}

const faults: Record<string, Fault> = {
  "500": { share: 100, respond: json(500, { message: "Server Error", status: 500 }) },
  "502": { share: 100, respond: html(502, "<h1>Bad Gateway</h1>") },
  "503, Retry-After: 0": { share: 100, rejected: true, respond: json(503, { status: 503 }, { "retry-after": "0" }) },
  "422": { share: 100, rejected: true, respond: json(422, { message: "Invalid.", errors: { url: ["Invalid."] } }) },
  "reset before the response": { share: 100, respond: ({ socket }) => socket?.resetAndDestroy() },
  "reset within the response": { share: 100, respond: breakOff },
  HTML: { share: 100, respond: html(200, "<p>Hi</p>") },
  slow: { share: 100, respond: after(SLOW) },
  "after the timeout": { share: 3, respond: after(LATE) },
};

function faultOf(message: number, nth: number): [name: string, fault: Fault] | undefined {
  let left = hash(`${message} ${nth}`) % 10_000;
  return Object.entries(faults).find(([, { share }]) => {
    left -= share;
    return left < 0;
  });
}

export interface Seen {
  requests: number;
  /** Requests by fault. */
  faults: Record<string, number>;
  /** By message, how often its store took effect. */
  stores: number[];
  /** Stores whose response was lost, and requests that look for reports. */
  lost: number;
  looks: number;
}

const seen: Seen = { requests: 0, faults: {}, stores: [], lost: 0, looks: 0 };
const counts: Record<number, number> = {};

/** The messages whose stores took effect: a report's ID is its place, from 1. */
const reports: number[] = [];
const reportOf = (id: number, message: number) => ({
  id,
  url: `example.com/${message}`,
  score: message % 101,
  created_at: "2026-01-01T00:00:00.000000Z",
});

/** The newest reports, or one of them. */
function look(path: string, query: URLSearchParams): object {
  const id = Number(path.split("/").at(-1));
  if (id > 0) return { data: reportOf(id, reports[id - 1] ?? 0) };
  const [size, page] = [Number(query.get("per_page")), Number(query.get("page") ?? 1)];
  const end = Math.max(0, reports.length - (page - 1) * size);
  const first = Math.max(0, end - size);
  const data = reports.slice(first, end).map((message, i) => reportOf(first + i + 1, message));
  const meta = { current_page: page, last_page: Math.ceil(reports.length / size), total: reports.length };
  return { data: data.reverse(), meta };
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const isStore = request.method === "POST";
  const { pathname, searchParams } = new URL(String(request.url), "http://host");
  const fields = isStore ? new URLSearchParams(await text(request)) : searchParams;
  const number = fields
    .get(isStore ? "url" : "search")
    ?.split("/")
    .at(-1);
  const message = Number(number ?? -1);
  const nth = (counts[message] ?? 0) + 1;
  counts[message] = nth;
  seen.requests++;
  if (number === undefined) seen.looks++;
  const [name, fault] = faultOf(message, nth) ?? [];
  if (name !== undefined) seen.faults[name] = (seen.faults[name] ?? 0) + 1;
  const isLost = isStore && fault !== undefined && !fault.rejected && name !== "slow";
  if (isLost) seen.lost++;
  if (isStore && !fault?.rejected && !(loses && isLost && hash(`lost ${message} ${nth}`) % 2)) {
    reports.push(message);
    seen.stores[message] = (seen.stores[message] ?? 0) + 1;
  }
  const record = reportOf(isStore ? reports.length : 1, message);
  const body = number === undefined ? look(pathname, fields) : { data: isStore ? record : [record], status: 200 };
  await (fault?.respond ?? sound)(response, JSON.stringify(body));
}

const server = createServer((request, response) => {
  serve(request, response).catch(() => response.destroy());
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("message", () => process.send?.(seen));
process.on("disconnect", () => process.exit());

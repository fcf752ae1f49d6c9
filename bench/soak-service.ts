import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";

/**
 * The faulty service of the soak, in a process of its own. Each request carries the number of its message: a store in its
 * URL, a list in its search. Which fault a request meets follows from that number and from how often it has come.
 */
const SLOW = 100;
/** Longer than the client's time-out. */
const LATE = 3000;

type Answer = (response: ServerResponse, body: string) => unknown;

interface Fault {
  /** Of 10 000 requests. */
  share: number;
  /** The service says that it has not done what was asked. */
  refused?: true;
  answer: Answer;
}

const json =
  (status: number, said: object, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(said));

const sound: Answer = (response, body) => response.writeHead(200, { "content-type": "application/json" }).end(body);

const faults: Record<string, Fault> = {
  "500": { share: 100, answer: json(500, { message: "Server Error", status: 500 }) },
  "502": { share: 100, answer: (response) => response.writeHead(502).end("<h1>Bad Gateway</h1>") },
  "503, Retry-After: 0": { share: 100, refused: true, answer: json(503, { status: 503 }, { "retry-after": "0" }) },
  "422": { share: 100, refused: true, answer: json(422, { message: "Not so.", errors: { url: ["Not so."] } }) },
  "reset before the response": { share: 100, answer: ({ socket }) => socket?.resetAndDestroy() },
  "reset within the response": {
    share: 100,
    async answer(response, body) {
      response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
      response.write(body.slice(0, 20));
      await setTimeout(5);
      response.socket?.resetAndDestroy();
    },
  },
  HTML: { share: 100, answer: (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>Hi</p>") },
  slow: {
    share: 100,
    answer: async (response, body) => {
      await setTimeout(SLOW);
      sound(response, body);
    },
  },
  "after the timeout": {
    share: 3,
    answer: async (response, body) => {
      await setTimeout(LATE);
      sound(response, body);
    },
  },
};

/** Evenly spread below 10 000, and the same for the same two numbers. */
function draw(message: number, nth: number): number {
  let hash = Math.imul(message + 1, 0x9e3779b1) ^ Math.imul(nth, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39);
  return ((hash ^ (hash >>> 15)) >>> 0) % 10_000;
}

function faultOf(message: number, nth: number): [name: string, fault: Fault] | undefined {
  let left = draw(message, nth);
  return Object.entries(faults).find(([, { share }]) => {
    left -= share;
    return left < 0;
  });
}

/** What the service has seen. */
export interface Seen {
  requests: number;
  /** By fault, how many requests met it. */
  faults: Record<string, number>;
  /** By message, how often its store was carried out, or may have been for all that the client can know. */
  stores: number[];
}

const seen: Seen = { requests: 0, faults: {}, stores: [] };
const came: number[] = [];

async function read(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const store = request.method === "POST";
  const sent = store
    ? new URLSearchParams(await read(request))
    : new URL(String(request.url), "http://host").searchParams;
  const message = Number(
    sent
      .get(store ? "url" : "search")
      ?.split("/")
      .at(-1),
  );
  const nth = (came[message] ?? 0) + 1;
  came[message] = nth;
  seen.requests++;
  const [name, fault] = faultOf(message, nth) ?? [];
  if (name !== undefined) seen.faults[name] = (seen.faults[name] ?? 0) + 1;
  if (store && !fault?.refused) seen.stores[message] = (seen.stores[message] ?? 0) + 1;
  const record = { id: message, url: `example.com/${message}`, score: message % 101 };
  const body = JSON.stringify({ data: store ? record : [record], status: 200 });
  await (fault?.answer ?? sound)(response, body);
}

const server = createServer((request, response) => {
  serve(request, response).catch(() => response.destroy());
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("message", () => process.send?.(seen));
process.on("disconnect", () => process.exit());

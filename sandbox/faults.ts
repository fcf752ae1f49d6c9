/** Imperfections of the sandbox: response times, a rate limit, and failures. */
import { hash } from "./pages.js";
import type { Reply } from "./response.js";

const WINDOW = 60_000;
const ADVERTISED_LIMIT = 6000;

/** A request as a function of `latency` sees it. */
export type Timed = { method: string; path: string; body: string };

/** A response time between `from` and `to` ms; `store` applies to requests that create or regenerate a report. */
export function createLatency(other: [from: number, to: number], store = other): (request: Timed) => number {
  let count = 0;
  return ({ method, body }) => {
    const [from, to] = method === "POST" || /\bupdate=1\b/.test(body) ? store : other;
    return from + (hash(`latency ${count++}`) % (to - from + 1));
  };
}

/** Counts requests in windows of a minute. Without `rateLimit` it advertises a limit and never enforces it. */
export function createLimiter(rateLimit?: number) {
  const limit = rateLimit ?? ADVERTISED_LIMIT;
  let start = 0;
  let count = 0;

  return (now = Date.now()): { headers: Record<string, string>; rejection?: Reply } => {
    if (now - start >= WINDOW) [start, count] = [now, 0];
    count++;
    // A limit that is not enforced never shows 0, because a careful client would wait for nothing.
    const remaining = Math.max(rateLimit === undefined ? 1 : 0, limit - count);
    const headers = { "X-RateLimit-Limit": String(limit), "X-RateLimit-Remaining": String(remaining) };
    if (rateLimit === undefined || count <= limit) return { headers };
    const end = start + WINDOW;
    const wait = {
      "Retry-After": String(Math.ceil((end - now) / 1000)),
      "X-RateLimit-Reset": String(Math.ceil(end / 1000)),
    };
    return { headers, rejection: { status: 429, body: { message: "Too Many Attempts." }, headers: wait } };
  };
}

/** Responds in place of `perform`, before or after it takes effect; `undefined` closes the connection. */
type Fault = (perform: () => Reply) => Reply | undefined;

const REQUEST_FAULTS: readonly Fault[] = [
  () => ({ status: 429, body: { message: "Too Many Attempts." }, headers: { "Retry-After": "2" } }),
  () => ({ status: 503, body: { message: "Service Unavailable" }, headers: { "Retry-After": "1" } }),
  () => ({ status: 500, body: { message: "Server Error" } }),
  (perform) => {
    perform();
    return { status: 502, body: "<h1>502 Bad Gateway</h1>\n" };
  },
  (perform) => {
    perform();
    return undefined;
  },
];
const NO_FAULT: Fault = (perform) => perform();
const PAGE_ERROR: Reply = { status: 500, body: { message: "The page could not be fetched: connection timed out." } };

/**
 * Fails `percent` of the requests and of the pages. Nothing is random: the n-th identical request fails in the same way
 * in every run, and so does every request to create or regenerate the report of the same page.
 */
export function createFaults(percent: number) {
  const seen = new Map<string, number>();

  function requestFault(request: string): Fault {
    if (percent === 0) return NO_FAULT;
    const nth = (seen.get(request) ?? 0) + 1;
    seen.set(request, nth);
    const chance = hash(`fail ${request} ${nth}`);
    const fault = chance % 100 < percent ? REQUEST_FAULTS[Math.floor(chance / 100) % REQUEST_FAULTS.length] : undefined;
    return fault ?? NO_FAULT;
  }

  const pageError = (url: string): Reply | undefined => (hash(`load ${url}`) % 100 < percent ? PAGE_ERROR : undefined);

  return { requestFault, pageError };
}

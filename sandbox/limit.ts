import type { Answer } from "./rules.js";

const WINDOW = 60_000;
const ADVERTISED = 6000;

/** Counts requests in windows of a minute. Without `rateLimit` it advertises a limit and never enforces it. */
export function createLimiter(rateLimit?: number) {
  const limit = rateLimit ?? ADVERTISED;
  let start = 0;
  let count = 0;

  return (now = Date.now()): { headers: Record<string, string>; refused?: Answer } => {
    if (now - start >= WINDOW) [start, count] = [now, 0];
    count++;
    // A limit that is not enforced never says 0: a careful client would wait for nothing.
    const remaining = Math.max(rateLimit === undefined ? 1 : 0, limit - count);
    const headers = { "X-RateLimit-Limit": String(limit), "X-RateLimit-Remaining": String(remaining) };
    if (rateLimit === undefined || count <= limit) return { headers };
    const end = start + WINDOW;
    const wait = {
      "Retry-After": String(Math.ceil((end - now) / 1000)),
      "X-RateLimit-Reset": String(Math.ceil(end / 1000)),
    };
    return { headers, refused: { status: 429, body: { message: "Too Many Attempts." }, headers: wait } };
  };
}

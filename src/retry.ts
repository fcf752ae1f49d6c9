import type { SeoError } from "./errors.js";

/** The longest wait, in seconds, that the service can impose on a request (docs/decisions/long-waits.md). */
export const LONGEST_WAIT = 300;

const FIRST_BACKOFF = 500;
const LONGEST_BACKOFF = 10_000;

/** What follows a failed attempt. */
export interface Decision {
  /** Milliseconds for which the whole service pauses; Infinity is too long to wait for, so everything that waits fails. */
  pause?: number;
  /** Milliseconds until the next attempt; absent if there must be none. */
  retryIn?: number;
}

/** Full jitter: up to half a second after the first attempt, and up to twice as long after each further one. */
const backoff = (attempts: number, random: () => number) =>
  random() * Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (attempts - 1));

/** Decides whether and when to retry after `attempts`, of which `retries` can follow the first. */
export function decide(
  { code, details: { transient, uncertain, retryAfter } }: Pick<SeoError, "code" | "details">,
  { attempts, retries, once }: { attempts: number; retries: number; once: boolean },
  random = Math.random,
): Decision {
  if (retryAfter !== undefined && retryAfter > LONGEST_WAIT) return { pause: Number.POSITIVE_INFINITY };
  // A wait of zero, as of a time that has passed, is no information.
  const delay = retryAfter ? retryAfter * 1000 : backoff(attempts, random);
  // A limit is the account's: the pause holds for everybody, so the request itself need not wait besides.
  const pauses = retryAfter !== undefined || code === "SEO_RATE_LIMITED";
  const safe = transient === true && !(once && uncertain);
  return {
    ...(pauses && { pause: delay }),
    ...(safe && attempts <= retries && { retryIn: pauses ? 0 : delay }),
  };
}

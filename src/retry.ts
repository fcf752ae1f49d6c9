import type { SeoError } from "./errors.js";

/** The longest wait, in seconds, that the service can impose on a request (docs/decisions/long-waits.md). */
export const LONGEST_WAIT = 300;

const FIRST_BACKOFF = 500;
const LONGEST_BACKOFF = 10_000;

/** The error of a failed attempt. */
type Failed = Pick<SeoError, "code" | "details">;

/** Full jitter: up to half a second after the first attempt, and up to twice as long after each further one. */
const backoff = (attempts: number, random: () => number) =>
  random() * Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (attempts - 1));

/** A limit is the account's: the whole client pauses. */
const isLimit = ({ code, details: { retryAfter } }: Failed) => retryAfter !== undefined || code === "SEO_RATE_LIMITED";

/**
 * Milliseconds for which the whole client pauses after a failed attempt, if it does. Infinity is too long to wait for, so
 * everything that waits fails.
 */
export function pauseAfter(error: Failed, attempts: number, random = Math.random): number | undefined {
  const { retryAfter = 0 } = error.details;
  if (retryAfter > LONGEST_WAIT) return Number.POSITIVE_INFINITY;
  // A wait of zero, as of a time that has passed, is no information.
  if (!isLimit(error)) return undefined;
  return retryAfter * 1000 || backoff(attempts, random);
}

/** Milliseconds until the next attempt, after `attempts`, of which `retries` can follow the first; undefined if there must be none. */
export function retryIn(
  error: Failed,
  { attempts, retries, once }: { attempts: number; retries: number; once: boolean },
  random = Math.random,
): number | undefined {
  const { transient, uncertain, retryAfter = 0 } = error.details;
  const isSafe = transient === true && !(once && uncertain);
  if (!isSafe || attempts > retries || retryAfter > LONGEST_WAIT) return undefined;
  // A pause holds for everybody, so the request itself need not wait besides.
  return isLimit(error) ? 0 : backoff(attempts, random);
}

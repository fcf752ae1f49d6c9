import { SeoError } from "../errors.js";

/** Seconds that a message waits at most because the service asked for it (docs/decisions/long-waits.md). */
export const LONGEST_WAIT = 300;

/** A secret of a few letters is hidden only where it stands alone, or every text would be full of holes. */
const SHORT = 6;

const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const pattern = (secret: string) =>
  secret.length < SHORT ? `(?<![\\p{L}\\p{N}])${literal(secret)}(?![\\p{L}\\p{N}])` : literal(secret);

/** How a text may stand in an answer that echoes it: as it is, in a URL, in a form, and in JSON, also in PHP's. */
function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const form = new URLSearchParams([["", secret]]).toString().slice(1);
  return [...new Set([secret, encodeURIComponent(secret), form, json, json.replaceAll("/", "\\/")])];
}

/** A copy of a JSON value in which no string, and no property's name, holds one of the secrets. */
export function redact<T>(value: T, secrets: string[]): T {
  const texts = secrets.filter((secret) => secret !== "").flatMap(formsOf);
  if (texts.length === 0) return value;
  const found = new RegExp(texts.map(pattern).join("|"), "gu");
  const clean = (part: unknown): unknown => {
    if (typeof part === "string") return part.replace(found, "***");
    if (Array.isArray(part)) return part.map(clean);
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [clean(name), clean(inner)]));
  };
  return clean(value) as T;
}

/** As much of a text of the service's as helps to tell whose it is. */
const MAX_TEXT = 1000;

/**
 * What a flow may see of a failure: without the secrets, its texts cut to 1 000 characters, and with a word on a wait that is
 * too long to be kept.
 */
export function forFlows({ code, message, details }: SeoError, secrets: string[]): SeoError {
  const { retryAfter = 0 } = details;
  const wait =
    retryAfter > LONGEST_WAIT ? ` It asked to wait ${retryAfter} s, more than the limit of ${LONGEST_WAIT} s.` : "";
  // Cut last: of a secret that is cut in two, the half could not be found.
  const left = redact({ message, details }, secrets);
  const { body } = left.details;
  return new SeoError(code, left.message.slice(0, MAX_TEXT) + wait, {
    ...left.details,
    ...(typeof body === "string" && { body: body.slice(0, MAX_TEXT) }),
  });
}

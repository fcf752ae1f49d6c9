import { SeoError } from "./errors.js";

/** Seconds that a message waits at most because the service asked for it (docs/decisions/long-waits.md). */
export const LONGEST_WAIT = 300;

/** A secret of a few letters is hidden only where it stands alone, or every text would be full of holes. */
const SHORT = 6;

const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const pattern = (secret: string) =>
  secret.length < SHORT ? `(?<![\\p{L}\\p{N}])${literal(secret)}(?![\\p{L}\\p{N}])` : literal(secret);

/** A copy of a JSON value in which no string, and no property's name, holds one of the secrets. */
export function redact<T>(value: T, secrets: string[]): T {
  const texts = secrets.filter((secret) => secret !== "").flatMap((secret) => [secret, encodeURIComponent(secret)]);
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

/** What a flow may see of a failure: without the secrets, and with a word on a wait that is too long to be kept. */
export function forFlows({ code, message, details }: SeoError, secrets: string[]): SeoError {
  const { retryAfter = 0 } = details;
  const wait =
    retryAfter > LONGEST_WAIT ? ` It asks to wait ${retryAfter} s; at most ${LONGEST_WAIT} s are waited here.` : "";
  return new SeoError(code, redact(message, secrets) + wait, redact(details, secrets));
}

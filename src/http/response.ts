import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import { parse } from "secure-json-parse";
import { type Code, type Details, SeoError, type Stage } from "../errors.js";
import type { Operation } from "../operations.js";

export type Headers = Record<string, string | string[] | undefined>;

const MAX_DECODED = 64 << 20;
/** Node-RED ends when it clones a message that is nested some 1 900 levels deep; a report has five. */
const MAX_DEPTH = 64;
/** As much of an answer that is no JSON as is looked through for secrets, before it is cut for flows. */
const MAX_TEXT = 1 << 16;

/** In pieces of this size a bomb is found out in a tenth of the time that zlib's own 16 KiB take. */
const options = { maxOutputLength: MAX_DECODED, chunkSize: 256 << 10 };

const decoders = new Map([
  ["gzip", promisify<Buffer, typeof options, Buffer>(gunzip)],
  ["x-gzip", promisify<Buffer, typeof options, Buffer>(gunzip)],
  ["deflate", promisify<Buffer, typeof options, Buffer>(inflate)],
  ["br", promisify<Buffer, typeof options, Buffer>(brotliDecompress)],
]);
const utf8 = new TextDecoder();

/** The codings that `decode` can read, as the request offers them. */
export const acceptEncoding = "gzip, br";

/** Undoes the content coding, and reads UTF-8: a byte order mark goes, what is no UTF-8 becomes U+FFFD. */
export async function decode(bytes: Buffer, headers: Headers): Promise<string> {
  const coding = String(headers["content-encoding"] ?? "identity")
    .trim()
    .toLowerCase();
  if (coding === "identity") return utf8.decode(bytes);
  const decoder = decoders.get(coding);
  if (!decoder)
    throw new SeoError("SEO_RESPONSE", "The response uses a content encoding that was not requested.", {
      stage: "answer",
      uncertain: true,
    });
  return utf8.decode(await decoder(bytes, options));
}

/** Whether a text has more than `most` of a character. */
function hasMore(text: string, most: number, character: string): boolean {
  let at = -1;
  for (let count = 0; count <= most; count++) {
    at = text.indexOf(character, at + 1);
    if (at < 0) return false;
  }
  return true;
}

/** How many levels deep a JSON text is nested, without parsing it. */
function depth(text: string): number {
  let level = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 92 /* \ */) i++;
      else if (code === 34 /* " */) inString = false;
    } else if (code === 34) inString = true;
    else if (code === 91 /* [ */ || code === 123 /* { */) deepest = Math.max(deepest, ++level);
    else if (code === 93 || code === 125) level--;
  }
  return deepest;
}

type Reading = { json: unknown } | { refused: "not JSON" | "nested too deeply" };

function read(text: string): Reading {
  // The count takes a tenth of the time of following them, and most answers have fewer.
  const brackets = hasMore(text, MAX_DEPTH / 2, "[") || hasMore(text, MAX_DEPTH / 2, "{");
  if (brackets && depth(text) > MAX_DEPTH) return { refused: "nested too deeply" };
  try {
    return { json: parse(text, { protoAction: "remove", constructorAction: "remove" }) };
  } catch {
    return { refused: "not JSON" };
  }
}

/** The service's words, in any of the shapes that installations give: `message` text or messages by field, or `errors` by field. */
function words(body: unknown): { message?: string | undefined; fields?: Record<string, string[]> | undefined } {
  const { message, errors, error } = Object(body) as Record<string, unknown>;
  const byField = [errors, message].find(
    (value): value is object => typeof value === "object" && value !== null && !Array.isArray(value),
  );
  const fields =
    byField &&
    Object.fromEntries(
      Object.entries(byField).map(([field, messages]) => [
        field,
        [messages].flat().filter((text) => typeof text === "string"),
      ]),
    );
  const texts = [
    message,
    error,
    Object.values(fields ?? {})
      .flat()
      .join(" "),
  ];
  return { message: texts.find((value) => typeof value === "string" && value !== "") as string | undefined, fields };
}

/** Seconds to wait by `Retry-After` (a number or an HTTP date) or, without one, by `X-RateLimit-Reset` (unix seconds). */
function retryAfter(headers: Headers, now = Date.now()): number | undefined {
  const after = String(headers["retry-after"]).trim();
  if (/^\d{1,9}$/.test(after)) return Number(after);
  const reset = String(headers["x-ratelimit-reset"]).trim();
  const until = /GMT$/.test(after) ? Date.parse(after) : /^\d{9,11}$/.test(reset) ? Number(reset) * 1000 : Number.NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, Math.ceil((until - now) / 1000));
}

const kinds: Record<number, [Code, Stage]> = {
  401: ["SEO_UNAUTHORIZED", "key"],
  403: ["SEO_FORBIDDEN", "key"],
  404: ["SEO_NOT_FOUND", "path"],
  405: ["SEO_REJECTED", "path"],
  407: ["SEO_NETWORK", "proxy"],
  429: ["SEO_RATE_LIMITED", "service"],
};
/** Statuses after which another attempt may succeed. */
const transient = new Set([408, 429, 500, 502, 503, 504]);

/** An answer's failure: status, the service's words, and whether the service may have acted. */
function failure(status: number, headers: Headers, text: string): SeoError {
  if (status < 400) {
    const target = String(headers.location);
    const to = URL.canParse(target) ? ` to ${new URL(target).origin}` : "";
    return new SeoError(
      "SEO_RESPONSE",
      `The service redirected the request${to} (${status}). Redirects are not followed.`,
      { statusCode: status, stage: "redirect", values: { target: to.slice(4) || "…" } },
    );
  }
  const reading = read(text);
  const body = "json" in reading ? reading.json : text.slice(0, MAX_TEXT);
  const { message, fields } = "json" in reading ? words(body) : {};
  const wait = status === 429 || status === 503 ? retryAfter(headers) : undefined;
  const [code, stage] = kinds[status] ?? (status < 500 ? ["SEO_REJECTED", "service"] : ["SEO_SERVER", "service"]);
  const said =
    message ?? ("json" in reading ? "no error message." : "the response is not JSON, so it did not come from the API.");
  const details: Details = {
    statusCode: status,
    fields,
    retryAfter: wait,
    body,
    stage,
    transient: transient.has(status),
    uncertain: status === 408 || (status >= 500 && wait === undefined),
  };
  return new SeoError(code, `The service returned ${status}: ${said}`, details);
}

/** The body of a successful answer, checked; null for the empty answer to a delete. Throws an SeoError for any other. */
export function readAnswer(row: Operation, status: number, headers: Headers, text: string): unknown {
  if (status < 200 || status > 299) throw failure(status, headers, text);
  if (row.deletes && text.trim() === "") return null;
  const reading = read(text);
  if ("json" in reading) return reading.json;
  throw new SeoError("SEO_RESPONSE", `The service returned ${status}, but the response is ${reading.refused}.`, {
    statusCode: status,
    body: text.slice(0, MAX_TEXT),
    stage: "answer",
    uncertain: true,
  });
}

import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { clockOf } from "../dates.js";
import { type Code, oneLine, SeoError, type Stage, sentenceOf } from "../errors.js";
import { isObject } from "../json.js";
import type { Operation } from "../operations.js";
import type { Headers } from "../responses.js";
import { LONGEST_WAIT } from "../retry.js";
import { parseUrl } from "../url.js";
import { parseJson } from "./json.js";
import type { Redact } from "./redact.js";

/** A response as received. */
export interface RawResponse {
  statusCode: number;
  headers: Headers;
  bytes: Buffer;
  /** When the request was made, before it waited for a connection, in the clock of `performance.now()`. */
  sentAt: number;
}

const MAX_DECODED = 16 << 20;
/** How much of a text that is not JSON is searched for secrets. */
const MAX_SEARCHED = 1 << 16;
/** How much of a text an error quotes: enough to recognize its server. */
const MAX_QUOTED = 1000;
/** Characters of the messages by field; longer ones are only in the body. An audit keeps them in its journal. */
const MAX_FIELDS = 10_000;

/** Milliseconds within which a service that is overloaded or maintained rejects a request. Most gateways wait longer for one that works. */
const PROMPT = 10_000;

/** Chunks of this size detect a decompression bomb in a tenth of the time that zlib's own 16 KiB take. */
const options = { maxOutputLength: MAX_DECODED, chunkSize: 256 << 10 };

const decoders = new Map<string, (bytes: Buffer, limits: typeof options) => Buffer>([
  ["gzip", gunzipSync],
  ["x-gzip", gunzipSync],
  ["deflate", inflateSync],
  ["br", brotliDecompressSync],
]);
/** Values of Content-Encoding that say that the body is plain. */
const plain = ["", "identity", "none"];
const utf8 = new TextDecoder();

/** The codings that a request offers. */
export const acceptEncoding = "gzip, br";

/** The content codings of a body, in lower case. */
const codingsOf = ({ "content-encoding": coding = "" }: Headers) =>
  (String(coding).match(/[^,\s]+/g) ?? []).map((name) => name.toLowerCase()).filter((name) => !plain.includes(name));

/**
 * Undoes the content coding, and reads UTF-8: a byte order mark is dropped, invalid bytes become U+FFFD. Servers also put a
 * charset or a word of their own into the header, so a body in an unknown coding stays as it is.
 */
export function decode({ bytes, headers }: Pick<RawResponse, "bytes" | "headers">): string {
  const [decoder, ...more] = codingsOf(headers).flatMap((name) => decoders.get(name) ?? []);
  return utf8.decode(decoder && more.length === 0 && bytes.length > 0 ? decoder(bytes, options) : bytes);
}

/** The service's messages, in each shape that installations use: `message` as text or by field, or `errors` by field. */
function serverMessages(body: unknown) {
  const { message, errors, error } = Object(body) as Record<string, unknown>;
  const byField = [errors, message].find(isObject);
  const texts = (messages: unknown) =>
    [messages].flat().flatMap((text) => (typeof text === "string" && text !== "" ? oneLine(text) : []));
  const fields = Object.fromEntries(
    Object.entries(byField ?? {}).map(([field, messages]) => [oneLine(field), texts(messages)]),
  );
  const named = Object.entries(fields)
    .filter(([, messages]) => messages.length > 0)
    .map(([field, messages]) => `${field}: ${messages.join(" ")}`)
    .join(" ");
  const text = [named, message, error].find((value) => typeof value === "string" && value !== "");
  const isLong = JSON.stringify(fields).length > MAX_FIELDS;
  return { message: text as string | undefined, fields: byField && !isLong ? fields : undefined };
}

/** The service's message in a response, at a length that can be quoted. */
export const messageIn = (body: unknown): string | undefined => serverMessages(body).message?.slice(0, MAX_QUOTED);

/**
 * Seconds to wait by `Retry-After` (a number or an HTTP date) or, without one, by `X-RateLimit-Reset` (unix seconds). Times are
 * compared with the response's own: this computer's clock can be wrong.
 */
function retryAfter(headers: Headers): number | undefined {
  const after = String(headers["retry-after"]).trim();
  // Several, as if a gateway adds its own: the longest. A larger number counts as 2³¹, as in RFC 9111.
  if (/^\d+(?:\s*,\s*\d+)*$/.test(after)) return Math.min(Math.max(...after.split(",").map(Number)), 2 ** 31);
  // A gateway can count requests of its own, of which some remain.
  const isUsedUp = !(Number(headers["x-ratelimit-remaining"]) > 0);
  const reset = isUsedUp ? String(headers["x-ratelimit-reset"]).trim() : "";
  const until = /GMT$/.test(after) ? Date.parse(after) : /^\d{9,11}$/.test(reset) ? Number(reset) * 1000 : Number.NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, Math.ceil((until - clockOf(headers)) / 1000));
}

const meanings: Record<number, [Code, Stage]> = {
  401: ["SEO_UNAUTHORIZED", "key"],
  403: ["SEO_FORBIDDEN", "key"],
  404: ["SEO_NOT_FOUND", "path"],
  405: ["SEO_REJECTED", "path"],
  407: ["SEO_NETWORK", "proxy"],
  429: ["SEO_RATE_LIMITED", "service"],
};
/** The parts of a request that a status rejects. */
const rejected: Record<number, string> = { 401: "the API key", 422: "the request" };
/** Server errors that a retry cannot change: not implemented, not supported, set up wrongly, or a network that requires a login. */
const lasting = new Set([501, 505, 506, 508, 510, 511]);
/** True if another attempt may succeed: CDNs and proxies have 5xx of their own. */
const isTransient = (status: number) => status === 408 || status === 429 || (status >= 500 && !lasting.has(status));

/** The beginning of a text that is not JSON. It is cut last: half of a secret would not be found. */
const quote = (text: string, redact: Redact) => redact(text.slice(0, MAX_SEARCHED)).slice(0, MAX_QUOTED);

/**
 * Turns an error response into an error. The service's words are redacted before anything is made of them; status,
 * wait and certainty are the client's own, and no secret can change them. `subject` is the record that the path names.
 */
function rejectionOf(
  { statusCode: status, headers, sentAt }: RawResponse,
  text: string,
  redact: Redact,
  subject?: string,
): SeoError {
  if (status < 400) {
    // Redacted first, because a URL's host becomes lower case.
    const target = redact(String(headers.location));
    // A URL without a host has the origin "null".
    const origin = parseUrl(target)?.origin ?? "null";
    const to = origin === "null" ? "" : ` to ${origin}`;
    const sentence = `The service redirected the request${to} (${status}). Redirects are not followed.`;
    const values = { target: to.slice(4) || "…" };
    // "See other" follows an effect; the others say where to send the request.
    const uncertain = status === 303;
    return new SeoError("SEO_RESPONSE", sentence, { statusCode: status, stage: "redirect", values, uncertain });
  }
  const parsed = parseJson(text);
  const body: unknown = "json" in parsed ? redact(parsed.json) : quote(text, redact);
  const { message = "no error message.", fields } =
    "json" in parsed
      ? serverMessages(body)
      : { message: "the response is not JSON, so it did not come from the API.", fields: undefined };
  const wait = status === 429 || status === 503 ? retryAfter(headers) : undefined;
  // A gateway can put X-RateLimit-Reset into every response. Only Retry-After says that nothing was done.
  const hasWait = retryAfter({ ...headers, "x-ratelimit-reset": undefined }) !== undefined;
  const isRefused = hasWait && ("json" in parsed || performance.now() - sentAt < PROMPT);
  const [code, stage] = meanings[status] ?? (status < 500 ? ["SEO_REJECTED", "service"] : ["SEO_SERVER", "service"]);
  const what = rejected[status];
  const returned = what ? `rejected ${what} (${status})` : `returned ${status}`;
  const whose = status === 404 && subject ? ` for ${subject}` : "";
  const quoted = `The service ${returned}${whose}: ${message}`.slice(0, MAX_QUOTED);
  const sentence =
    wait !== undefined && wait > LONGEST_WAIT
      ? `${sentenceOf(quoted)} The required wait of ${wait} s exceeds the limit of ${LONGEST_WAIT} s.`
      : quoted;
  return new SeoError(code, sentence, {
    statusCode: status,
    fields,
    retryAfter: wait,
    body,
    stage: whose && "json" in parsed ? "service" : stage,
    ...(whose && isObject(body) && { missing: true }),
    transient: isTransient(status),
    uncertain: status === 408 || (status >= 500 && !(status === 503 && isRefused)),
  });
}

/**
 * Reads a response: the JSON of a success and its text, or null where a delete returns nothing. Throws an SeoError for
 * any other; `redactor` is asked for only then.
 */
export function readResponse(
  row: Operation,
  received: RawResponse,
  redactor: () => Redact,
  subject?: string,
): { body: unknown; text: string } {
  const { statusCode, headers } = received;
  if (statusCode < 200 || statusCode > 299) {
    let text = "";
    try {
      text = decode(received);
    } catch {} // The status counts even if the body cannot be decoded.
    throw rejectionOf(received, text, redactor(), subject);
  }
  const text = decode(received);
  if (row.deletes && text.trim() === "") return { body: null, text };
  const parsed = parseJson(text);
  if ("json" in parsed) return { body: parsed.json, text };
  const codings = codingsOf(headers);
  const unknown = codings.length > 1 || codings.some((name) => !decoders.has(name));
  const problem = unknown ? "uses a content encoding that was not requested" : parsed.problem;
  throw new SeoError("SEO_RESPONSE", `The service returned ${statusCode}, but the response ${problem}.`, {
    statusCode,
    body: quote(text, redactor()),
    stage: "answer",
    uncertain: true,
    transient: parsed.isCut,
  });
}

import { SeoError } from "../errors.js";
import type { Operation } from "../operations.js";

/** Where the service is: `https://host:port`, and the path that all of its own paths follow. */
export interface Base {
  origin: string;
  prefix: string;
}

/** Reads a base URL as people paste it: with a sub-path, a trailing slash, or `/api/v1` at its end. Throws SEO_CONFIG. */
export function parseBase(text: string): Base {
  const refuse = (why: string) => new SeoError("SEO_CONFIG", `The service's base URL ${why}.`, { stage: "config" });
  if (!/^https?:\/\//i.test(text)) throw refuse("must begin with http:// or https://");
  if (/[?#]/.test(text)) throw refuse("must not contain a query string or fragment");
  if (!URL.canParse(text)) throw refuse("is not a valid URL");
  const { origin, pathname, username, password } = new URL(text);
  if (username || password) throw refuse("must not contain a user name or password");
  return {
    origin,
    prefix: pathname
      .replace(/\/+$/, "")
      .replace(/\/api\/v1$/, "")
      .replace(/\/+$/, ""),
  };
}

/** Reads an API key, without the blanks that were copied with it. Throws SEO_CONFIG, which does not quote it. */
export function parseKey(value: unknown): string {
  const key = String(value ?? "").trim();
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  const why = key === "" ? "is missing" : "must be printable ASCII characters, without spaces or line breaks";
  throw new SeoError("SEO_CONFIG", `The service's API key ${why}.`, { stage: "config" });
}

/** What is sent, beside the headers. */
export interface Request {
  method: string;
  path: string;
  body: string | undefined;
}

/**
 * Makes a row's request of a checked input: only what is set, in the table's order.
 * `extra` is added to the query: the page or the cursor, which the document does not know.
 */
export function buildRequest(
  row: Operation,
  input: Record<string, string>,
  { prefix }: Base,
  { method = row.method, extra = {} }: { method?: string | undefined; extra?: Record<string, string> } = {},
): Request {
  const query = new URLSearchParams();
  const form = new URLSearchParams();
  let path = row.path;
  for (const [name, { place, wire = name }] of Object.entries(row.params)) {
    const value = input[name];
    if (value === undefined) continue;
    if (place === "path") path = path.replace(`{${wire}}`, () => encodeURIComponent(value));
    else (place === "query" ? query : form).append(wire, value);
  }
  for (const [name, value] of Object.entries(extra)) query.append(name, value);
  return {
    method,
    path: `${prefix}${path}${query.size > 0 ? `?${query}` : ""}`,
    body: form.size > 0 ? form.toString() : undefined,
  };
}

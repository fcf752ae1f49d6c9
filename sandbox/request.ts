/** Reads what a request sends, and rejects what the interface does not allow. */

export type Fields = Record<string, string>;

/** Returns what is wrong with a value, or nothing. */
export type Rule = (value: string) => string | undefined;
export type Rules = Record<string, Rule>;

/** A response with an error status; `messages` are either one text or texts by field. */
export class RequestError extends Error {
  readonly status: number;
  readonly messages: string | Record<string, string[]>;

  constructor(status: number, messages: string | Record<string, string[]>) {
    super(`rejected with ${status}`);
    this.status = status;
    this.messages = messages;
  }
}

const MAX_LENGTH = 2048;

export const text: Rule = (value) =>
  value.length > MAX_LENGTH ? `may not be longer than ${MAX_LENGTH} characters` : undefined;

export const oneOf =
  (...allowed: string[]): Rule =>
  (value) =>
    allowed.includes(value) ? undefined : `must be one of: ${allowed.join(", ")}`;

export const pageNumber: Rule = (value) =>
  /^[1-9]\d{0,8}$/.test(value) ? undefined : "must be a whole number from 1 on";

export const webAddress: Rule = (value) =>
  text(value) ?? (parseAddress(value) ? undefined : "must be an http or https URL with a host, or a domain");

/** `URL.canParse` of Node.js 20 and 22 rejects some valid URLs once it is compiled. */
function parse(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** A page's URL as the service stores it: no scheme, no `www.`, no slash after a bare host. */
export function parseAddress(text: string): { url: string; project: string } | undefined {
  const hasScheme = /^https?:\/\//i.test(text);
  const whole = hasScheme ? text : `http://${text}`;
  const parsed = parse(whole);
  if (/[\s\p{Cc}]/u.test(text) || !parsed) return undefined;
  const { host, hostname, pathname, search, username, password } = parsed;
  if (username || password || (!hasScheme && !/[^.]\.[^.]/.test(hostname))) return undefined;
  const bare = pathname === "/" && search === "";
  return { url: withoutWww(host) + (bare ? "" : pathname + search), project: withoutWww(hostname) };
}

const withoutWww = (host: string): string => host.replace(/^www\./, "");

/** Parses `a=1&b=2`; throws a 400 for anything that the interface does not name, and a 422 for invalid values. */
export function readFields(
  encoded: string,
  kind: "query parameter" | "form field",
  rules: Rules = {},
  required: readonly string[] = [],
): Fields {
  const fields: Fields = {};
  for (const pair of encoded === "" ? [] : encoded.split("&")) {
    const [name, value, ...rest] = pair.split("=").map((part) => decode(part, kind));
    if (!name || value === undefined || rest.length > 0) {
      throw new RequestError(400, `Malformed ${kind} ${JSON.stringify(pair)}: must be name=value.`);
    }
    const what = `${kind} ${JSON.stringify(name)}`;
    if (!Object.hasOwn(rules, name)) {
      throw new RequestError(400, `Unknown ${what}; allowed here: ${Object.keys(rules).join(", ") || "none"}.`);
    }
    if (Object.hasOwn(fields, name)) throw new RequestError(400, `The ${what} was sent twice.`);
    if (value === "") throw new RequestError(400, `The ${what} is empty; leave it out instead.`);
    fields[name] = value;
  }
  checkValues(fields, rules, required);
  return fields;
}

/** Names all fields that are missing or invalid at once. */
function checkValues(fields: Fields, rules: Rules, required: readonly string[]): void {
  const problems: Record<string, string[]> = {};
  for (const name of required) {
    if (fields[name] === undefined) problems[name] = [`The ${name} field is required.`];
  }
  for (const [name, value] of Object.entries(fields)) {
    const problem = rules[name]?.(value);
    if (problem) problems[name] = [`The ${name} ${problem}.`];
  }
  if (Object.keys(problems).length > 0) throw new RequestError(422, problems);
}

function decode(part: string, kind: string): string {
  try {
    if (/[^\x21-\x7e]/.test(part)) throw new URIError("not encoded");
    return decodeURIComponent(part.replaceAll("+", " "));
  } catch {
    throw new RequestError(400, `Malformed ${kind}: ${JSON.stringify(part)} is not percent-encoded UTF-8.`);
  }
}

import { toUSVString } from "node:util";
import { encodeForm } from "./request.js";

/** Returns a copy of a JSON value in which no text and no property's name holds a secret. */
export type Redact = <T>(value: T) => T;

/** A shorter secret is redacted only where it stands alone, or every text would be full of holes. */
const SHORT = 6;
/** A secret of twice as many characters is redacted in parts of at least so many: the size of a pattern has a limit. */
const PART = 50;

const codes =
  (characters: RegExp, write: (code: string, decimal: number) => string) =>
  (text: string): string =>
    text.replace(characters, (one) => {
      const code = one.codePointAt(0) ?? 0;
      return write(code.toString(16), code);
    });
const json = (text: string) => JSON.stringify(text).slice(1, -1);
const php = (text: string) => json(text).replaceAll("/", "\\/");
const unit = (code: string) => `\\u${code.padStart(4, "0")}`;
const html = (quote: string) => (text: string) =>
  text.replace(/[&<>"']/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one] ?? quote);
const odd = /[^A-Za-z0-9]/gu;

/** The encodings that are also used twice, in any order. */
const usual = [encodeURIComponent, encodeForm, json, php, html("&#39;")];

/** The ways in which a response can write a secret. Hexadecimal digits can have either case. */
const encodings: ((text: string) => string)[] = [
  (text) => text,
  ...usual,
  ...usual.flatMap((outer) => usual.map((inner) => (text: string) => outer(inner(text)))),
  (text) => codes(/[!'()*]/g, (code) => `%${code}`)(encodeURIComponent(text)),
  (text) => codes(/[^ -~]/g, unit)(php(text)),
  (text) => codes(/[<>&'"]|[^ -~]/g, unit)(php(text).replaceAll('\\"', '"')),
  ...["&#x27;", "&apos;"].map(html),
  codes(odd, (_, code) => `&#${code};`),
  codes(odd, (code) => `&#x${code};`),
];

/** Every form of a secret; the longest first, because a shorter one can be its beginning. */
const formsOf = (secret: string) =>
  [...new Set(encodings.map((encode) => encode(secret)))].sort((a, b) => b.length - a.length);

/** Every encoding encodes each character by itself. One that is not well-formed is sent as U+FFFD. */
function partsOf(secret: string): string[] {
  const characters = [...toUSVString(secret)];
  const { length } = characters;
  const count = Math.max(1, Math.floor(length / PART));
  return Array.from({ length: count }, (_, i) =>
    characters.slice((i * length) / count, ((i + 1) * length) / count).join(""),
  );
}

/** The longest part of a secret that no encoding changes: searching for it is cheap, and nearly always enough. */
export function unencoded(secret: string): string {
  const parts = secret.match(/[A-Za-z0-9]+/g) ?? [];
  const longest = parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
  // A search stops wherever the first character occurs, so it begins with one that is rare in a report.
  return longest.slice(Math.max(0, longest.search(/[^\dacdeilnoprstu](?=.{7})/)));
}

function pattern(secret: string): RegExp {
  const forms = formsOf(secret).map((form) =>
    form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/&(?:amp;)?#x?/g, (start) => `${start}0*`),
  );
  const any = `(?:${forms.join("|")})`;
  // An escaped quotation mark before it ends in a letter or a digit, too.
  const alone = `(?<![\\p{L}\\p{N}](?<!\\\\u[\\da-f]{4}|%[\\da-f]{2}))${any}(?![\\p{L}\\p{N}])`;
  return new RegExp(secret.length < SHORT ? alone : any, "giu");
}

/** Makes the function that replaces a secret in a text. The pattern takes milliseconds, so it is made when it is needed. */
function createReplacer(secret: string): (text: string) => string {
  const core = unencoded(secret);
  let found: RegExp | undefined;
  return (text) => {
    if (!text.includes(core)) return text;
    found ??= pattern(secret);
    return text.replace(found, "***");
  };
}

/** Makes the function that redacts secrets, in any form that they can have in a response. */
export function createRedactor(secrets: string[]): Redact {
  const replacers = [...new Set(secrets.filter(Boolean).flatMap(partsOf))].map(createReplacer);
  if (replacers.length === 0) return (value) => value;
  const redact = (part: unknown): unknown => {
    if (typeof part === "string") return replacers.reduce((text, replace) => replace(text), part);
    if (Array.isArray(part)) return part.map(redact);
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [redact(name), redact(inner)]));
  };
  return redact as Redact;
}

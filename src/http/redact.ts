import { toUSVString } from "node:util";
import { decodeHTML } from "entities/decode";
import type { Json } from "../json.js";
import { operations, type Param } from "../operations.js";

/** Removes a secret from all texts and names of properties in a JSON value, which it changes and returns. */
export type Redact = <T>(value: T) => T;

const isNested = (value: unknown): value is Json => typeof value === "object" && value !== null;

/** A shorter secret is redacted only where it stands alone, or every text would be full of holes. */
const SHORT = 6;
/** Encodings within encodings that are undone. */
const MOST_LAYERS = 8;
/** So many characters of a value are read. Only a hostile service has a secret in more than that. */
const MOST_READ = 1 << 16;

/** The names by which the client reads a response are public. Without them, an error would lose its message. */
const publicNames = new Set(["data", "message", "errors", "error", "status"]);
for (const { params } of Object.values(operations))
  for (const [name, { wire = name }] of Object.entries<Param>(params)) publicNames.add(wire);

/** HTML entities, JSON escapes, percent-encoded UTF-8, a form's space, and characters that Unicode can decompose. */
const ENCODED =
  // With the flag i, [^\0-\x7f] would not match the Kelvin sign, because its lower case is k.
  /&#(?:[Xx]\p{AHex}+|\d+);?|&[A-Za-z][A-Za-z\d]*;|\\(?:u\p{AHex}{4}|["'\\/bfnrt])|%[0-7]\p{AHex}|%[CDcd]\p{AHex}%\p{AHex}{2}|%[Ee]\p{AHex}(?:%\p{AHex}{2}){2}|%[Ff]\p{AHex}(?:%\p{AHex}{2}){3}|\+|[^\0-\x7f]/gu;

function decode(encoded: string): string {
  const [first, second = ""] = encoded;
  if (first === "&") return decodeHTML(encoded);
  if (first === "%") return Buffer.from(encoded.replaceAll("%", ""), "hex").toString();
  if (first === "+") return " ";
  if (first !== "\\") return encoded.normalize("NFD");
  if (encoded.length > 2) return String.fromCharCode(Number.parseInt(encoded.slice(2), 16));
  return /[bfnrt]/.test(second) ? " " : second;
}

/** A text as it is, and with one layer of encodings after the other undone. */
function layersOf(text: string): string[] {
  const layers: string[] = [];
  for (let next = text; next !== layers.at(-1) && layers.length <= MOST_LAYERS; next = next.replace(ENCODED, decode))
    layers.push(next);
  return layers;
}

/** The longest part of a secret that no encoding changes: searching for it is cheap, and nearly always enough. */
export function unencoded(secret: string): string {
  // A letter before a mark is left out, because NFC can compose both.
  const parts = secret.match(/[A-Za-z0-9]+(?!\p{M})/gu) ?? [];
  const longest = parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
  // A search stops wherever the first character occurs, so it begins with one that is rare in a report.
  return longest.slice(Math.max(0, longest.search(/[^\dacdeilnoprstu](?=.{7})/)));
}

const isAlone = (text: string, start: number, end: number) =>
  !/[\p{L}\p{N}]$/u.test(text.slice(0, start).slice(-2)) && !/^[\p{L}\p{M}\p{N}]/u.test(text.slice(end, end + 2));

/** The texts to look for: all layers of a secret, because it can look encoded itself. A text has one of them in one of its own. */
const toSought = (secret: string) => ({
  core: unencoded(secret),
  forms: layersOf(secret),
  isShort: secret.length < SHORT,
});

/** A text without what is looked for. */
const without = (text: string, sought: string, isShort: boolean) =>
  text.replaceAll(sought, (_, start: number) =>
    isShort && !isAlone(text, start, start + sought.length) ? sought : "***",
  );

/** Makes the function that redacts secrets. A text that has one in an encoding is redacted as a whole. */
export function createRedactor(secrets: string[]): Redact {
  // A secret that is not well-formed is sent with U+FFFD.
  const all = secrets.filter(Boolean).map(toUSVString).map(toSought);
  if (all.length === 0) return (value) => value;
  let left = 0;
  function redactText(text: string): string {
    const sought = all.filter(({ core }) => text.includes(core));
    if (sought.length === 0) return text;
    left -= text.length;
    if (left < 0) return "***";
    const plain = sought.reduce((rest, { forms: [secret = ""], isShort }) => without(rest, secret, isShort), text);
    const isHidden = layersOf(plain).some((layer) =>
      sought.some(({ forms, isShort }) => forms.some((form) => without(layer, form, isShort) !== layer)),
    );
    return isHidden ? "***" : plain;
  }
  const redact = (part: unknown): unknown => {
    if (typeof part === "string") return redactText(part);
    if (typeof part === "number")
      return all.some(({ forms: [secret], isShort }) => !isShort && secret === String(part)) ? "***" : part;
    if (!isNested(part)) return part;
    for (const name of Object.keys(part)) {
      const { [name]: inner } = part;
      const shown = Array.isArray(part) || publicNames.has(name) ? name : redactText(name);
      const value = redact(inner);
      if (shown !== name) delete part[name];
      if (shown !== name || value !== inner) part[shown] = value;
    }
    return part;
  };
  return (value) => {
    left = MOST_READ;
    return redact(value) as typeof value;
  };
}

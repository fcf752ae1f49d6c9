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

/** A text, and where each of its characters, and its end, is in the original. */
interface Reading {
  text: string;
  places: number[];
}

/** Undoes one layer of encodings. */
function unwrap({ text, places }: Reading): Reading {
  const read: Reading = { text: "", places: [] };
  let done = 0;
  for (const { 0: encoded, index } of [...text.matchAll(ENCODED), { 0: "", index: text.length }]) {
    const decoded = decode(encoded);
    if (decoded === encoded && encoded !== "") continue;
    read.text += text.slice(done, index) + decoded;
    for (; done < index; done++) read.places.push(Number(places[done]));
    for (let i = 0; i < decoded.length; i++) read.places.push(Number(places[index]));
    done = index + encoded.length;
  }
  read.places.push(Number(places.at(-1)));
  return read;
}

/** A text as it is, and with one layer of encodings after the other undone. */
function layersOf(text: string): Reading[] {
  const layers: Reading[] = [];
  let next: Reading = { text, places: Array.from({ length: text.length + 1 }, (_, place) => place) };
  while (next.text !== layers.at(-1)?.text && layers.length <= MOST_LAYERS) {
    layers.push(next);
    next = unwrap(next);
  }
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
  forms: layersOf(secret).map(({ text }) => text),
  isShort: secret.length < SHORT,
});

/** Where the original of a text has a secret. */
function* find({ text, places }: Reading, { forms, isShort }: ReturnType<typeof toSought>) {
  for (const form of forms)
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) {
      const end = at + form.length;
      if (!isShort || isAlone(text, at, end)) yield { start: Number(places[at]), end: Number(places[end]) };
    }
}

/** Makes the function that redacts secrets, however they are encoded in a response. */
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
    const found = layersOf(text).flatMap((layer) => sought.flatMap((secret) => [...find(layer, secret)]));
    let redacted = "";
    let done = 0;
    for (const { start, end } of found.sort((a, b) => a.start - b.start)) {
      if (start >= done) redacted += `${text.slice(done, start)}***`;
      done = Math.max(done, end);
    }
    return redacted + text.slice(done);
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

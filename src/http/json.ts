import { parse } from "secure-json-parse";

/** Node-RED crashes when it clones a message that is nested about 1,900 levels deep; a report has five levels. */
const MAX_DEPTH = 64;
/** Bounds the time that parsing takes. A page of 100 large reports has 200,000 values. Empty arrays and objects count twice. */
const MAX_VALUES = 250_000;
/**
 * How many properties can follow other ones than in the objects before. Each takes V8 20 times as long as one that objects
 * share; a page of reports has a few thousand.
 */
const MAX_SHAPES = 20_000;

const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const ZERO = 48;
const NINE = 57;
const COLON = 58;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** No character outside of a string comes after it. */
const LAST = CLOSE_OBJECT;

const NOT_JSON = "is not JSON";
const TOO_DEEP = "is nested too deeply";
const TOO_MANY = "has too many values";

const remove = { protoAction: "remove", constructorAction: "remove" } as const;
/** `__proto__` and `constructor.prototype`, plain or escaped, contain one of these. Few other texts do. */
const dangerous = ["__", "ype", "\\u"];

/** A random beginning of each hash: no response can have its objects collide. */
const SEED = Math.random() * 2 ** 32;
/** The hash of the properties so far of the open object at each level. */
const hashes = new Int32Array(MAX_DEPTH + 1);

/** Adds a property, whose name is in the text, to the hash of the object at a level. */
function hashAt(level: number, text: string, start: number, end: number): number {
  let hash = hashes[level] ?? 0;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x9e3779b1) ^ (hash >>> 15);
  hashes[level] = hash;
  return hash;
}

/** Where the string ends that begins at `start`; -1 if it does not end. A search is ten times as fast as a loop. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end > 0 && text.charCodeAt(end - 1) === BACKSLASH) {
    let before = end - 2;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((end - before) % 2 === 1) return end;
    end = text.indexOf('"', end + 1);
  }
  return end;
}

function endOfDigits(text: string, start: number): number {
  let end = start + 1;
  for (let code = text.charCodeAt(end); code >= ZERO && code <= NINE; code = text.charCodeAt(end)) end++;
  return end;
}

/** True if digits are an integer that a JavaScript number does not hold exactly, and no part of another number. */
function isUnsafe(text: string, start: number, end: number): boolean {
  if (end - start < 16 || text.charCodeAt(start) === ZERO) return false;
  if (/[.eE]/.test(text.charAt(end)) || /[.+eE]$|[eE]-$/.test(text.slice(Math.max(0, start - 2), start))) return false;
  return end - start > 16 || !Number.isSafeInteger(Number(text.slice(start, end)));
}

/** Reads a JSON text before it is parsed. Returns the places of quotation marks that make text of unsafe integers, or a problem. */
function scan(text: string): number[] | string {
  const quotes: number[] = [];
  const shapes = new Set<number>();
  let level = 0;
  let values = 0;
  let properties = 0;
  let start = 0;
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= SPACE) continue;
    if (code === QUOTE) {
      start = i;
      end = endOfString(text, start);
      if (end < 0) return NOT_JSON;
      i = end;
    } else if (code === COMMA) values++;
    else if (code === COLON) {
      // A number that becomes text must not become a name.
      if (end < 0) return NOT_JSON;
      if (++properties > MAX_SHAPES) shapes.add(hashAt(level, text, start, end));
      if (shapes.size > MAX_SHAPES) return TOO_MANY;
    } else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      values++;
      if (++level > MAX_DEPTH) return TOO_DEEP;
      hashes[level] = SEED;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) level--;
    else if (code >= ZERO && code <= NINE) {
      start = i;
      end = -1;
      i = endOfDigits(text, start) - 1;
      if (!isUnsafe(text, start, i + 1)) continue;
      quotes.push(text.charCodeAt(start - 1) === MINUS ? start - 1 : start, i + 1);
      // Writing it as text takes ten times as long as reading a number.
      values += 9;
    } else if (code > LAST) return NOT_JSON;
    if (values > MAX_VALUES) return TOO_MANY;
  }
  return quotes;
}

function insertQuotes(text: string, places: number[]): string {
  if (places.length === 0) return text;
  let from = 0;
  const parts = places.map((place) => {
    const part = text.slice(from, place);
    from = place;
    return part;
  });
  return `${parts.join('"')}"${text.slice(from)}`;
}

/** Parses JSON. An integer that a JavaScript number does not hold exactly becomes text. */
export function parseJson(text: string): { json: unknown } | { problem: string } {
  const scanned = scan(text);
  if (typeof scanned === "string") return { problem: scanned };
  const exact = insertQuotes(text, scanned);
  try {
    return { json: dangerous.some((part) => exact.includes(part)) ? parse(exact, remove) : JSON.parse(exact) };
  } catch {
    return { problem: NOT_JSON };
  }
}

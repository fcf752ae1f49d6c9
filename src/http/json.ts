import { parse } from "secure-json-parse";

/** Node-RED crashes when it clones a message that is nested about 1,900 levels deep; a report has five levels. */
const MAX_DEPTH = 64;
/** Bounds the time that parsing takes. A page of 100 large reports has 200,000 values. Empty arrays and objects count twice. */
const MAX_VALUES = 250_000;
const QUOTE = 34;
const COMMA = 44;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const OPEN_OBJECT = 123;

const NOT_JSON = "is not JSON";
const TOO_DEEP = "is nested too deeply";
const TOO_MANY = "has too many values";

const remove = { protoAction: "remove", constructorAction: "remove" } as const;
/** `__proto__` and `constructor.prototype`, plain or escaped, contain one of these. Few other texts do. */
const dangerous = ["__", "ype", "\\u"];

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

/** Whether a text has more values than may be parsed. */
function hasTooMany(text: string): boolean {
  if (text.length <= MAX_VALUES) return false;
  let values = 0;
  for (let i = 0; i < text.length && values <= MAX_VALUES; i++) {
    const code = text.charCodeAt(i);
    if (code === COMMA || code === OPEN_ARRAY || code === OPEN_OBJECT) values++;
    else if (code === QUOTE) {
      i = endOfString(text, i);
      if (i < 0) return false;
    }
  }
  return values > MAX_VALUES;
}

/** How often a text contains a part, up to what `MAX_DEPTH` allows and once more. */
function countOf(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at >= 0 && count <= MAX_DEPTH; at = text.indexOf(part, at + 1)) count++;
  return count;
}

const isTooDeep = (value: object, level = 1): boolean =>
  level > MAX_DEPTH ||
  Object.values(value).some((part) => typeof part === "object" && part !== null && isTooDeep(part, level + 1));

/** Few other texts match than those with a long integer. Written out, the digits are found ten times as fast as with `{16}`. */
const mayHaveLong = /\d\d\d\d\d\d\d\d\d\d\d\d\d\d\d\d/;
/**
 * A string, also one that does not end, or a number with what follows it, because one that becomes text must not become a name. No
 * match needs a second try.
 */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"?|-?\d[\d.eE+-]*\s*:?/gs;

/** Makes text of the integers that a JavaScript number does not hold exactly. */
const quoteLong = (text: string) =>
  text.replace(tokens, (token) => {
    const number = token.trimEnd();
    return /^-?[1-9]\d{15,}$/.test(number) && !Number.isSafeInteger(Number(number)) ? `"${number}"` : token;
  });

/**
 * Parses JSON. An integer that a JavaScript number does not hold exactly becomes text. `isCut`: the text begins as JSON, but
 * does not end so. A body without a length ends as well where its connection was lost.
 */
export function parseJson(text: string): { json: unknown } | { problem: string; isCut?: boolean } {
  if (hasTooMany(text)) return { problem: TOO_MANY };
  try {
    const exact = mayHaveLong.test(text) ? quoteLong(text) : text;
    const json = dangerous.some((part) => exact.includes(part)) ? parse(exact, remove) : JSON.parse(exact);
    // Counting is faster than looking at each value, and enough for most responses.
    const mayBeDeep = countOf(text, "[") + countOf(text, "{") > MAX_DEPTH;
    return mayBeDeep && isTooDeep(Object(json)) ? { problem: TOO_DEEP } : { json };
  } catch {
    const isCut = "[{".includes(text.trimStart().charAt(0)) && !"]}".includes(text.trimEnd().slice(-1));
    return { problem: NOT_JSON, isCut };
  }
}

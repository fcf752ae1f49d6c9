import { parse } from "secure-json-parse";

/** Node-RED crashes when it clones a message that is nested about 1,900 levels deep; a report has five levels. */
const MAX_DEPTH = 64;
/** Bounds the time that parsing takes. A page of 100 large reports has 200,000 values. Empty arrays and objects count twice. */
const MAX_VALUES = 250_000;
const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
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

/** The reason why a text must not be parsed; undefined if it can be. */
function problemOf(text: string): string | undefined {
  let level = 0;
  let values = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= SPACE) continue;
    if (code === QUOTE) {
      i = endOfString(text, i);
      if (i < 0) return NOT_JSON;
    } else if (code === COMMA) values++;
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      values++;
      if (++level > MAX_DEPTH) return TOO_DEEP;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) level--;
    else if (code > LAST) return NOT_JSON;
    if (values > MAX_VALUES) return TOO_MANY;
  }
  return undefined;
}

/** Few other texts match than those with a long integer. */
const mayHaveLong = /(?:^|[\s,:[-])\d{16}/;
/** A string, or a number with what follows it, because one that becomes text must not become a name. No match needs a second try. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*\s*:?/gs;

/** Makes text of the integers that a JavaScript number does not hold exactly. */
const quoteLong = (text: string) =>
  text.replace(tokens, (token) => {
    const number = token.trimEnd();
    return /^-?[1-9]\d{15,}$/.test(number) && !Number.isSafeInteger(Number(number)) ? `"${number}"` : token;
  });

/** Parses JSON. An integer that a JavaScript number does not hold exactly becomes text. */
export function parseJson(text: string): { json: unknown } | { problem: string } {
  const problem = problemOf(text);
  if (problem) return { problem };
  try {
    const exact = mayHaveLong.test(text) ? quoteLong(text) : text;
    return { json: dangerous.some((part) => exact.includes(part)) ? parse(exact, remove) : JSON.parse(exact) };
  } catch {
    return { problem: NOT_JSON };
  }
}

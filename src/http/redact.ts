/** Returns a copy of a JSON value in which no text and no property's name holds a secret. */
export type Redact = <T>(value: T) => T;

/** A shorter secret is redacted only where it stands alone, or every text would be full of holes. */
const SHORT = 6;
/** How often a text can be encoded: HTML in JSON in a URL, for example. */
const DEEPEST = 3;

/** A text whose escapes were undone, and where each of its characters begins and ends in the original. */
interface Layer {
  text: string;
  starts: number[];
  ends: number[];
}

const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The encodings that a response can echo a secret in: their escapes, and what each stands for. */
const encodings: [escapes: RegExp, decode: (code: string) => string | undefined][] = [
  [
    /\\(?:u[\da-f]{4}|["'\\/])/gi,
    (code) => (code.length > 2 ? String.fromCharCode(Number.parseInt(code.slice(2), 16)) : code.slice(1)),
  ],
  [
    /&(?:#\d{1,9}|#x[\da-f]{1,9}|amp|lt|gt|quot|apos);/gi,
    (code) => {
      const name = code.slice(1, -1).toLowerCase();
      if (!name.startsWith("#")) return entities[name];
      const point = name[1] === "x" ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
      return point <= 0x10ffff ? String.fromCodePoint(point) : undefined;
    },
  ],
  [
    /%(?:[0-7][\da-f]|[cd][\da-f]%[89ab][\da-f]|e[\da-f](?:%[89ab][\da-f]){2}|f[0-7](?:%[89ab][\da-f]){3})/gi,
    (code) => {
      try {
        return decodeURIComponent(code);
      } catch {
        return undefined;
      }
    },
  ],
];

/** A form writes a space as a plus sign. */
const fold = (text: string) => text.replaceAll("+", " ");

/** Undoes one encoding, once. Undefined where the text has none of its escapes. */
function undo({ text, starts, ends }: Layer, [escapes, decode]: (typeof encodings)[number]): Layer | undefined {
  const plain: Layer = { text: "", starts: [], ends: [] };
  let last = 0;
  const copy = (to: number) => {
    plain.text += text.slice(last, to);
    for (let i = last; i < to; i++) {
      plain.starts.push(starts[i] as number);
      plain.ends.push(ends[i] as number);
    }
  };
  for (const { 0: code, index } of text.matchAll(escapes)) {
    const decoded = decode(code);
    if (decoded === undefined) continue;
    copy(index);
    last = index + code.length;
    plain.text += decoded;
    for (let i = 0; i < decoded.length; i++) {
      plain.starts.push(starts[index] as number);
      plain.ends.push(ends[last - 1] as number);
    }
  }
  if (last === 0) return undefined;
  copy(text.length);
  return plain;
}

const isWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}]/u.test(character);

/** Where a secret is in a text: pairs of its beginning and end. */
function* find(text: string, secret: string): Generator<[from: number, to: number]> {
  for (let from = text.indexOf(secret); from >= 0; from = text.indexOf(secret, from + 1)) {
    const to = from + secret.length;
    if (secret.length >= SHORT || (!isWord(text[from - 1]) && !isWord(text[to]))) yield [from, to];
  }
}

/** Marks where a secret is in the original of a layer, in any encoding. */
function mark(hidden: boolean[], layer: Layer, secret: string, depth = 0): void {
  for (const [from, to] of find(fold(layer.text), secret)) {
    hidden.fill(true, layer.starts[from], layer.ends[to - 1]);
  }
  if (depth === DEEPEST) return;
  for (const encoding of encodings) {
    const plain = undo(layer, encoding);
    if (plain) mark(hidden, plain, secret, depth + 1);
  }
}

/** The longest part of a secret that is the same in every encoding: searching for it is cheap, and nearly always enough. */
export const unencoded = (secret: string) =>
  (secret.match(/[A-Za-z0-9]+/g) ?? []).reduce((longest, part) => (part.length > longest.length ? part : longest), "");

function redactText(text: string, secrets: { secret: string; core: string }[]): string {
  const present = secrets.filter(({ core }) => text.includes(core));
  if (present.length === 0) return text;
  const hidden: boolean[] = Array(text.length).fill(false);
  const positions = Array.from(hidden, (_, i) => i);
  const whole = { text, starts: positions, ends: positions.map((i) => i + 1) };
  for (const { secret } of present) mark(hidden, whole, secret);
  return Array.from(hidden, (isHidden, i) => (isHidden ? (hidden[i - 1] ? "" : "***") : text[i])).join("");
}

/** Makes the function that redacts secrets, in any form that they can have in a response. */
export function createRedactor(texts: string[]): Redact {
  const secrets = texts.filter((text) => text !== "").map((text) => ({ secret: fold(text), core: unencoded(text) }));
  if (secrets.length === 0) return (value) => value;
  const redact = (part: unknown): unknown => {
    if (typeof part === "string") return redactText(part, secrets);
    if (Array.isArray(part)) return part.map(redact);
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [redact(name), redact(inner)]));
  };
  return redact as Redact;
}

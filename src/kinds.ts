import { parseUrl } from "./url.js";

/** Why a text is not allowed; the editor has a sentence for each. */
type Violation = "long" | "control" | "segment" | "choice" | "count" | "property" | "server";

/** The constraints of a field. */
interface Constraints {
  /** The allowed values, each with its label. */
  values?: Record<string, string>;
  /** The minimum of a whole number. */
  min?: number;
}

interface Accepted {
  /** The JavaScript types that are accepted. */
  types: readonly ("string" | "number" | "boolean")[];
  /** The value is never quoted in an error, and its spaces are kept. */
  secret?: true;
  /** The maximum number of characters. */
  longest?: number;
  /** The text as it is sent. */
  clean(text: string, limits: Constraints): string;
  /** Why a clean text is invalid. */
  fault(text: string, limits: Constraints): Violation | undefined;
  /** The allowed values, as the end of the sentence "… must be": of a text, the part of the rule that it breaks. */
  expected(limits: Constraints, fault?: Violation): string;
}

const LONGEST = 8192;
/** The usual length of a name in a database. */
const LONGEST_SEGMENT = 255;

const scalar = ["string", "number"] as const;
const trim = (text: string) => text.trim();

/**
 * Text of at most `longest` characters. Control characters are never part of a parameter, and lone surrogates cannot be
 * encoded. `example` ends the rule.
 */
const plain = (noun: string, { example = "", longest = LONGEST } = {}) => ({
  types: scalar,
  longest,
  clean: trim,
  fault: (text: string): Violation | undefined =>
    text.length > longest ? "long" : /[\p{Cc}\p{Cs}]/u.test(text) ? "control" : undefined,
  expected(_: Constraints, fault?: Violation): string {
    if (fault === "long") return `${noun} of at most ${longest} characters`;
    return noun + (fault === "control" ? " without control characters" : example);
  },
});
const text = plain("text");
const segment = plain("text or a number", { longest: LONGEST_SEGMENT });

/** Finds a value by its name or its English label, in upper or lower case. */
function choose(text: string, { values = {} }: Constraints): string {
  if (Object.hasOwn(values, text)) return text;
  const sought = text.trim().toLowerCase();
  const found = Object.entries(values).find(
    ([value, label]) => value.toLowerCase() === sought || label.toLowerCase() === sought,
  );
  return found?.[0] ?? text;
}
const unknown = (text: string, { values = {} }: Constraints) => (Object.hasOwn(values, text) ? undefined : "choice");
/** A value with its label, if that differs. */
export const named = (value: string, label = value) =>
  value.toLowerCase() === label.toLowerCase() ? value : `${value} (${label})`;
/** A property of a message, as Node-RED writes it: `report`, `row.report`, `reports[0]`, `row["a b"]`. */
const PROPERTY = /^(?!.*(?:__proto__|prototype|constructor))[\w$]+(?:\.[\w$]+|\[\d+\]|\["[^"]+"\]|\['[^']+'\])*$/;
/** Properties that Node-RED or these nodes use themselves. */
const reserved = ["_msgid", "parts", "req", "res", "seo"];
const words = new Map([
  ["true", "1"],
  ["false", "0"],
]);
const SERVER = /^(rediss?|postgres(ql)?):\/\//i;

/** The values that each kind accepts. The schemas of the runtime and the validation in the editor both use it. */
const kinds = {
  text: plain("text or a number"),
  // A number is the time of an Inject node, and never a page.
  url: { ...plain("text", { example: " such as https://example.com/pricing" }), types: ["string"] },
  secret: { ...text, secret: true, clean: (own) => own },
  segment: {
    ...segment,
    fault: (text) => segment.fault(text) ?? (/[/\\]|^\.\.?$/.test(text) ? "segment" : undefined),
    expected: (limits, fault) =>
      fault === "segment" ? 'text or a number without slashes, and not "." or ".."' : segment.expected(limits, fault),
  },
  choice: {
    types: scalar,
    clean: choose,
    fault: unknown,
    expected: ({ values = {} }) =>
      `one of ${Object.entries(values)
        .map((one) => named(...one))
        .join(", ")}`,
  },
  flag: {
    types: ["string", "number", "boolean"],
    clean: (text, limits) => choose(words.get(text.trim().toLowerCase()) ?? text, limits),
    fault: unknown,
    expected: () => "0 (no) or 1 (yes)",
  },
  count: {
    types: scalar,
    clean: (text) => String(Number(text)),
    fault: (text, { min = 0 }) => (Number.isSafeInteger(Number(text)) && Number(text) >= min ? undefined : "count"),
    expected: ({ min = 0 }) => `a whole number, ${min} or greater`,
  },
  node: { types: ["string"], clean: trim, fault: () => undefined, expected: () => "a node ID" },
  property: {
    types: ["string"],
    clean: (text) => text.trim().replace(/^msg\./, ""),
    fault: (text) =>
      !PROPERTY.test(text) || reserved.includes(text.split(/[.[]/, 1)[0] ?? "") ? "property" : undefined,
    expected: () => `a property of msg other than ${reserved.join(", ")}`,
  },
  server: {
    ...text,
    secret: true,
    fault: (url) => text.fault(url) ?? (SERVER.test(url) && parseUrl(url)?.hostname ? undefined : "server"),
    expected: () => "the URL of a server: redis://, rediss:// or postgres://, and a host",
  },
  // Only the editor adds values, because the context stores depend on Node-RED's settings.
  store: {
    types: ["string"],
    clean: trim,
    fault: (text, limits) => limits.values && unknown(text, limits),
    expected: () => "the name of a context store",
  },
} as const satisfies Record<string, Accepted>;

/** The kind of a field. The editor's input for each is in nodes/editor/page.ts. */
export type Kind = keyof typeof kinds;

/** The row of a kind, typed alike for all kinds. */
export const kindOf = (kind: Kind): Accepted => kinds[kind];

/** True if a value is not sent. The `password` of a report record is a boolean, so a boolean is no password. */
export function isBlank(kind: Kind, value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return kindOf(kind).secret
    ? value === "" || typeof value === "boolean"
    : typeof value === "string" && value.trim() === "";
}

/** How a field depends on others. */
export interface Dependent extends Constraints {
  /** The value that applies if nothing is set. */
  default?: string;
  /** The value that another field must have if this one is set. */
  when?: Record<string, string>;
  /** The values of other fields that together require this one. */
  requiredIf?: Record<string, string>;
}

/**
 * The field whose value forbids `name` if that is set, or requires it if not, and the value that it must have, or has. Of several that
 * require it together, the first whose value is not its default. `read` returns the values that are set.
 */
export function conflictOf(
  fields: Record<string, Dependent>,
  name: string,
  isSet: boolean,
  read: (name: string) => string | undefined,
): { other: string; needed: string } | undefined {
  const { when = {}, requiredIf = {} } = fields[name] ?? {};
  const actual = (other: string) => read(other) ?? fields[other]?.default;
  const conditions = Object.entries(isSet ? when : requiredIf).map(([other, needed]) => ({ other, needed }));
  if (isSet) return conditions.find(({ other, needed }) => ![undefined, needed].includes(actual(other)));
  if (!conditions.every(({ other, needed }) => actual(other) === needed)) return undefined;
  return conditions.find(({ other, needed }) => fields[other]?.default !== needed);
}

/** True if none of the fields in `effects` is set to anything but its default. */
export const isIdle = (
  fields: Record<string, Dependent>,
  effects: readonly string[],
  read: (name: string) => string | undefined,
): boolean =>
  effects.length > 0 && effects.every((name) => [undefined, "", fields[name]?.default].includes(read(name)));

/** The name in `${NAME}` or `$(NAME)`, by Node-RED's own rule: the environment variable must be the whole value. */
export const variableIn = (value: unknown): string | undefined =>
  /^\$(?:\{(\S+)\}|\((\S+)\))$/
    .exec(String(value ?? ""))
    ?.slice(1)
    .find(Boolean);

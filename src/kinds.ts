/** Why a text is not allowed; the editor has a sentence for each. */
export type Fault = "long" | "control" | "segment" | "choice" | "count";

/** What a kind needs to know of the field that it reads. */
export interface Limits {
  /** The allowed values, each with its label. */
  values?: Record<string, string>;
  /** The least whole number. */
  min?: number;
}

interface Accepted {
  /** The JavaScript types that a message can bring it as. */
  types: readonly ("string" | "number" | "boolean")[];
  /** It is never quoted, and its spaces are kept. */
  secret?: true;
  /** The greatest number of characters. */
  longest?: number;
  /** The text as it is sent. */
  clean(text: string, limits: Limits): string;
  /** What is wrong with a clean text. */
  fault(text: string, limits: Limits): Fault | undefined;
  /** What is allowed, as the end of the sentence "… must be". */
  expected(limits: Limits): string;
}

const LONGEST = 8192;
/** The usual length of a database's name column; a longer name would only be unknown. */
const LONGEST_SEGMENT = 255;

const scalar = ["string", "number"] as const;
const trim = (text: string) => text.trim();

/** Control characters and lone surrogates: no parameter can hold them, and the latter cannot be encoded. */
const unsendable = (text: string, longest: number) =>
  text.length > longest ? "long" : /[\p{Cc}\p{Cs}]/u.test(text) ? "control" : undefined;

/** Finds a value by itself or by its English label, whatever the case. */
function choose(text: string, { values = {} }: Limits): string {
  if (Object.hasOwn(values, text)) return text;
  const sought = text.trim().toLowerCase();
  const found = Object.entries(values).find(
    ([value, label]) => value.toLowerCase() === sought || label.toLowerCase() === sought,
  );
  return found?.[0] ?? text;
}
const unknown = (text: string, { values = {} }: Limits) => (Object.hasOwn(values, text) ? undefined : "choice");
const named = ([value, label]: [string, string]) =>
  value.toLowerCase() === label.toLowerCase() ? value : `${value} (${label})`;
const words: Record<string, string> = { true: "1", false: "0" };

/** What each kind of value accepts: for the schemas of a message's parameters, and for the editor's dialogs. */
export const kinds = {
  text: {
    types: scalar,
    longest: LONGEST,
    clean: trim,
    fault: (text) => unsendable(text, LONGEST),
    expected: () => `text or a number of at most ${LONGEST} characters, without control characters`,
  },
  secret: {
    types: scalar,
    secret: true,
    longest: LONGEST,
    clean: (text) => text,
    fault: (text) => unsendable(text, LONGEST),
    expected: () => `text of at most ${LONGEST} characters, without control characters`,
  },
  segment: {
    types: scalar,
    longest: LONGEST_SEGMENT,
    clean: trim,
    fault: (text) => unsendable(text, LONGEST_SEGMENT) ?? (/[/\\]|^\.\.?$/.test(text) ? "segment" : undefined),
    expected: () =>
      `text or a number of at most ${LONGEST_SEGMENT} characters, without slashes or control characters, and not "." or ".."`,
  },
  choice: {
    types: scalar,
    clean: choose,
    fault: unknown,
    expected: ({ values = {} }) => `one of ${Object.entries(values).map(named).join(", ")}`,
  },
  flag: {
    types: ["string", "number", "boolean"],
    clean: (text, limits) => choose(words[text.trim().toLowerCase()] ?? text, limits),
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
} as const satisfies Record<string, Accepted>;

/** How a value is checked, and how the editor asks for it (nodes/editor/page.ts). */
export type Kind = keyof typeof kinds;

/** The row of a kind, without what only that kind has. */
export const kindOf = (kind: Kind): Accepted => kinds[kind];

/** True of a value that is not sent. A report record's `password` is a boolean that says whether there is one. */
export function isBlank(kind: Kind, value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return kindOf(kind).secret
    ? value === "" || typeof value === "boolean"
    : typeof value === "string" && value.trim() === "";
}

/** The name of the environment variable that Node-RED replaces a property by: all of it is `${NAME}` or `$(NAME)`. */
export const variableIn = (value: unknown): string | undefined =>
  /^\$(?:\{(\S+)\}|\((\S+)\))$/
    .exec(String(value ?? ""))
    ?.slice(1)
    .find(Boolean);

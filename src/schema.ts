import { z } from "zod";
import { SeoError } from "./errors.js";
import type { Field, Kind } from "./operations.js";

/** A value and where it came from, as a message names it: `msg.payload.privacy`. */
export interface Given {
  value: unknown;
  from: string;
}

const LONGEST = 8192;
/** The usual length of a database's name column; more would only be an unknown id. */
const LONGEST_SEGMENT = 255;

/** Control characters and lone surrogates: no parameter may hold them, and the latter cannot be encoded. */
const unsendable = /[\p{Cc}\p{Cs}]/u;

const scalar = z.union([z.string(), z.number()]);
const plain = scalar.transform(String);
const trimmed = scalar.transform((value) => String(value).trim());
const sendable = (longest: number) => (text: string) => text.length <= longest && !unsendable.test(text);

const choice = (values: Record<string, string>) => {
  const byName = new Map(
    Object.entries(values).flatMap(([value, label]) => [
      [label.toLowerCase(), value],
      [value.toLowerCase(), value],
    ]),
  );
  return trimmed.transform((text) => byName.get(text.toLowerCase()) ?? "").refine((value) => value !== "");
};

/** How each kind is checked. What comes out is what is sent. */
const schemas: Record<Kind, (field: Field) => z.ZodType<string>> = {
  text: () => trimmed.refine(sendable(LONGEST)),
  secret: () => plain.refine(sendable(LONGEST)),
  segment: () => trimmed.refine((text) => sendable(LONGEST_SEGMENT)(text) && !/[/\\]|^\.\.?$/.test(text)),
  choice: ({ values = {} }) => choice(values),
  flag: () =>
    z
      .union([z.boolean().transform(Number), plain])
      .pipe(choice({ 0: "no", 1: "yes" }).or(choice({ 0: "false", 1: "true" }))),
  count: ({ min = 0 }) => plain.transform(Number).pipe(z.number().int().min(min)).transform(String),
  node: () => z.string(),
};

const list = (values: Record<string, string>) =>
  Object.entries(values)
    .map(([value, label]) => (value.toLowerCase() === label.toLowerCase() ? value : `${value} (${label})`))
    .join(", ");

/** What each kind may be, as the end of the sentence "… must be". */
const allowed: Record<Kind, (field: Field) => string> = {
  text: () => `text or a number of at most ${LONGEST} characters, without control characters`,
  secret: () => `text of at most ${LONGEST} characters, without control characters`,
  segment: () =>
    `text or a number of at most ${LONGEST_SEGMENT} characters, without slashes or control characters, and not "." or ".."`,
  choice: ({ values = {} }) => `one of ${list(values)}`,
  flag: () => "0 (no) or 1 (yes)",
  count: ({ min = 0 }) => `a whole number, ${min} or greater`,
  node: () => "a node ID",
};

/** A report record's `password` is a boolean that says whether there is one. */
const isBlank = (kind: Kind, value: unknown) =>
  value === undefined ||
  value === null ||
  (kind === "secret" ? value === "" || typeof value === "boolean" : typeof value === "string" && value.trim() === "");

/** What came, short, and never the text of a secret. */
function show(kind: Kind, value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (kind === "secret" || typeof value === "object" || typeof value === "function") return `of type ${typeof value}`;
  const text = String(value);
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/**
 * Makes the check of a set of fields. The check returns what is set, by name, ready to be sent;
 * it throws an SeoError with `code`, which names the field, what it may be, what came and from where.
 */
export function checker(fields: Record<string, Field>, code: "SEO_INPUT" | "SEO_CONFIG" = "SEO_INPUT") {
  const checks = Object.entries(fields).map(([name, field]) => ({ name, field, schema: schemas[field.kind](field) }));
  return (given: Record<string, Given>): Record<string, string> => {
    const input: Record<string, string> = {};
    for (const { name, field, schema } of checks) {
      const { value, from } = given[name] as Given;
      if (isBlank(field.kind, value)) {
        if (field.required) throw new SeoError(code, `${name} is required, but ${from} is blank.`);
        continue;
      }
      const result = schema.safeParse(value);
      if (!result.success) {
        throw new SeoError(
          code,
          `${name} must be ${allowed[field.kind](field)}; ${from} is ${show(field.kind, value)}.`,
        );
      }
      input[name] = result.data;
    }
    return input;
  };
}

/** Reads a node's own properties, with the table's default for what is blank; absent is what has none. Throws an SeoError with `code`. */
export function readSettings(
  fields: Record<string, Field>,
  config: Record<string, unknown>,
  code?: "SEO_INPUT" | "SEO_CONFIG",
): Record<string, string> {
  const own = Object.entries(fields).filter(([, { kind }]) => kind !== "node");
  const given = Object.fromEntries(own.map(([name]) => [name, { value: config[name], from: `the node's ${name}` }]));
  const read = checker(Object.fromEntries(own), code)(given);
  for (const [name, { default: preset = "", unlimited }] of own) {
    if (preset !== "" && !(unlimited && config[name] !== undefined)) read[name] ??= preset;
  }
  return read;
}

import { z } from "zod";
import { SeoError } from "./errors.js";
import { conflictOf, type Dependent, isBlank, type Kind, kindOf, named } from "./kinds.js";
import type { Field } from "./operations.js";

const scalars = { string: z.string(), number: z.number(), boolean: z.boolean() };

/** The schema of one field. Its output is the text that is sent. */
function schemaOf(name: string, field: Field): z.ZodType<string> {
  const kind = kindOf(field.kind);
  const wrong = `${name} must be ${kind.expected(field)}`;
  return z
    .union(
      kind.types.map((type) => scalars[type]),
      { error: ({ input }) => (input === undefined ? `${name} is required` : wrong) },
    )
    .transform((value) => kind.clean(String(value), field))
    .refine((text) => kind.fault(text, field) === undefined, { error: wrong });
}

/** The actual value for an error message: shortened, and without the text of a secret. */
function show(kind: Kind, value: unknown): string {
  if (Array.isArray(value)) return "an array (put a Split node in front)";
  if (kindOf(kind).secret || typeof value === "object" || typeof value === "function") return `of type ${typeof value}`;
  const text = String(value);
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

type Fields = Record<string, Field & Dependent>;

/** The schema of a set of fields, which may depend on each other. */
function schemaOfAll(fields: Fields) {
  const shape: Record<string, z.ZodType<string | undefined>> = {};
  for (const [name, field] of Object.entries(fields)) {
    const one = schemaOf(name, field);
    shape[name] = field.required ? one : one.optional();
  }
  let all = z.object(shape);
  for (const [name, { when = {} }] of Object.entries(fields)) {
    for (const [other, needed] of Object.entries(when)) {
      all = all.refine((values) => !(values[name] && conflictOf(fields, name, (one) => values[one])), {
        path: [other],
        error: `${other} must be ${named(needed, fields[other]?.values?.[needed])} if ${name} is set`,
        // An invalid value already has its own message.
        when: ({ issues }) => !issues.some(({ path }) => path?.[0] === name || path?.[0] === other),
      });
    }
  }
  return all;
}

/**
 * Creates the function that validates a set of fields. It returns the values that are set, ready to be sent, or throws one
 * SeoError with `code` that names every invalid field, what is allowed, the actual value and its `source`.
 */
export function createValidator(fields: Fields, code: "SEO_INPUT" | "SEO_CONFIG" = "SEO_INPUT") {
  const entries = Object.entries(fields);
  const schema = schemaOfAll(fields);
  return (given: Record<string, unknown>, source = (name: string) => name): Record<string, string> => {
    const set: Record<string, unknown> = {};
    for (const [name, { kind }] of entries) {
      const value = given[name];
      if (!isBlank(kind, value)) set[name] = value;
    }
    const result = schema.safeParse(set);
    if (result.success) return result.data as Record<string, string>;
    const sentences = result.error.issues.map(({ path, message }) => {
      const name = String(path[0]);
      const actual = name in set ? show((fields[name] as Field).kind, set[name]) : "blank";
      return `${message}; ${source(name)} is ${actual}.`;
    });
    throw new SeoError(code, sentences.join(" "));
  };
}

/** Validates a node's own properties and adds the defaults of the table. Throws an SeoError with `code`. */
export function readSettings(
  fields: Record<string, Field>,
  config: Record<string, unknown>,
  code?: "SEO_INPUT" | "SEO_CONFIG",
): Record<string, string> {
  const own = Object.entries(fields).filter(([, { kind }]) => kind !== "node");
  const read = createValidator(Object.fromEntries(own), code)(config, (name) => `the node's ${name}`);
  for (const [name, { default: preset = "", unlimited }] of own) {
    if (preset !== "" && !(unlimited && config[name] !== undefined)) read[name] ??= preset;
  }
  return read;
}

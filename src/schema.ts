import { z } from "zod";
import { SeoError } from "./errors.js";
import { isBlank, type Kind, kindOf } from "./kinds.js";
import type { Field } from "./operations.js";

const scalars = { string: z.string(), number: z.number(), boolean: z.boolean() };

/** The schema of one field: what comes out is what is sent. */
function schemaOf(name: string, field: Field): z.ZodType<string> {
  const kind = kindOf(field.kind);
  const error = `${name} must be ${kind.expected(field)}`;
  return z
    .union(
      kind.types.map((type) => scalars[type]),
      { error },
    )
    .transform((value) => kind.clean(String(value), field))
    .refine((text) => kind.fault(text, field) === undefined, { error });
}

/** What came, short, and never the text of a secret. */
function show(kind: Kind, value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (kindOf(kind).secret || typeof value === "object" || typeof value === "function") return `of type ${typeof value}`;
  const text = String(value);
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/**
 * Makes the function that validates a set of fields. It returns what is set, by name, ready to be sent;
 * it throws one SeoError with `code` that names every invalid field, what is allowed, what came and, by `source`, from where.
 */
export function createValidator(fields: Record<string, Field>, code: "SEO_INPUT" | "SEO_CONFIG" = "SEO_INPUT") {
  const entries = Object.entries(fields);
  const schema = z.object(
    Object.fromEntries(
      entries.map(([name, field]) => {
        const one = schemaOf(name, field);
        return [name, field.required ? one : one.optional()];
      }),
    ),
  );
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
      return name in set
        ? `${message}; ${source(name)} is ${show((fields[name] as Field).kind, set[name])}.`
        : `${name} is required, but ${source(name)} is blank.`;
    });
    throw new SeoError(code, sentences.join(" "));
  };
}
/** Reads a node's own properties, with the table's default for what is blank; absent is what has none. Throws an SeoError with `code`. */
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

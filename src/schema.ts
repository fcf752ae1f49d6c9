import { z } from "zod";
import { pageKey } from "./address.js";
import { invalidParams } from "./errors.js";
import { isObject, type Json } from "./json.js";
import { conflictOf, isBlank, type Kind, kindOf, named } from "./kinds.js";
import type { Field, NodeType, Operation } from "./operations.js";

const scalars = { string: z.string, number: z.number, boolean: z.boolean };

/** Whether a number may be another one than was meant: as an ID, it names another record. */
const isRounded = (value: unknown) => Number.isInteger(value) && !Number.isSafeInteger(value);

/** The schema of one field. Its output is the text that is sent. */
function schemaOf(name: string, field: Field) {
  const kind = kindOf(field.kind);
  const sentence = (fault?: ReturnType<typeof kind.fault>) => `${name} must be ${kind.expected(field, fault)}`;
  const error = sentence();
  return z
    .union(
      // A union of one type has the error of that type.
      kind.types.map((type) => scalars[type]({ error })),
      { error },
    )
    .refine((value) => !isRounded(value), { error: `${name} must be text: JavaScript rounds a number of this size` })
    .transform((value) => kind.clean(String(value), field))
    .refine((text) => kind.fault(text, field) === undefined, {
      error: ({ input }) => sentence(kind.fault(String(input), field)),
    });
}

/** The actual value for an error message: shortened, and without the text of a secret. */
function show(kind: Kind, value: unknown): string {
  if (isBlank(kind, value)) return "blank";
  if (Array.isArray(value)) return "an array (in Node-RED, put a Split node in front)";
  if (kindOf(kind).secret || typeof value === "object" || typeof value === "function") return `of type ${typeof value}`;
  if (typeof value !== "string") return String(value);
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
}

/**
 * Creates the function that validates a set of fields. It returns the values that are set, ready to be sent, or throws one
 * SeoError with `code` that names every invalid field, what is allowed, the actual value and its `source`.
 */
export function createValidator(fields: Record<string, Field>, code: "SEO_INPUT" | "SEO_CONFIG" = "SEO_INPUT") {
  const rows = Object.entries(fields).map(([name, field]) => ({
    name,
    field,
    schema: schemaOf(name, field),
    /** The last valid value, and its text: most are the same in each message. No password is kept. */
    cached: { value: undefined as unknown, text: "" },
  }));
  const dependent = rows.filter(({ field }) => field.when ?? field.requiredIf);
  return (given: Record<string, unknown>, source = (name: string) => name): Record<string, string> => {
    const texts: Record<string, string> = {};
    const problems: Record<string, string> = {};
    const refuse = (name: string, rule = "") => {
      problems[name] = `${rule}; ${source(name)} is ${show(fields[name]?.kind ?? "text", given[name])}.`;
    };
    for (const row of rows) {
      const { name, field, schema, cached } = row;
      const value = given[name];
      if (value !== undefined && value === cached.value) texts[name] = cached.text;
      else if (isBlank(field.kind, value)) {
        if (field.required) refuse(name, `${name} is required`);
      } else {
        const { data, error } = schema.safeParse(value);
        if (error) refuse(name, error.issues[0]?.message);
        else {
          texts[name] = data;
          if (field.kind !== "secret") row.cached = { value, text: data };
        }
      }
    }
    const read = (name: string) => texts[name];
    for (const { name } of dependent) {
      const isSet = Boolean(texts[name]);
      const { other = "", needed = "" } = conflictOf(fields, name, isSet, read) ?? {};
      if (!other || problems[isSet ? other : name]) continue;
      const value = named(needed, fields[other]?.values?.[needed]);
      if (isSet) refuse(other, `${other} must be ${value} if ${name} is set`);
      else refuse(name, `${name} is required if ${other} is ${value}`);
    }
    if (Object.keys(problems).length > 0) throw invalidParams(problems, code);
    return texts;
  };
}

/** Validates a node's own properties and adds the defaults of the table. Throws an SeoError with `code`. */
export function readSettings(
  fields: Record<string, Field>,
  config: Record<string, unknown>,
  code?: "SEO_INPUT" | "SEO_CONFIG",
  source = (name: string) => `the node's ${name}`,
): Record<string, string> {
  const read = createValidator(fields, code)(config, source);
  for (const [name, { default: preset = "", unlimited }] of Object.entries(fields)) {
    if (preset !== "" && !(unlimited && config[name] !== undefined)) read[name] ??= preset;
  }
  return read;
}

/** The main parameter in an object that contains it, or in a response that wraps such an object in `data`, and where it is in there. */
function mainIn(value: unknown, names: string[]): [value: unknown, place: string] {
  if (!isObject(value)) return [value, ""];
  function find(holder: unknown, place: string): [unknown, string] | undefined {
    const name = isObject(holder) ? names.find((one) => Object.hasOwn(holder, one)) : undefined;
    return name === undefined ? undefined : [(holder as Json)[name], `${place}.${name}`];
  }
  return find(value, "") ?? find(value.data, ".data") ?? [undefined, `.${names.at(-1)}`];
}

const validators = new Map<NodeType, ReturnType<typeof createValidator>>();

/**
 * Validates an input against its row, and returns the values that are set, as they are sent. Throws SEO_INPUT, which says
 * `from` where a value came, such as `msg.payload.privacy`.
 */
export function validateInput(
  row: NodeType,
  input: Record<string, unknown>,
  from: Record<string, string> = {},
): Record<string, string> {
  const validate = validators.get(row) ?? createValidator(row.params);
  validators.set(row, validate);
  const { main = "" } = row;
  const { wire = main } = row.params[main] ?? {};
  const whole = input[main];
  const [value, place] = mainIn(whole, [main, wire]);
  const source = (name: string) => (from[name] ?? name) + (name === main ? place : "");
  return validate(value === whole ? input : { ...input, [main]: value }, source);
}

/** The page or the record that an input is about, for a sentence: `example.com/a`, `report ID 7`. */
export function subjectOf({ main = "", params }: NodeType, { [main]: value = "" }: Record<string, string>): string {
  const { kind, label = "" } = params[main] ?? {};
  return kind === "url" ? pageKey(value) : `${label.charAt(0).toLowerCase()}${label.slice(1)} ${value}`;
}

/** The secrets in an input. */
export function secretsOf({ params }: Operation, input: Record<string, string>): string[] {
  const secrets: string[] = [];
  for (const param in input) if (kindOf(params[param]?.kind ?? "text").secret) secrets.push(String(input[param]));
  return secrets;
}

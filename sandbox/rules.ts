import { readAddress } from "./address.js";

export type Fields = Record<string, string>;
export type Answer = { status: number; body: object; headers?: Record<string, string> };

/** Says what is wrong with a value, or nothing. */
export type Rule = (value: string) => string | undefined;
export type Rules = Record<string, Rule>;

export class Refusal extends Error {
  readonly answer: Answer;

  constructor(status: number, message: string | Record<string, string[]>) {
    super(`refused with ${status}`);
    // Answers about values repeat their status, as the real service does; the sandbox's own complaints say it once.
    this.answer = { status, body: typeof message === "string" ? { message } : { message, status } };
  }
}

const LONGEST = 2048;

export const text: Rule = (value) =>
  value.length > LONGEST ? `may not be longer than ${LONGEST} characters` : undefined;

export const oneOf =
  (...allowed: string[]): Rule =>
  (value) =>
    allowed.includes(value) ? undefined : `must be one of: ${allowed.join(", ")}`;

export const pageNumber: Rule = (value) =>
  /^[1-9]\d{0,8}$/.test(value) ? undefined : "must be a whole number from 1 on";

export const webAddress: Rule = (value) =>
  text(value) ?? (readAddress(value) ? undefined : "must be an http or https URL with a host, or a domain");

/** Reads `a=1&b=2` and throws a 400 for everything in it that the interface does not name. */
export function readFields(encoded: string, rules: Rules, kind: "query parameter" | "form field"): Fields {
  const fields: Fields = {};
  for (const pair of encoded === "" ? [] : encoded.split("&")) {
    const [name, value, ...rest] = pair.split("=").map((part) => decode(part, kind));
    if (!name || value === undefined || rest.length > 0) {
      throw new Refusal(400, `Malformed ${kind} ${JSON.stringify(pair)}: must be name=value.`);
    }
    const what = `${kind} ${JSON.stringify(name)}`;
    if (!Object.hasOwn(rules, name)) {
      throw new Refusal(400, `Unknown ${what}; allowed here: ${Object.keys(rules).join(", ") || "none"}.`);
    }
    if (Object.hasOwn(fields, name)) throw new Refusal(400, `The ${what} was sent twice.`);
    if (value === "") throw new Refusal(400, `The ${what} is empty; leave it out instead.`);
    fields[name] = value;
  }
  return fields;
}

/** Throws a 422 with the messages of all fields that are missing or hold a value that the service does not take. */
export function checkValues(fields: Fields, rules: Rules, required: readonly string[] = []): void {
  const problems: Record<string, string[]> = {};
  for (const name of required) {
    if (fields[name] === undefined) problems[name] = [`The ${name} field is required.`];
  }
  for (const [name, value] of Object.entries(fields)) {
    const problem = rules[name]?.(value);
    if (problem) problems[name] = [`The ${name} ${problem}.`];
  }
  if (Object.keys(problems).length > 0) throw new Refusal(422, problems);
}

function decode(part: string, kind: string): string {
  try {
    if (/[^\x21-\x7e]/.test(part)) throw new URIError("not encoded");
    return decodeURIComponent(part.replaceAll("+", " "));
  } catch {
    throw new Refusal(400, `Malformed ${kind}: ${JSON.stringify(part)} is not percent-encoded UTF-8.`);
  }
}

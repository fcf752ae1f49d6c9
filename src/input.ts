import { pageKey } from "./address.js";
import { isObject } from "./json.js";
import { kindOf } from "./kinds.js";
import type { NodeType, Operation } from "./operations.js";
import { createValidator } from "./schema.js";

/** Takes the main parameter out of an object that contains it, or out of a response that wraps such an object in `data`. */
function mainIn(value: unknown, names: string[]): unknown {
  if (!isObject(value)) return value;
  for (const holder of [value, value.data]) {
    if (!isObject(holder)) continue;
    for (const name of names) if (Object.hasOwn(holder, name)) return holder[name];
  }
  return undefined;
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
  const value = mainIn(whole, [main, wire]);
  const inside = value === undefined && typeof whole === "object" && whole !== null ? `.${wire}` : "";
  const source = (name: string) => (from[name] ?? name) + (name === main ? inside : "");
  return validate(value === whole ? input : { ...input, [main]: value }, source);
}

/** The page or the record that an input is about, for a sentence: `example.com/a`, `report ID 7`. */
export function subjectOf({ main = "", params }: NodeType, { [main]: value = "" }: Record<string, string>): string {
  const { kind, label = "" } = params[main] ?? {};
  return kind === "url" ? pageKey(value) : `${label.charAt(0).toLowerCase()}${label.slice(1)} ${value}`;
}

/** The secrets in an input. */
export const secretsOf = (row: Operation, input: Record<string, string>) =>
  Object.entries(input)
    .filter(([param]) => kindOf(row.params[param]?.kind ?? "text").secret)
    .map(([, text]) => text);

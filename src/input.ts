import type { NodeType, Operation } from "./operations.js";
import { checker, type Given } from "./schema.js";

/** The main parameter may come as a record that has it, or as an answer that wraps one in `data`; a record without it has none. */
function unwrap(value: unknown, names: string[]): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const { data } = value as { data?: unknown };
  for (const holder of [value, data]) {
    if (typeof holder !== "object" || holder === null) continue;
    for (const name of names) if (Object.hasOwn(holder, name)) return (holder as Record<string, unknown>)[name];
  }
  return undefined;
}

const checks = new Map<NodeType, ReturnType<typeof checker>>();

/** Checks an input against its row: what is set, as it is sent. Throws SEO_INPUT. */
export function checkInput(
  row: NodeType,
  input: Record<string, unknown>,
  from: Record<string, string>,
): Record<string, string> {
  const known = checks.get(row) ?? checker(row.params);
  checks.set(row, known);
  const given: Record<string, Given> = {};
  for (const [param, { wire }] of Object.entries(row.params)) {
    const own = input[param];
    const value = param === row.main ? unwrap(own, [param, wire ?? param]) : own;
    const inside = typeof own === "object" && own !== null && value === undefined ? `.${wire ?? param}` : "";
    given[param] = { value, from: (from[param] ?? param) + inside };
  }
  return known(given);
}

/** The texts in an input that nobody else may read. */
export const secretsOf = (row: Operation, input: Record<string, string>) =>
  Object.entries(input)
    .filter(([param]) => row.params[param]?.kind === "secret")
    .map(([, text]) => text);

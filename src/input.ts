import type { NodeType, Operation } from "./operations.js";
import { checker, type Given } from "./schema.js";

/** The main parameter may come as a record that has it, or as an answer that wraps one in `data`. */
function unwrap(value: unknown, names: string[]): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const { data } = value as { data?: unknown };
  for (const holder of [value, data]) {
    if (typeof holder !== "object" || holder === null) continue;
    for (const name of names) if (Object.hasOwn(holder, name)) return (holder as Record<string, unknown>)[name];
  }
  return value;
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
    const value = param === row.main ? unwrap(input[param], [param, wire ?? param]) : input[param];
    given[param] = { value, from: from[param] ?? param };
  }
  return known(given);
}

/** The texts in an input that nobody else may read. */
export const secretsOf = (row: Operation, input: Record<string, string>) =>
  Object.keys(row.params).flatMap((param) =>
    row.params[param]?.kind === "secret" && input[param] !== undefined ? [input[param]] : [],
  );

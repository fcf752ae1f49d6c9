import type { Base } from "../config.js";
import type { Operation, Param } from "../operations.js";

/** What is sent, beside the headers. */
export interface Request {
  method: string;
  path: string;
  body: string | undefined;
  /** The record that the path names: `report ID 27`. */
  subject?: string;
}

/**
 * Makes a row's request from a validated input, which holds only what is set.
 * `extra` is added to the query: the page or the cursor, which the interface's document does not mention.
 */
export function buildRequest(
  row: Operation,
  input: Record<string, string>,
  { prefix }: Base,
  { method = row.method, extra = {} }: { method?: string | undefined; extra?: Record<string, string> | undefined } = {},
): Request {
  const query = new URLSearchParams();
  const form = new URLSearchParams();
  let path = row.path;
  let subject: string | undefined;
  for (const name in input) {
    const value = input[name];
    const { place, label = "", wire = name }: Partial<Param> = row.params[name] ?? {};
    if (value === undefined || place === undefined) continue;
    if (place === "path") {
      path = path.replace(`{${wire}}`, () => encodeURIComponent(value));
      subject = `${label.charAt(0).toLowerCase()}${label.slice(1)} ${value}`;
    } else (place === "query" ? query : form).append(wire, value);
  }
  for (const [name, value] of Object.entries(extra)) query.append(name, value);
  return {
    method,
    path: `${prefix}${path}${query.size > 0 ? `?${query}` : ""}`,
    body: form.size > 0 ? form.toString() : undefined,
    ...(subject !== undefined && { subject }),
  };
}

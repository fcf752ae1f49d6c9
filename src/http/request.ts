import type { Base } from "../config.js";
import type { Operation } from "../operations.js";
import { subjectOf } from "../schema.js";

/** A request without its headers, and the input that it is made from. */
export type Request = ReturnType<typeof buildRequest>;

/** Encodes a value as URLSearchParams does, which takes three times as long for the many values that need no encoding. */
const encodeForm = (value = "") =>
  /^[\w.*-]*$/.test(value) ? value : new URLSearchParams([["", value]]).toString().slice(1);

/**
 * Makes a row's request from a validated input, which holds only what is set.
 * `extra` is added to the query: the page or the cursor, which no row has.
 */
export function buildRequest(
  row: Operation,
  input: Record<string, string>,
  { prefix }: Base,
  { method = row.method, extra = {} }: { method?: string | undefined; extra?: Record<string, string> | undefined } = {},
) {
  const isTemplate = row.path.includes("{");
  let path = row.path;
  let fields = "";
  for (const name in input) {
    const value = input[name];
    const param = row.params[name];
    if (value === undefined || !param || param.reads !== undefined) continue;
    const { wire = name } = param;
    if (isTemplate && path.includes(`{${wire}}`)) path = path.replace(`{${wire}}`, () => encodeURIComponent(value));
    else fields += `&${wire}=${encodeForm(value)}`;
  }
  const hasForm = !["GET", "DELETE"].includes(method);
  let query = hasForm ? "" : fields;
  for (const name in extra) query += `&${name}=${encodeForm(extra[name])}`;
  return {
    row,
    input,
    method,
    path: `${prefix}${path}${query.replace("&", "?")}`,
    body: hasForm && fields ? fields.slice(1) : undefined,
    /** The record that the path names: `report ID 27`. */
    subject: isTemplate ? subjectOf(row, input) : undefined,
  };
}

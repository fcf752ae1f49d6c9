import type { Json } from "./json.js";

/** The content of a response: its `data`, or the response itself. */
export function unwrap(body: unknown): unknown {
  const { data = body } = Object(body) as { data?: unknown };
  return data;
}

/** A project has no ID; an ID is text or a number. */
export function isReport(record: unknown): record is Json {
  const { id } = Object(record) as Json;
  return typeof id === "number" || typeof id === "string";
}

/** The reports in a response: a list, or one by itself. */
export function reportsIn(body: unknown): Json[] {
  const data = unwrap(body);
  return [data].flat().filter(isReport);
}

export const idOf = (record: Json) => String(record.id);

/** The URL of a report; blank if it has none. */
export const urlIn = ({ url }: Json) => (typeof url === "string" ? url : "");

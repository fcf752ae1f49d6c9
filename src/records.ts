import { SeoError } from "./errors.js";
import type { Json } from "./json.js";
import type { Response } from "./responses.js";

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

/** The report in a response; undefined if there is none. A list is not one, however short: a gateway can have sent another request. */
export function reportIn(body: unknown): Json | undefined {
  const data = unwrap(body);
  return isReport(data) ? data : undefined;
}

/** The reports in a response: a list, or one by itself. */
export function reportsIn(body: unknown): Json[] {
  const data = unwrap(body);
  // An array of arrays that is made flat takes four times as long.
  return (Array.isArray(data) ? data : [data]).filter(isReport);
}

/** A response that does not come from a cache: that would say what was. Otherwise throws SEO_RESPONSE. */
export function current<R extends Pick<Response, "headers">>(response: R): R {
  // Two caches can have written two ages, which together are no number.
  if (/[1-9]/.test(String(response.headers.age)))
    throw new SeoError("SEO_RESPONSE", "The response comes from a cache.");
  return response;
}

/** The records of a list of reports. Throws SEO_RESPONSE if one has no ID: nobody knows then which of them are new. */
export function asReports({ records, response }: { records: unknown[]; response: Pick<Response, "headers"> }): Json[] {
  current(response);
  if (records.every(isReport)) return records;
  throw new SeoError("SEO_RESPONSE", "The list contains a report without id.");
}

export const idOf = (record: Json) => String(record.id);

/** The URL of a report; blank if it has none. */
export const urlIn = ({ url }: Json) => (typeof url === "string" ? url : "");

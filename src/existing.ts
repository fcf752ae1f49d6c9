import { parseDate } from "./dates.js";
import type { Json } from "./json.js";
import type { CallResponse } from "./responses.js";

/** The action if the account has a report of the page: a new one anyway, a new analysis of it, or that report. */
export type Existing = "create" | "regenerate" | "return";

/** The outcome of a page; `fresh`: its report is recent enough, and nothing was created or regenerated. */
type Success = NonNullable<CallResponse["outcome"]>;

export const DAY = 86_400_000;

/** When a report was generated, or else created, in milliseconds; -Infinity if it does not say. */
export const dateOf = ({ generated_at, created_at }: Json): number => {
  const date = parseDate(generated_at ?? created_at);
  return Number.isNaN(date) ? Number.NEGATIVE_INFINITY : date;
};

/** Whether `id` was given later than `other`. */
const isHigher = (id: string, other: string) =>
  /^\d+$/.test(id) && /^\d+$/.test(other) ? BigInt(id) > BigInt(other) : id > other;

/** Whether a report is the page's report rather than another of the same page. */
export const isNewer = (record: Json, other: Json): boolean =>
  dateOf(record) === dateOf(other) ? isHigher(String(record.id), String(other.id)) : dateOf(record) > dateOf(other);

/**
 * Decides the outcome of a page. `record` is the page's report, if there is one. `maxAge` is in days; `now` is in milliseconds,
 * by the service's clock. A report whose date cannot be read is regenerated: another one could be a duplicate.
 */
export function decide(existing: Existing, maxAge: number | undefined, record: Json | undefined, now: number): Success {
  if (existing === "create" || !record) return "created";
  const recent = maxAge === undefined ? existing === "return" : now - dateOf(record) <= maxAge * DAY;
  if (recent) return "fresh";
  return existing === "regenerate" || !Number.isFinite(dateOf(record)) ? "regenerated" : "created";
}

import { parseDate } from "../dates.js";
import type { Json } from "../json.js";
import { idOf } from "../records.js";

/**
 * The newest report before a request was sent. `rank` is its ID, or its creation date in milliseconds if the IDs are not
 * numbers; `ids` are the reports of that rank.
 */
export interface Watermark {
  /** Absent: there was no report. */
  of?: "id" | "created_at";
  rank: number;
  ids: string[];
}

/** The facts that identify the effect of a request, known before it is sent. Plain JSON, so that it can outlive the process. */
export interface Intent {
  /** Identifies the request, also in another process. */
  id?: string | undefined;
  watermark?: Watermark | undefined;
  /** When the report was last generated, for an update. */
  generatedAt?: string | undefined;
  /** The service's time before sending, if the process that sent it had not seen that date: another request can have moved it before. */
  since?: number | undefined;
  /** Milliseconds for which earlier processes knew that it was sent; the rest is not known. */
  age?: number | undefined;
}

/** An ID that is too long for a number orders nothing: two of them can be rounded to the same. */
export const isNumber = (id: unknown) => /^\d+$/.test(String(id)) && Number.isSafeInteger(Number(id));

/** The place of a report in the order of creation; NaN if that is not known. */
export function rankOf({ id, created_at }: Json, of: Watermark["of"] = isNumber(id) ? "id" : "created_at"): number {
  if (of === "created_at") return parseDate(created_at);
  return isNumber(id) ? Number(id) : Number.NaN;
}

/** Whether a report of this rank and ID was created after the watermark. */
export const isBeyond = (own: number, id: string, { rank, ids }: Watermark) =>
  own > rank || (own === rank && !ids.includes(id));

export const isAfter = (record: Json, watermark: Watermark) =>
  isBeyond(rankOf(record, watermark.of), idOf(record), watermark);

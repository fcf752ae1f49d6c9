import { SeoError } from "../errors.js";
import type { Json } from "../json.js";
import { asReports, idOf, reportsIn } from "../records.js";
import type { Response } from "../responses.js";
import { isBeyond, rankOf, type Watermark } from "./watermark.js";

/** The calls that a look can make. They go through the client's budget. */
export interface Requester {
  request(type: string, input: Record<string, string>): Promise<Response>;
  /** Reads a list page by page, each only when it is needed. */
  pages(
    type: string,
    input: Record<string, string>,
  ): AsyncIterable<{ records: unknown[]; total: number | undefined; response: Response }>;
}

/** The pages of a list down to a watermark. */
export interface Reading {
  /** Also some below the watermark: a report can be listed after one with a higher ID. */
  records: Json[];
  /** The last page was full of records of earlier pages: the list may have more, which the service did not return. */
  repeats: boolean;
  /** How many records the list had when the reading began, as far as it says. */
  total: number;
  /** The newest report that was known before. */
  newest: Watermark | undefined;
  response: Response | undefined;
  startedAt: number;
}

/** The smallest page that can be requested: a list with fewer records has no other page. */
export const SMALLEST_PAGE = 10;
/** The order of a list whose newest reports are needed. */
export const NEWEST = { sort_by: "id", sort: "desc" };

/**
 * Whether a list has every report after a watermark: it goes back to the watermark, or to its end if there was no report, and
 * has the newest report that is known.
 */
export function covers({ records, repeats, total, newest }: Reading, watermark: Watermark): boolean {
  const { of, rank } = watermark;
  const isListed = (id: string) => records.some((record) => idOf(record) === id);
  if (newest?.ids.some((id) => isBeyond(newest.rank, id, watermark) && !isListed(id))) return false;
  if (of === undefined) return !repeats && records.length >= total;
  const lowest = rankOf(records.at(-1) ?? {}, of);
  // An ID belongs to one report, but a second to several.
  return lowest < rank || (lowest === rank && (of === "id" || !repeats));
}

/**
 * The listed reports down to the page that passes a watermark, newest first. Rejects if the list is not sorted, or became
 * shorter. `covers` says whether the reading is complete.
 */
export async function readAfter(
  { pages }: Requester,
  list: string,
  watermark: Watermark,
  before: Pick<Reading, "newest" | "startedAt">,
): Promise<Reading> {
  const reading: Reading = { records: [], repeats: false, total: 0, response: undefined, ...before };
  let lowest = Number.POSITIVE_INFINITY;
  let latest = 0;
  for await (const page of pages(list, { ...NEWEST, per_page: "25" })) {
    const { total = latest } = page;
    if (total < latest) throw new SeoError("SEO_RESPONSE", "The list of reports became shorter while it was read.");
    latest = total;
    reading.total ||= total;
    reading.response = page.response;
    reading.repeats = page.records.length === 0 && reportsIn(page.response.body).length >= SMALLEST_PAGE;
    for (const record of asReports(page)) {
      const rank = rankOf(record, watermark.of);
      if (!(rank <= lowest)) throw new SeoError("SEO_RESPONSE", "The list of reports is not sorted by date.");
      lowest = rank;
      reading.records.push(record);
    }
    if (lowest < watermark.rank) break;
  }
  return reading;
}

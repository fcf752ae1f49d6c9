import { pageKey } from "../address.js";
import { clockOf } from "../dates.js";
import { DAY, dateOf, isNewer, needOf } from "../existing.js";
import type { Json } from "../json.js";
import { reportsIn } from "../records.js";
import type { List } from "./list.js";
import type { Requests } from "./requests.js";
import type { Batch } from "./store.js";

const LIST = "seo-report-list";
const NEWEST = { sort_by: "generated_at", sort: "desc", per_page: "100" };
const AT_ONCE = 100;

/**
 * Finds out which of a list's pages have a report, by reading the account's list of reports until nothing more can change:
 * each page was found, or only reports that are too old are left. `fresh` gets the pages that need no request.
 */
export async function makePlan(
  batch: Batch,
  { list, pages }: { list: List; pages: number },
  requests: Requests,
  fresh: (page: number, record: Json) => Promise<void>,
): Promise<void> {
  const { existing, maxAge } = list;
  const found = new Map<number, Json>();
  /** Reports that need no request. As long as the list is not sorted, a newer one of the same page can follow. */
  const recent = new Map<number, Json>();
  let sorted = true;
  let last = Number.POSITIVE_INFINITY;

  async function endRecent(): Promise<void> {
    const all = [...recent];
    recent.clear();
    while (all.length > 0) await Promise.all(all.splice(0, AT_ONCE).map(([page, record]) => fresh(page, record)));
  }

  for await (const { records, response } of requests.pages(LIST, NEWEST)) {
    const now = clockOf(response.headers);
    for (const record of reportsIn(records)) {
      if (typeof record.generated_at === "string") {
        sorted &&= dateOf(record) <= last;
        last = dateOf(record);
      }
      const page = batch.find(list, pageKey(String(record.url)));
      if (page === undefined) continue;
      const known = found.get(page);
      if (known && !isNewer(record, known)) continue;
      const need = needOf(existing, maxAge, record, now);
      if (need === "fresh") recent.set(page, record);
      const { id, generated_at, created_at } = record;
      if (need === "regenerate")
        batch.plan(page, {
          report: String(id),
          generatedAt: typeof generated_at === "string" ? generated_at : undefined,
        });
      found.set(page, { id, generated_at, created_at });
    }
    if (!sorted) continue;
    await endRecent();
    if (found.size === pages) break;
    if (existing === "return" && maxAge !== undefined && last < now - maxAge * DAY) break;
  }
  await endRecent();
  batch.planned(list);
}

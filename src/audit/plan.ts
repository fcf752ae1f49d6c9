import { pageKey } from "../address.js";
import { clockOf } from "../dates.js";
import { DAY, dateOf, decide, isNewer } from "../existing.js";
import type { Json } from "../json.js";
import { reportsIn } from "../records.js";
import type { Batch } from "./batch.js";
import type { Plan, Settings } from "./entries.js";
import type { Requests } from "./requests.js";
import { listOf, pageOf } from "./state.js";

const LIST = "seo-report-list";
const NEWEST = { sort_by: "generated_at", sort: "desc", per_page: "100" };
const AT_ONCE = 100;
/** So often the list is read at most. */
const MOST_READINGS = 3;
/** Pages in one entry of the journal. */
const PLANS = 1000;

/**
 * Finds out which pages of a list have a report, by reading the account's list of reports until nothing more can change: each
 * page was found, or only reports that are too old are left. A report that is generated meanwhile moves to
 * where the list was read before: then it is read again. `fresh` gets the pages that need no request.
 */
export async function makePlan(
  batch: Batch,
  list: number,
  requests: Requests,
  fresh: (page: number, record: Json) => Promise<void>,
): Promise<void> {
  const { state } = batch;
  const { existing, maxAge } = state.lists[list] as Settings;
  const isListed = (page: number) => batch.isWaiting(page) && listOf(state, page) === list;
  const pages = state.inputs.reduce((count, _, row) => count + Number(isListed(row)), 0);
  const plans = new Map<number, Plan>();
  const found = new Map<number, Json>();
  /** Reports that need no request. As long as the list is not sorted, a newer one of the same page can follow. */
  const recent = new Map<number, Json>();
  function see(record: Json, now: number): void {
    const page = pageOf(state, pageKey(String(record.url)));
    if (page === undefined || !isListed(page)) return;
    const known = found.get(page);
    if (known && !isNewer(record, known)) return;
    const outcome = decide(existing, maxAge, record, now);
    const { id, generated_at, created_at } = record;
    const generatedAt = typeof generated_at === "string" ? generated_at : undefined;
    if (outcome === "fresh") recent.set(page, record);
    if (outcome === "regenerated") plans.set(page, { page, report: String(id), generatedAt });
    found.set(page, { id, generated_at, created_at });
  }

  async function endRecent(): Promise<void> {
    const all = [...recent];
    recent.clear();
    while (all.length > 0) await Promise.all(all.splice(0, AT_ONCE).map(([page, record]) => fresh(page, record)));
  }

  /** Reads the list. Returns whether reports were missed. */
  async function read(): Promise<boolean> {
    let sorted = true;
    let last = Number.POSITIVE_INFINITY;
    let misses = false;
    for await (const { records, response, truncated = false } of requests.pages(LIST, NEWEST)) {
      if (state.dropped) return false;
      misses = truncated;
      const now = clockOf(response.headers);
      for (const record of reportsIn(records)) {
        if (typeof record.generated_at === "string") {
          sorted &&= dateOf(record) <= last;
          last = dateOf(record);
        }
        see(record, now);
      }
      if (!sorted) continue;
      await endRecent();
      if (found.size === pages) return false;
      if (existing === "return" && maxAge !== undefined && last < now - maxAge * DAY) return false;
    }
    return misses;
  }

  for (let times = 0; times < MOST_READINGS && (await read()); times++);
  if (state.dropped) return;
  await endRecent();
  const all = [...plans.values()];
  while (all.length > 0) await batch.write({ type: "plan", list, pages: all.splice(0, PLANS) });
  await batch.write({ type: "planned", list });
}

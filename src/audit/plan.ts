import { pageKey } from "../address.js";
import { clockOf } from "../dates.js";
import { SeoError } from "../errors.js";
import { DAY, dateOf, decide, isNewer } from "../existing.js";
import type { Json } from "../json.js";
import { asReports, reportsIn, urlIn } from "../records.js";
import type { Batch } from "./batch.js";
import { Census } from "./census.js";
import type { Plan, Settings } from "./entries.js";
import { LIST, type Requests } from "./requests.js";
import { pageOf } from "./state.js";
import { outdated } from "./trouble.js";

const LATEST_FIRST = { sort_by: "generated_at", sort: "desc", per_page: "100" };
const AT_ONCE = 100;
/** So often the list is read at most. */
const MOST_READINGS = 3;
/** Pages in one entry of the journal. */
const PLANS = 1000;

/** Days after which a report does not change what the pages of a list need. */
const ageOf = ({ existing, maxAge = Number.POSITIVE_INFINITY }: Settings) =>
  existing === "return" ? maxAge : Number.POSITIVE_INFINITY;

/**
 * Finds out which pages of all unplanned lists have a report, by reading the account's list of reports until nothing more can
 * change: each page was found, or only reports that are too old are left. A report that is generated meanwhile moves to
 * where the list was read before: then it is read again. `fresh` gets the pages that need no request; `began` is
 * called with each page that has arrived.
 */
export async function makePlan(
  batch: Batch,
  requests: Requests,
  fresh: (page: number, record: Json) => Promise<void>,
  began: () => void,
): Promise<void> {
  const { state } = batch;
  // Lists that join meanwhile are planned next.
  const lists = new Map(state.lists.map((list, at) => [at, list] as const).filter(([, { planned }]) => !planned));
  /** The list that a page waits for, if it is planned here. */
  const listed = (page: number) => (batch.isWaiting(page) ? lists.get(state.listOf[page] as number) : undefined);
  const pages = state.inputs.reduce((count, _, row) => count + Number(listed(row) !== undefined), 0);
  /** Days. An older report has no effect. */
  const oldest = [...lists.values()].reduce((days, list) => Math.max(days, ageOf(list)), 0);
  const plans = new Map<number, Plan>();
  const found = new Map<number, Json>();
  /** Reports that need no request. As long as the list is not sorted, a newer one of the same page can follow. */
  const recent = new Map<number, Json>();
  /** Undefined as long as no report was found. */
  let hasUrls: boolean | undefined;
  function see(record: Json, now: number): void {
    const url = urlIn(record);
    hasUrls ||= url !== "";
    const page = pageOf(state, pageKey(url));
    const list = page === undefined ? undefined : listed(page);
    if (page === undefined || !list) return;
    const known = found.get(page);
    if (known && !isNewer(record, known)) return;
    const outcome = decide(list.existing, list.maxAge, record, now);
    const { id, generated_at, created_at } = record;
    plans.delete(page);
    const generatedAt = typeof generated_at === "string" ? generated_at : undefined;
    if (outcome === "fresh") recent.set(page, record);
    if (outcome === "regenerated")
      plans.set(page, { page, list: state.listOf[page] as number, report: String(id), generatedAt });
    found.set(page, { id, generated_at, created_at });
  }

  async function endRecent(): Promise<void> {
    const all = [...recent];
    recent.clear();
    // Meanwhile, a list can have changed their settings.
    const end = async ([page, record]: [number, Json]) => listed(page) && fresh(page, record);
    while (all.length > 0) await Promise.all(all.splice(0, AT_ONCE).map(end));
  }

  const census = new Census();
  /** Reads the list. Returns whether reports were missed; undefined if only another reading can show it. */
  async function read(): Promise<boolean | undefined> {
    let sorted = true;
    let previous = Number.POSITIVE_INFINITY;
    let isCut = false;
    census.begin();
    for await (const listed of requests.pages(LIST, LATEST_FIRST)) {
      const { response, total, truncated = false } = listed;
      if (state.dropped) return false;
      if (state.paused) throw outdated;
      began();
      isCut = truncated;
      const now = clockOf(response.headers);
      const reports = asReports(listed);
      census.add(reports, reportsIn(response.body).length, total);
      for (const record of reports) {
        if (typeof record.generated_at === "string") {
          const date = dateOf(record);
          sorted &&= Number.isFinite(date) && date <= previous;
          previous = date;
        }
        see(record, now);
      }
      if (!sorted) continue;
      await endRecent();
      if (found.size === pages) return false;
      if (previous < now - oldest * DAY) return census.skips();
    }
    return census.misses(isCut);
  }

  let misses = true;
  for (let times = 0, before = -1; times < MOST_READINGS && misses; times++, before = found.size)
    misses = (await read()) ?? found.size > before;
  if (state.dropped) return;
  const problem = misses ? "is not complete" : hasUrls === false && "has no URLs";
  if (problem)
    throw new SeoError("SEO_RESPONSE", `Which pages have a report is unknown: the list of reports ${problem}.`);
  await endRecent();
  const all = [...plans.values()];
  while (all.length > 0) await batch.write({ type: "plan", pages: all.splice(0, PLANS) });
  await batch.write({ type: "planned", lists: [...lists.keys()] });
}

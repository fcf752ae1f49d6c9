import { allowedPage, bareUrl, isPage, pageKey, spellingsOf } from "./address.js";
import type { RequestOptions } from "./call.js";
import type { Client } from "./client.js";
import { clockOf } from "./dates.js";
import { invalidParams, SeoError } from "./errors.js";
import { decide, type Existing, isNewer } from "./existing.js";
import type { Json } from "./json.js";
import { type ListPage, readPages } from "./lists.js";
import { rowOf } from "./operations.js";
import { asReports, current, urlIn } from "./records.js";
import type { CallResponse } from "./responses.js";
import { validateInput } from "./schema.js";

const PAGE = { search_by: "url", per_page: "100" };
/** A longer text is cut: its beginning finds the page, too. */
const LONGEST_SEARCH = 200;
/** Pages of a list that are read for one text. */
const MOST_PAGES = 10;

/** The orders in which databases sort texts. A list that is in none of them proves nothing by its order. */
const byCode = (a: string, b: string) => (a < b ? -1 : Number(a > b));
const collations = [
  byCode,
  (a: string, b: string) => byCode(a.toUpperCase(), b.toUpperCase()),
  new Intl.Collator("en").compare,
  new Intl.Collator("en", { ignorePunctuation: true }).compare,
];

/** The report that a page has, if any, and the service's time in milliseconds. */
interface Match {
  record: Json | undefined;
  now: number;
}

/**
 * Finds the page's report, the one that was generated last, among those whose URL contains `search`: the newest 100, and
 * then, because a short URL is a part of many others, all in the order of their URLs until those of the page have passed.
 * Rejects if that does not show whether there is one.
 */
async function find(request: Client["request"], list: string, key: string, search: string): Promise<Match> {
  const match: Match = { record: undefined, now: Date.now() };
  // Half of a character cannot be sent.
  const text = search.slice(0, LONGEST_SEARCH).replace(/[\ud800-\udbff]$/, "");
  function read(order: Record<string, string>) {
    const query = { ...PAGE, ...order, search: text };
    return readPages((extra) => request(list, query, { extra }), query);
  }
  /** Whether the service stores URLs without a scheme. Otherwise, those of one page are not next to each other. */
  let isBare = true;
  function collect(page: ListPage<CallResponse>): string[] {
    const reports = asReports(page);
    for (const record of reports) {
      const url = urlIn(record);
      if (url === "") throw new SeoError("SEO_RESPONSE", "The list contains a report without url.");
      isBare &&= url === bareUrl(url);
      if (pageKey(url) !== key) continue;
      if (!match.record || isNewer(record, match.record)) match.record = record;
    }
    return reports.map(urlIn);
  }

  let newest = "";
  for await (const page of read({ sort_by: "generated_at", sort: "desc" })) {
    match.now = clockOf(page.response.headers);
    newest = collect(page).join(" ");
    if (match.record || (page.isLast && !page.truncated)) return match;
    break;
  }
  let why = `it is not among the first ${MOST_PAGES * 100} reports that match`;
  let orders = collations;
  let previous = "";
  let totalBefore = 0;
  for await (const listed of read({ sort_by: "url", sort: "asc" })) {
    const { page, isLast, truncated, total = 0 } = listed;
    const urls = collect(listed);
    // The same page again: the service ignores the order. If the total falls, rows move up to where the list was read before.
    if (urls.join(" ") === newest || total < totalBefore) orders = [];
    totalBefore = total;
    for (const url of urls) {
      orders = orders.filter((order) => order(previous, url) <= 0);
      previous = url;
    }
    const isBehind = (own: string) => orders.length > 0 && orders.every((order) => order(previous, own) > 0);
    if (isBare && [search, key, `${key}/`].every(isBehind)) return match;
    if (isLast && !truncated) return match;
    if (isLast) why = "the service did not return all reports that match";
    if (page === MOST_PAGES) break;
  }
  if (match.record) return match;
  throw new SeoError("SEO_RESPONSE", `Whether the page has a report is unknown: ${why} ${JSON.stringify(text)}.`);
}

/** Finds the page's report under each text as which the service can have written its URL. */
async function findReport(request: Client["request"], list: string, url: string): Promise<Match> {
  const key = pageKey(url);
  const [likely = "", ...others] = spellingsOf(url);
  let match = await find(request, list, key, likely);
  for (const spelling of others) if (!match.record) match = await find(request, list, key, spelling);
  return match;
}

/**
 * Sends an operation's request. One that creates a page's report can also regenerate or return the one that it has, as `existing`
 * and `maxAge` (days) say: it searches once all earlier requests that create the page's report have ended. Rejects as
 * `client.request` does.
 */
export function submit(
  client: Client,
  type: string,
  given: Record<string, string>,
  options: RequestOptions = {},
): Promise<CallResponse> {
  const { lookup, params } = rowOf(type);
  if (!params.existing) return client.request(type, given, options);
  const { existing = "create", maxAge, ...input } = given;
  const { url = "" } = input;
  const spent = { attempts: 0, duration: 0, waited: 0 };
  const request: Client["request"] = async (operation, values, more) => {
    // An input that is valid if the page has a report can lack what a new report needs.
    const response = await client.request(operation, validateInput(rowOf(operation), values), { ...options, ...more });
    spent.attempts += response.attempts;
    spent.duration += response.duration;
    spent.waited += response.waited;
    // Counted here, an error that the response leads to must not count it once more.
    return { ...response, attempts: 0 };
  };
  if (existing === "create" || !lookup?.list || !lookup.change)
    return client.request(type, input, options).then((response) => ({ ...response, outcome: "created" }));
  const { list, show, change } = lookup;
  const work = async () => {
    if (!isPage(url)) throw invalidParams({ url: `url ${allowedPage}; it is ${JSON.stringify(url.slice(0, 60))}.` });
    const { record, now } = await findReport(request, list, url);
    const outcome = decide(existing as Existing, maxAge === undefined ? undefined : Number(maxAge), record, now);
    const reportId = String(record?.id);
    const { url: _, ...access } = input;
    const requests = {
      created: () => request(type, input, { hasTurn: true }),
      regenerated: () => request(change, { ...access, reportId, update: "1" }),
      fresh: () => request(show, { reportId }).then(current),
    };
    return { ...(await requests[outcome]()), ...spent, outcome };
  };
  return client.inTurn(pageKey(url), options.task, work).catch((cause: unknown) => {
    if (!(cause instanceof SeoError)) throw cause;
    throw cause.with({ attempts: spent.attempts + (cause.details.attempts ?? 0) });
  });
}

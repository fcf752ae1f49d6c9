import { allowedPage, bareUrl, isPage, pageKey } from "./address.js";
import type { Answer, Client, SendOptions } from "./client.js";
import { clockOf } from "./dates.js";
import { invalidParams, SeoError } from "./errors.js";
import { type Existing, isNewer, type Need, needOf } from "./existing.js";
import { validateInput } from "./input.js";
import type { Json } from "./json.js";
import { rowOf } from "./operations.js";
import { readPages } from "./pages.js";

/** What became of a page; `fresh`: its report is recent enough, and nothing was created or regenerated. */
export type Outcome = "created" | "regenerated" | "fresh";

type Send = Client["send"];

const outcomes: Record<Need, Outcome> = { create: "created", regenerate: "regenerated", fresh: "fresh" };
const PAGE = { search_by: "url", per_page: "100" };
/** A longer text is cut: its beginning finds the page, too. */
const LONGEST_SEARCH = 200;
/** Pages of a list that are read for one text. */
const MOST_PAGES = 10;

/** The orders in which databases sort texts. A list that is in none of them proves nothing by its order. */
const { compare } = new Intl.Collator("en");
const byCode = (a: string, b: string) => (a < b ? -1 : Number(a > b));
const collations = [compare, byCode, (a: string, b: string) => byCode(a.toUpperCase(), b.toUpperCase())];

/** The page's report, and the service's time in milliseconds. */
interface Found {
  record: Json | undefined;
  now: number;
}

/**
 * Finds the page's report, the one that was generated last, among those whose URL contains `search`: the newest 100, and
 * then, because a short URL is a part of many others, all in the order of their URLs until those of the page have passed.
 * Rejects if the list does not show in 1,000 reports whether there is one.
 */
async function find(send: Send, list: string, key: string, search: string): Promise<Found> {
  const found: Found = { record: undefined, now: Date.now() };
  const text = search.slice(0, LONGEST_SEARCH);
  const read = (order: Record<string, string>) =>
    readPages((extra) => send(list, { ...PAGE, ...order, search: text }, { extra }));
  /** Whether the last record was the page's report. */
  function take(records: Json[]): boolean {
    let isLast = false;
    for (const record of records) {
      isLast = pageKey(String(record.url)) === key;
      if (isLast && (!found.record || isNewer(record, found.record))) found.record = record;
    }
    return isLast;
  }

  const namesOf = (records: unknown[]) => (records as Json[]).map(({ url }) => bareUrl(String(url)));
  let newest = "";
  for await (const { records, answer, isLast } of read({ sort_by: "generated_at", sort: "desc" })) {
    found.now = clockOf(answer.headers);
    take(records as Json[]);
    if (found.record || isLast) return found;
    newest = namesOf(records).join(" ");
    break;
  }
  let orders = collations;
  let last = "";
  for await (const { records, page, isLast } of read({ sort_by: "url", sort: "asc" })) {
    const more = take(records as Json[]);
    const names = namesOf(records);
    // The same page again: the service ignores the order.
    if (names.join(" ") === newest) orders = [];
    for (const name of names) {
      orders = orders.filter((order) => order(last, name) <= 0);
      last = name;
    }
    const isPast = found.record ? !more : orders.some((order) => order(last, search) > 0);
    if (isPast || isLast) return found;
    if (page === MOST_PAGES) break;
  }
  if (found.record) return found;
  throw new SeoError(
    "SEO_RESPONSE",
    `Whether the page has a report is unknown: more than ${MOST_PAGES * 100} reports match ${JSON.stringify(text)}, and their list is not in the order of their URLs.`,
  );
}

/** Finds the page's report by its URL as most services write it, and else by the text that was given. */
async function findReport(send: Send, list: string, url: string): Promise<Found> {
  const key = pageKey(url);
  const found = await find(send, list, key, key);
  const typed = bareUrl(url);
  const isPart = typed.toLowerCase().includes(key.toLowerCase());
  return found.record || isPart ? found : find(send, list, key, typed);
}

/**
 * Creates a page's report, or regenerates or returns the one that it has, as `existing` and `maxAge` (days) say.
 * Rejects as `client.send` does; two submissions of one page run one after the other.
 */
export async function submit(
  client: Client,
  type: string,
  { existing = "create", maxAge, ...input }: Record<string, string>,
  options: SendOptions = {},
): Promise<Answer & { outcome: Outcome }> {
  const { lookup } = rowOf(type);
  const { url = "" } = input;
  const spent = { attempts: 0, duration: 0, waited: 0 };
  const send: Send = async (operation, values, more) => {
    // An input that is valid if the page has a report can lack what a new report needs.
    const request = async () =>
      client.send(operation, validateInput(rowOf(operation), values), { ...options, ...more });
    const answer = await request().catch((cause: unknown) => {
      if (!(cause instanceof SeoError)) throw cause;
      throw cause.with({ attempts: spent.attempts + (cause.details.attempts ?? 0) });
    });
    spent.attempts += answer.attempts;
    spent.duration += answer.duration;
    spent.waited += answer.waited;
    return answer;
  };
  if (existing === "create" || !lookup?.list || !lookup.change)
    return { ...(await client.send(type, input, options)), outcome: "created" };
  if (!isPage(url)) throw invalidParams({ url: `url ${allowedPage}; it is ${JSON.stringify(url.slice(0, 60))}.` });
  const { list, show, change } = lookup;
  return client.inTurn(pageKey(url), options.task, async () => {
    const { record, now } = await findReport(send, list, url);
    const need = needOf(existing as Existing, maxAge === undefined ? undefined : Number(maxAge), record, now);
    const reportId = String(record?.id);
    const { url: _, ...access } = input;
    const sends = {
      create: () => send(type, input),
      regenerate: () => send(change, { ...access, reportId, update: "1" }),
      fresh: () => send(show, { reportId }),
    };
    const answer = await sends[need]();
    return { ...answer, ...spent, outcome: outcomes[need] };
  });
}

import { pageKey } from "../address.js";
import { parseDate } from "../dates.js";
import { SeoError } from "../errors.js";
import type { Response } from "../http/transport.js";
import type { Json } from "../json.js";
import { idOf, reportsIn } from "../records.js";
import type { Account } from "./account.js";
import { covers, type Reading, type Requester } from "./list.js";
import type { LookResult, OpenRequest, Search } from "./search.js";
import { judgeCreation, judgeUpdate, type NewReport } from "./verdict.js";
import { isAfter } from "./watermark.js";

/** The knowledge that all looks of a client share. `now` only rises. */
export interface Knowledge {
  account: Account;
  requester: Requester;
  open: ReadonlySet<OpenRequest>;
  now(): number;
}

/** Looks once. Rejects if the look proves nothing. `read` reads the list, for all that look at the same time. */
export async function look(
  knowledge: Knowledge,
  search: Search,
  read: (list: string) => Promise<Reading>,
): Promise<LookResult> {
  const { account } = knowledge;
  const { request, decides, readTo } = search;
  const { list } = request.lookup;
  if (!list) return lookAtReport(knowledge, search);
  if (!readTo) return { was: "undecided", records: [] };
  const seen = account.newest();
  const reading = await read(list);
  // Nor does a match count: it may be another request's report, and this one's be missing.
  if (!covers(reading, readTo)) throw new SeoError("SEO_RESPONSE", "The list of reports is not complete.");
  search.seen = seen;
  return lookInList(knowledge, search, reading, decides);
}

/** Looks for a created report among the listed ones. A report that is found is claimed at once. */
async function lookInList(
  knowledge: Knowledge,
  search: Search,
  { records, response, startedAt }: Reading,
  decides: boolean,
): Promise<LookResult> {
  const { account, open } = knowledge;
  const { request } = search;
  const judge = (isSettled: boolean) => {
    const reports = newReports(knowledge, request, records, decides);
    return judgeCreation(reports, { decides, isSettled, startedAt, doubted: search.doubted });
  };
  let verdict = judge(false);
  if (verdict.was === "unsettled") {
    await Promise.all([...open].map(({ settled }) => settled));
    if (!open.has(request)) return { was: "open" };
    verdict = judge(true);
  }
  if (verdict.was === "put off") search.doubted = verdict.addresses;
  if (verdict.was !== "carried out") return verdict;
  const { record } = verdict;
  account.claim(record, request.page, request.horizonAt, request.watermark);
  return present(knowledge, request, record, response).then(
    (response) => ({ was: "carried out", response }),
    () => ({ was: "undecided", records: [record] }),
  );
}

/** Shows the report of an update. */
async function lookAtReport({ requester, now }: Knowledge, search: Search): Promise<LookResult> {
  const { request, decides, dateAtFirst } = search;
  const { response, record } = await getReport(requester, request.lookup.show, {
    reportId: String(request.input.reportId),
  });
  const verdict = judgeUpdate({
    decides,
    record,
    before: request.generatedAt,
    atFirst: dateAtFirst,
    clock: parseDate(response.headers.date),
    elapsed: now() - request.sentAt,
  });
  if (!Number.isNaN(parseDate(record.generated_at))) search.dateAtFirst ??= String(record.generated_at);
  return verdict.was === "carried out" ? { was: "carried out", response } : verdict;
}

/** Looks share their records, and each compares all of them with all open requests. */
const keys = new WeakMap<Json, string>();
function keyOf(record: Json): string {
  const key = keys.get(record) ?? pageKey(String(record.url));
  keys.set(record, key);
  return key;
}

/** The reports since a request was sent, and what is known of each. Only a look that decides needs the other requests. */
function newReports(
  { account, open }: Knowledge,
  { page, watermark }: OpenRequest,
  records: Json[],
  decides: boolean,
): NewReport[] {
  const names = account.namesOf(page);
  const byName = decides ? requestsByName(account, open) : new Map<string, OpenRequest[]>();
  const newer = records.filter((record) => watermark && isAfter(record, watermark));
  return newer.map((record) => {
    const key = keyOf(record);
    const others = byName.get(key)?.filter(({ watermark }) => watermark && isAfter(record, watermark)) ?? [];
    return {
      record,
      isOfPage: names.includes(key),
      isOwn: account.has(page, watermark, record),
      claimedUntil: account.claimOf(record),
      others: others.map(({ horizonAt = 0 }) => horizonAt),
    };
  });
}

/** All open requests, by the names of their pages. */
function requestsByName(account: Account, open: Iterable<OpenRequest>): Map<string, OpenRequest[]> {
  const byName = new Map<string, OpenRequest[]>();
  for (const request of open)
    for (const name of account.namesOf(request.page)) {
      const same = byName.get(name);
      if (same) same.push(request);
      else byName.set(name, [request]);
    }
  return byName;
}

/** The response with a report. Rejects if it has none, or another one: a page that says "maintenance" proves nothing. */
async function getReport({ request }: Requester, type: string, input: Record<string, string> & { reportId: string }) {
  const response = await request(type, input);
  const [record] = reportsIn(response.body);
  if (record && idOf(record) === input.reportId) return { response, record };
  throw new SeoError("SEO_RESPONSE", "The response is not the report.");
}

/** The report in the shape of the response to a create request, with the privacy that was requested. */
async function present(
  { requester }: Knowledge,
  { lookup, input: { privacy, password } }: OpenRequest,
  record: Json,
  listed: Response | undefined,
): Promise<Response> {
  const reportId = idOf(record);
  if (lookup.change && privacy !== undefined && Number(record.privacy ?? 0) !== Number(privacy)) {
    const access = { privacy, ...(password !== undefined && { password }) };
    return (await getReport(requester, lookup.change, { reportId, ...access })).response;
  }
  const shown = await getReport(requester, lookup.show, { reportId }).catch((error: unknown) => {
    if (listed) return { response: { ...listed, body: { data: record } } };
    throw error;
  });
  return shown.response;
}

import { pageKey } from "../address.js";
import { parseDate } from "../dates.js";
import { SeoError } from "../errors.js";
import type { Json } from "../json.js";
import type { Lookup } from "../operations.js";
import { current, idOf, reportIn, urlIn } from "../records.js";
import type { Response } from "../responses.js";
import type { Account } from "./account.js";
import { covers, type Reading, type Requester } from "./list.js";
import { judgeCreation, judgeUpdate, type NewReport, type Verdict } from "./verdict.js";
import { type Intent, isAfter, type Watermark } from "./watermark.js";

/** A request whose outcome is not known: not sent yet, in flight, or with its response lost. */
export interface TrackedRequest extends Intent {
  lookup: Lookup;
  input: Record<string, string>;
  /** The page, or the report of an update. */
  page: string;
  /** When it was sent, in milliseconds that only rise. */
  sentAt: number;
  /** Resolves when the response of what is in flight arrived or was lost. */
  settled?: Promise<void>;
  /** From when the service does not work on it any more; known once its response was lost. */
  horizonAt?: number;
}

/** Whether an earlier process has sent it. */
export const isRestored = ({ settled }: TrackedRequest): boolean => settled === undefined;

/** The search for what became of one request, and what the looks so far have shown. */
export interface Search {
  readonly request: TrackedRequest;
  /** The newest report before the last look: the next one reads only newer reports. The deciding look reads everything. */
  seen?: Watermark | undefined;
  /** The addresses for which the decision was put off. */
  doubted?: ReadonlySet<string>;
  /** The date of an updated report at the first look. */
  dateAtFirst?: string;
}

/** A list that a look reads, down to a watermark. */
export interface ListNeed {
  request: TrackedRequest;
  list: string;
  readTo: Watermark;
}

/** The time that the reconciler goes by. */
export interface Time {
  /** Milliseconds that only rise. */
  now(): number;
  sleep(ms: number): Promise<unknown>;
}

/** The knowledge that all looks of a client share. */
export interface Knowledge extends Time {
  account: Account;
  requester: Requester;
  tracked: ReadonlySet<TrackedRequest>;
  /** The few whose response has neither arrived nor was lost, of thousands that are tracked. */
  inFlight: ReadonlySet<TrackedRequest>;
  /** Resolves when all audits have claimed the reports that earlier processes got. */
  claimed(): Promise<unknown>;
  /** Reads the list, for all that look at the same time. */
  read(need: ListNeed): Promise<Reading>;
}

/** The verdict of a look, with the response if the report was found. */
type LookResult = Exclude<Verdict, { was: "carried out" }> | { was: "carried out"; response: Response };

/** Looks once. Rejects if the look proves nothing. `decides`: it began after the horizon, so it can prove that the request had no effect. */
export async function look(knowledge: Knowledge, search: Search, decides: boolean): Promise<LookResult> {
  const { account, read } = knowledge;
  const { request } = search;
  const { list } = request.lookup;
  if (!list) return lookAtReport(knowledge, search, decides);
  const readTo = (decides ? undefined : search.seen) ?? request.watermark;
  if (!readTo) return { was: "undecided", records: [] };
  const seen = account.newest();
  const reading = await read({ request, list, readTo });
  // Nor does a match count: it may be another request's report, and this one's be missing.
  if (!covers(reading, readTo)) throw new SeoError("SEO_RESPONSE", "The list of reports is not complete.");
  search.seen = seen;
  return lookInList(knowledge, search, reading, decides);
}

/** Looks for a created report among the listed ones. A report that is found is claimed at once. */
async function lookInList(
  knowledge: Knowledge,
  search: Search,
  reading: Reading,
  decides: boolean,
): Promise<LookResult> {
  const { account, tracked, inFlight } = knowledge;
  const { request } = search;
  const { response, startedAt } = reading;
  const judge = (isSettled: boolean) => {
    const reports = newReports(knowledge, request, reading, decides);
    return judgeCreation(reports, { decides, isSettled, startedAt, doubted: search.doubted });
  };
  let verdict = judge(false);
  if (verdict.was === "unsettled") {
    const { open } = commonOf(knowledge, reading);
    const isUnclaimed = (record: Json) => isSince(request, record) && account.claimOf(record) === undefined;
    // A report that was there before a request was sent is not its effect.
    const mayBeOf = ({ watermark, lookup }: TrackedRequest) =>
      lookup.list && (!watermark || open.some((record) => isUnclaimed(record) && isAfter(record, watermark)));
    await Promise.all([...inFlight].filter(mayBeOf).map(({ settled }) => settled));
    if (!tracked.has(request)) return { was: "open" };
    verdict = judge(true);
  }
  if (verdict.was === "put off") search.doubted = verdict.addresses;
  if (verdict.was !== "carried out") return verdict;
  const { record } = verdict;
  account.claim(record, request.page, request.id, request.horizonAt);
  return present(knowledge, request, record, response).then(
    (response) => ({ was: "carried out", response }),
    () => ({ was: "undecided", records: [record] }),
  );
}

/** Shows the report of an update. */
async function lookAtReport(
  { account, requester, now }: Knowledge,
  search: Search,
  decides: boolean,
): Promise<LookResult> {
  const { request, dateAtFirst } = search;
  const reportId = String(request.input.reportId);
  const shown = await getReport(requester, request.lookup.show, { reportId }).catch((cause: unknown) => {
    if (cause instanceof SeoError && cause.details.missing) return undefined;
    throw cause;
  });
  // Sent again, it says that the report was deleted.
  if (!shown) return { was: decides ? "not carried out" : "open" };
  const { response, record } = shown;
  const verdict = judgeUpdate({
    decides,
    record,
    before: request.generatedAt,
    since: request.since,
    atFirst: dateAtFirst,
    clock: parseDate(response.headers.date),
    elapsed: now() - request.sentAt,
    isRestored: isRestored(request),
  });
  if (!Number.isNaN(parseDate(record.generated_at))) search.dateAtFirst ??= String(record.generated_at);
  if (verdict.was !== "carried out") return verdict;
  const owner = account.ownerOf(record) ?? request.id;
  // Another request has moved the date, perhaps one whose response was lost.
  if (owner !== request.id || hasOtherPrivacy(record, request)) return { was: "undecided", records: [record] };
  account.regenerated(record, request.id);
  return { was: "carried out", response };
}

/** Looks share their records, and each compares all of them with all tracked requests. */
const keys = new WeakMap<Json, string>();
function recordKey(record: Json): string {
  const key = keys.get(record) ?? pageKey(urlIn(record));
  keys.set(record, key);
  return key;
}

/** Whether a report was created since a request was sent. */
const isSince = ({ watermark }: TrackedRequest, record: Json) => watermark !== undefined && isAfter(record, watermark);

/** Whether a report has another privacy than was requested, as far as it says. */
const hasOtherPrivacy = ({ privacy }: Json, { input }: TrackedRequest) =>
  input.privacy !== undefined && Number(privacy ?? Number.NaN) >= 0 && Number(privacy) !== Number(input.privacy);

/** Whether a request can have created a report: it has the privacy that was requested, or is public, if the service did not apply it. */
const canBeOf = (request: TrackedRequest, record: Json) =>
  isSince(request, record) && (Number(record.privacy) === 0 || !hasOtherPrivacy(record, request));

/** The facts that looks at the same reading share: thousands of requests can look at once. */
interface Common {
  /** The reports that are not known to be another request's; also by their pages. */
  open: Json[];
  openByKey: Map<string, Json[]>;
  /**
   * The requests that were tracked at the first look, by the names of their pages. One that is sent later has created none of the
   * reports. One that is restored later can have: another one's outcome then stays uncertain.
   */
  byName: Map<string, TrackedRequest[]>;
}

const commons = new WeakMap<Reading, Common>();

function addTo<Value>(groups: Map<string, Value[]>, key: string, value: Value): void {
  const group = groups.get(key);
  if (group) group.push(value);
  else groups.set(key, [value]);
}

function commonOf({ account, tracked }: Knowledge, reading: Reading): Common {
  const known = commons.get(reading);
  if (known) return known;
  const { records, startedAt } = reading;
  const open = records.filter((record) => (account.claimOf(record) ?? Number.POSITIVE_INFINITY) > startedAt);
  const common: Common = { open, openByKey: new Map(), byName: new Map() };
  commons.set(reading, common);
  for (const record of open) addTo(common.openByKey, recordKey(record), record);
  for (const request of tracked) for (const name of account.namesOf(request.page)) addTo(common.byName, name, request);
  return common;
}

/** The reports since a request was sent that matter to its look, and what is known of each. */
function newReports(knowledge: Knowledge, request: TrackedRequest, reading: Reading, decides: boolean): NewReport[] {
  const { account, tracked } = knowledge;
  const { id, page } = request;
  const { open, openByKey, byName } = commonOf(knowledge, reading);
  const names = account.namesOf(page);
  const isOfPage = (record: Json) => names.includes(recordKey(record)) && canBeOf(request, record);
  // Only a restored request can have had its response.
  const mayOwn = isRestored(request) && id !== undefined;
  const isOwn = (record: Json) => mayOwn && account.creatorOf(record) === id;
  // Only a look that decides must explain the reports of other pages.
  const some = mayOwn ? reading.records : decides ? open : names.flatMap((name) => openByKey.get(name) ?? []);
  const newer = some.filter((record) => (decides || isOfPage(record) || isOwn(record)) && isSince(request, record));
  return newer.map((record) => ({
    record,
    isOfPage: isOfPage(record),
    isAtPage: recordKey(record) === page,
    isOwn: isOwn(record),
    claimedUntil: account.claimOf(record),
    others: (byName.get(recordKey(record)) ?? [])
      .filter((other) => tracked.has(other) && canBeOf(other, record))
      .map(({ horizonAt = 0 }) => horizonAt),
  }));
}

/** The response with a report. Rejects if it has none, or another one: a page that says "maintenance" proves nothing. */
async function getReport({ request }: Requester, type: string, input: Record<string, string> & { reportId: string }) {
  const response = current(await request(type, input));
  const record = reportIn(response.body);
  if (record && idOf(record) === input.reportId) return { response, record };
  throw new SeoError("SEO_RESPONSE", "The response is not the report.");
}

/** The report in the shape of the response to a create request, with the privacy that was requested. */
async function present(
  { requester }: Knowledge,
  { lookup, input: { privacy, password } }: TrackedRequest,
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

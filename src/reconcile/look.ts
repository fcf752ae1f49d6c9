import { pageKey } from "../address.js";
import { hasZone, parseDate } from "../dates.js";
import { type Details, SeoError } from "../errors.js";
import type { Response } from "../http/transport.js";
import type { Json } from "../json.js";
import type { Lookup } from "../operations.js";
import { idOf, reportsIn } from "../records.js";
import { type Account, isAfter, type Reading, type Requests, type Watermark } from "./account.js";

/** What identifies the effect of a request, known before it is sent. Plain JSON, so that it can outlive the process. */
export interface Intent {
  watermark?: Watermark | undefined;
  /** When the report was last generated, for an update. */
  generatedAt?: string | undefined;
}

/** An open request: not sent yet, in flight, or with its response lost. */
export interface Entry extends Intent {
  lookup: Lookup;
  input: Record<string, string>;
  /** The page, or the report of an update. */
  page: string;
  /** When it was sent, in milliseconds that only rise. */
  sentAt: number;
  /** Resolves when the response of what is in flight arrived or was lost. */
  answered?: Promise<void>;
  /** From when the service does not work on it any more; known once its response was lost. */
  until?: number;
  /** The addresses of the reports that may be its own although another message got them. */
  doubted?: Set<string> | undefined;
  /** The report's date at the first look. */
  seenAt?: string;
}

/** The reports that may be the one that was requested. */
export type Candidates = NonNullable<Details["candidates"]>;

/** What a look found out; undefined if it is too early to say. A look that decides can be put off. */
export type Finding =
  | { was: "carried out"; response: Response }
  | { was: "not carried out" }
  | { was: "undecided"; candidates: Candidates }
  | { was: "put off"; until: number }
  | undefined;

const MOST_CANDIDATES = 10;
/** Milliseconds after which a deciding look that proved nothing is repeated. */
export const REPEAT = 30_000;
/** A `Date` header has whole seconds. */
const SECOND = 1000;
/** Two clocks that differ by more prove nothing. */
const MINUTE = 60_000;
/** No clock and no time zone is wrong by more. */
const DAY = 86_400_000;

export const undecided = (records: Json[]): Finding => ({
  was: "undecided",
  candidates: records.slice(-MOST_CANDIDATES).map(({ id, url, created_at }) => ({ id, url, created_at })),
});

/** The response with a report. Rejects if it has none, or another one: a page that says "maintenance" proves nothing. */
async function getReport({ request }: Requests, type: string, input: Record<string, string> & { reportId: string }) {
  const response = await request(type, input);
  const [record] = reportsIn(response.body);
  if (record && idOf(record) === input.reportId) return { response, record };
  throw new SeoError("SEO_RESPONSE", "The response is not the report.");
}

/** The report in the shape of the response to a create request, with the privacy that was requested. */
async function present(requests: Requests, { lookup, input }: Entry, record: Json, listed: Response | undefined) {
  const reportId = idOf(record);
  const { privacy, password } = input;
  if (lookup.change && privacy !== undefined && Number(record.privacy ?? 0) !== Number(privacy)) {
    const access = { privacy, ...(password !== undefined && { password }) };
    return (await getReport(requests, lookup.change, { reportId, ...access })).response;
  }
  const shown = await getReport(requests, lookup.show, { reportId }).catch((error: unknown) => {
    if (listed) return { response: { ...listed, body: { data: record } } };
    throw error;
  });
  return shown.response;
}

/** Looks share their records, and each compares all of them with all open requests. */
const keys = new WeakMap<Json, string>();
function keyOf(record: Json): string {
  const key = keys.get(record) ?? pageKey(String(record.url));
  keys.set(record, key);
  return key;
}

/**
 * Finds a page's report among those after the watermark. If there is none and the look `decides`, the report was not created
 * if messages got all the others, and none of them can be this one: nobody knows where a page redirects.
 */
export async function lookInList(
  account: Account,
  requests: Requests,
  open: Set<Entry>,
  entry: Entry,
  { records, response, startedAt }: Reading,
  decides: boolean,
): Promise<Finding> {
  const later = records.filter((record) => entry.watermark && isAfter(record, entry.watermark));
  const unclaimed = () => later.filter((record) => account.claimOf(record) === undefined);
  const mine = () => {
    const names = account.namesOf(entry.page);
    return (
      later.find((record) => account.has(entry.page, entry.watermark, record)) ??
      unclaimed().findLast((record) => names.includes(keyOf(record)))
    );
  };
  if (unclaimed().length > 0 && (decides || mine())) {
    // A page that is in flight may redirect to this one: its response says whose report it is.
    await Promise.all([...open].map(({ answered }) => answered));
    if (!open.has(entry)) return undefined;
  }
  const found = mine();
  if (found) {
    account.claim(found, entry.page, entry.until, entry.watermark);
    return present(requests, entry, found, response).then(
      (response) => ({ was: "carried out", response }),
      () => undecided([found]),
    );
  }
  if (!decides) return undefined;
  /** All open requests, by the names of their pages. */
  const others = new Map<string, Entry[]>();
  for (const other of open)
    for (const name of account.namesOf(other.page)) {
      const same = others.get(name);
      if (same) same.push(other);
      else others.set(name, [other]);
    }
  const othersOf = (record: Json) =>
    (others.get(keyOf(record)) ?? []).filter(({ watermark }) => watermark && isAfter(record, watermark));
  const unexplained = unclaimed().filter((record) => othersOf(record).length === 0);
  if (unexplained.length > 0) return undecided(unexplained);
  // Another request of that page may have got this one's report, as long as its own can still be created.
  const doubtedUntil = (record: Json) =>
    account.claimOf(record) ?? Math.max(startedAt + REPEAT, ...othersOf(record).flatMap(({ until }) => until ?? []));
  const doubted = later.filter(
    (record) => doubtedUntil(record) > startedAt && (entry.doubted?.has(String(record.url)) ?? true),
  );
  if (doubted.length === 0) return { was: "not carried out" };
  entry.doubted ??= new Set(doubted.map(({ url }) => String(url)));
  return { was: "put off", until: doubted.reduce((last, record) => Math.max(last, doubtedUntil(record)), 0) };
}

const hasTime = (date: unknown) => /\d:\d\d:\d\d/.test(String(date));
/** Milliseconds between two dates, however they are written; NaN if only one has a time zone, or is a date. */
const between = (one: unknown, other: unknown) =>
  hasZone(one) === hasZone(other) ? Math.abs(parseDate(one) - parseDate(other)) : Number.NaN;

/**
 * Shows the report of an update: it took effect if its date moved, from the known one or past the time of sending in the
 * service's clock. The clock by itself proves little: it can be another server's, and a date can lack its time zone.
 */
export async function lookAtReport(
  requests: Requests,
  now: () => number,
  entry: Entry,
  decides: boolean,
): Promise<Finding> {
  const reportId = String(entry.input.reportId);
  const { response, record } = await getReport(requests, entry.lookup.show, { reportId });
  const { generated_at: at } = record;
  const date = parseDate(at);
  const clock = parseDate(response.headers.date);
  const sent = clock - (now() - entry.sentAt) - SECOND;
  const isOld = date < sent - DAY;
  const isLater = hasZone(at) && date >= sent && date <= clock + MINUTE;
  // Less than a second apart, they can be the same date, with and without a fraction.
  const apart = between(at, entry.generatedAt ?? entry.seenAt);
  if (!Number.isNaN(date)) entry.seenAt ??= String(at);
  if (!(apart < SECOND) && (isLater || (apart >= SECOND && !isOld))) return { was: "carried out", response };
  if (!decides) return undefined;
  // A day can have several.
  const isSame = entry.generatedAt !== undefined && apart === 0 && hasTime(at);
  return isOld || isSame ? { was: "not carried out" } : undecided([record]);
}

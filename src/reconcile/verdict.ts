import { hasZone, parseDate } from "../dates.js";
import { DAY } from "../existing.js";
import type { Json } from "../json.js";
import { urlIn } from "../records.js";

/**
 * The judgment of a look about a request whose response was lost, from what is known at that moment. The rules, and why:
 * docs/decisions/reconcile.md.
 */
export type Verdict =
  /** Too early to say; another look follows. */
  | { was: "open" }
  /** A response to a request in flight may say whose report it is. */
  | { was: "unsettled" }
  /** `record` is the report that was requested. */
  | { was: "carried out"; record: Json }
  | { was: "not carried out" }
  /** `records` may be the report that was requested. */
  | { was: "undecided"; records: Json[] }
  /** Reports of these addresses may be another request's, or this one's, until then. */
  | { was: "put off"; until: number; addresses: ReadonlySet<string> };

/** A report that was created after the request's watermark. */
export interface NewReport {
  record: Json;
  /** Its address is that of the requested page, or where the page redirected. */
  isOfPage: boolean;
  /** Its address is that of the requested page, which then does not redirect any more. */
  isAtPage: boolean;
  /** The request got it itself, before it was restored. */
  isOwn: boolean;
  /** Until when the report that a message got may be another one's; undefined if no message got it. */
  claimedUntil: number | undefined;
  /** The open requests that can have created it: until when each is worked on; 0 if that is not known yet. */
  others: number[];
}

/** A look at the list. */
export interface ListLook {
  /** The look began after the horizon of the request. */
  decides: boolean;
  /** The requests that were in flight at the time have their responses. */
  isSettled: boolean;
  startedAt: number;
  /** The addresses for which the decision was put off before. */
  doubted?: ReadonlySet<string> | undefined;
}

/** Milliseconds after which a deciding look that proved nothing is repeated. */
export const REPEAT = 30_000;
/** A `Date` header has whole seconds. */
const SECOND = 1000;
/** Two clocks that differ by more prove nothing. */
const MINUTE = 60_000;

const addressOf = ({ record }: NewReport) => urlIn(record);

/**
 * Judges a request that creates a report by the reports that were created since, the newest first. If its page has none and the
 * look decides, none was created if messages got all the others, and none of them can be this one: nobody knows where a
 * page redirects.
 */
export function judgeCreation(reports: NewReport[], { decides, isSettled, startedAt, doubted }: ListLook): Verdict {
  const unclaimed = reports.filter(({ claimedUntil }) => claimedUntil === undefined);
  const ofPage = unclaimed.filter(({ isOfPage }) => isOfPage);
  const own = reports.find(({ isOwn }) => isOwn) ?? ofPage.findLast(({ isAtPage }) => isAtPage) ?? ofPage.at(-1);
  // A page that is in flight may redirect to this one.
  if (!isSettled && unclaimed.length > 0 && (decides || own)) return { was: "unsettled" };
  if (own) return { was: "carried out", record: own.record };
  if (!decides) return { was: "open" };
  const unexplained = unclaimed.filter(({ others }) => others.length === 0);
  if (unexplained.length > 0) return { was: "undecided", records: unexplained.map(({ record }) => record) };
  // Another request of that page may have got this one's report, as long as its own can still be created.
  const doubtfulUntil = ({ claimedUntil, others }: NewReport) =>
    claimedUntil ?? Math.max(startedAt + REPEAT, ...others);
  const doubtful = reports.filter(
    (report) => doubtfulUntil(report) > startedAt && (doubted?.has(addressOf(report)) ?? true),
  );
  if (doubtful.length === 0) return { was: "not carried out" };
  const until = doubtful.reduce((last, report) => Math.max(last, doubtfulUntil(report)), 0);
  return { was: "put off", until, addresses: doubted ?? new Set(doubtful.map(addressOf)) };
}

/** A look at the report of an update. */
interface ReportLook {
  decides: boolean;
  record: Json;
  /** When the report was generated, as it was known before sending. */
  before: string | undefined;
  /** The service's time before sending, if earlier requests of this client can have moved that date. */
  since?: number | undefined;
  /** When the report was generated, as the first look showed it. */
  atFirst: string | undefined;
  /** The service's time of the look, in milliseconds; NaN if the response does not say. */
  clock: number;
  /** Milliseconds between the sending and the look. */
  elapsed: number;
  /** An earlier process sent it, perhaps long before. */
  isRestored: boolean;
}

const hasFraction = (date: unknown) => /:\d\d\.0*[1-9]/.test(String(date));
const hasTime = (date: unknown) => /\d:\d\d:\d\d/.test(String(date));
/** Milliseconds from one date to another, however they are written; NaN if only one has a time zone, or is a date. */
const between = (one: unknown, other: unknown) =>
  hasZone(one) === hasZone(other) ? parseDate(other) - parseDate(one) : Number.NaN;

/**
 * Judges an update by the date of its report: it took effect if the date rose, from the known one or past the time of sending in
 * the service's clock. The clock by itself proves little: it can be another server's, and a date can lack its time zone.
 */
export function judgeUpdate({
  decides,
  record,
  before,
  since = 0,
  atFirst,
  clock,
  elapsed,
  isRestored,
}: ReportLook): Verdict {
  const { generated_at: at } = record;
  const date = parseDate(at);
  const sent = clock - elapsed - SECOND;
  // No clock and no time zone is wrong by more.
  const isOld = !isRestored && date < sent - DAY;
  const isLater = hasZone(at) && date >= sent && date <= clock + MINUTE;
  const precedes = hasZone(at) && date < since - (since % SECOND);
  // Less than a second apart, they can be the same date, with and without a fraction.
  const risen = between(before ?? atFirst, at);
  if (!(risen < SECOND) && (isLater || (risen >= SECOND && !isOld && !precedes))) return { was: "carried out", record };
  if (!decides) return { was: "open" };
  // A day, and the second of sending, can have several.
  const isSame = before !== undefined && risen === 0 && hasTime(at) && (!isLater || hasFraction(at));
  // After a day in sleep, the clock says that a date that rose is old.
  return (isOld && !(risen >= SECOND)) || isSame ? { was: "not carried out" } : { was: "undecided", records: [record] };
}

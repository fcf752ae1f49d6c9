import type { Address } from "../address.js";
import type { Response } from "../http/transport.js";
import type { Lookup } from "../operations.js";
import {
  type Account,
  idOf,
  isAfter,
  type Json,
  type Reading,
  type Requests,
  reportsIn,
  type Watermark,
} from "./account.js";

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
  address: Address;
  /** When it was sent: in milliseconds that only rise, and by the time of day. */
  sentAt: number;
  sentDate: number;
  /** While it is in flight: resolves when the response arrived or was lost. */
  answered?: Promise<void> | undefined;
  /** The report's date at the first look. */
  seenAt?: string;
}

/** A report that may be the one that was requested. */
export interface Candidate {
  id: unknown;
  url: unknown;
  created_at: unknown;
}

/** What a look found out; undefined if it is too early to say. */
export type Finding =
  | { was: "carried out"; response: Response }
  | { was: "not carried out" }
  | { was: "undecided"; candidates: Candidate[] }
  | undefined;

/** Two clocks that differ by more prove nothing. */
const MOST_SKEW = 60_000;
/** A `Date` header has whole seconds. */
const DATE_STEP = 2000;

export const undecided = (records: Json[]): Finding => ({
  was: "undecided",
  candidates: records.map(({ id, url, created_at }) => ({ id, url, created_at })),
});

/** The report in the shape of a store's response, with the privacy that was requested. */
async function present({ request }: Requests, { lookup, input }: Entry, record: Json, listed: Response | undefined) {
  const reportId = idOf(record);
  const { privacy, password } = input;
  if (lookup.change && privacy !== undefined && Number(record.privacy ?? 0) !== Number(privacy))
    return request(lookup.change, { reportId, privacy, ...(password !== undefined && { password }) });
  return request(lookup.show, { reportId }).catch((error: unknown) => {
    if (listed) return { ...listed, body: { data: record } };
    throw error;
  });
}

/**
 * Finds a page's report among those after the watermark. If there is none and the look `decides`, the report was not created
 * if each of the others is another page's: nobody knows where a page redirects.
 */
export async function lookInList(
  account: Account,
  requests: Requests,
  open: Set<Entry>,
  entry: Entry,
  { records, response }: Reading,
  decides: boolean,
): Promise<Finding> {
  const { address, watermark } = entry;
  if (!watermark) return undecided([]);
  const unclaimed = () => records.filter((record) => isAfter(record, watermark) && !account.isClaimed(record));
  const isOf = (record: Json, { address, watermark }: Entry) => account.matches(record, address, watermark);
  if (!decides && !unclaimed().some((record) => isOf(record, entry))) return undefined;
  // A page that is in flight may redirect to this one: its response says whose report it is.
  const others = [...open].filter(({ address }) => !account.redirectOf(address));
  await Promise.all(others.map(({ answered }) => answered));
  if (!open.has(entry)) return undefined;
  const found = unclaimed().findLast((record) => isOf(record, entry));
  if (found) {
    account.claim(found, address);
    return present(requests, entry, found, response).then(
      (response) => ({ was: "carried out", response }),
      () => undecided([found]),
    );
  }
  if (!decides) return undefined;
  const unexplained = unclaimed().filter((record) => ![...open].some((other) => isOf(record, other)));
  return unexplained.length > 0 ? undecided(unexplained) : { was: "not carried out" };
}

/** Shows the report of an update: it was carried out if the date moved, from the known one or past the time of sending. */
export async function lookAtReport(
  account: Account,
  { request }: Requests,
  entry: Entry,
  decides: boolean,
): Promise<Finding> {
  const response = await request(entry.lookup.show, { reportId: String(entry.input.reportId) });
  const [record = {}] = reportsIn(response.body);
  const at = String(record.generated_at);
  const skew = account.skew() ?? Number.POSITIVE_INFINITY;
  const trusted = Math.abs(skew) <= MOST_SKEW;
  const past = trusted && Date.parse(at) >= entry.sentDate + skew - DATE_STEP;
  const known = entry.generatedAt ?? entry.seenAt;
  entry.seenAt ??= at;
  if ((known !== undefined && at !== known) || (entry.generatedAt === undefined && past))
    return { was: "carried out", response };
  if (!decides) return undefined;
  return entry.generatedAt !== undefined || trusted ? { was: "not carried out" } : undecided([record]);
}

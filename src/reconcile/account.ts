import { pageKey } from "../address.js";
import { clockOf, later } from "../dates.js";
import type { Json } from "../json.js";
import { current, idOf, isReport, reportsIn, unwrap } from "../records.js";
import type { Response } from "../responses.js";
import { NEWEST, type Requester, readAfter, SMALLEST_PAGE } from "./list.js";
import { type Intent, isNumber, rankOf, type Watermark } from "./watermark.js";

const MOST_REMEMBERED = 10_000;
/** A lost request of a long audit can be older than all of its reports, each of which must be explained. */
const MOST_CLAIMED = 100_000;
/** Milliseconds for which the newest report counts as known. A report that others created since could be mistaken for ours. */
const KNOWN_FOR = 300_000;

/** Remembers the latest values, in constant time: a map's first key is slow to find after many deletions. */
function createMemory<Key, Value>(most = MOST_REMEMBERED) {
  let recent = new Map<Key, Value>();
  let older = recent;
  return {
    get: (key: Key) => recent.get(key) ?? older.get(key),
    set(key: Key, value: Value): void {
      recent.set(key, value);
      if (recent.size < most) return;
      older = recent;
      recent = new Map();
    },
  };
}

/** A report's ID as a key: if possible a number, which takes less memory than a text. */
const keyOf = (id: unknown): unknown => (typeof id === "string" && String(Number(id)) === id ? Number(id) : id);

/** When reports were generated, and by which request of this process. */
function createDates() {
  const dates = createMemory<unknown, string>();
  /** By ID and date. */
  const owners = createMemory<string, string | undefined>();
  const nameOf = (record: Json) => `${idOf(record)} ${record.generated_at}`;
  /** The last `Date` header, as it arrived: few are needed. */
  let date: unknown;

  /** Learns from a response. An earlier date is that of a slow one, or of a cache, unless the request has just generated the report. */
  function learn({ id, generated_at }: Json, isOwn = false): void {
    const key = keyOf(id);
    const known = dates.get(key);
    // Most dates are known; a new text would outlive its response.
    if (typeof generated_at !== "string" || known === generated_at) return;
    if (isOwn || later(known, generated_at) !== known) dates.set(key, generated_at);
  }

  return {
    /** Learns from the reports of a response, and when it was sent. */
    observe(headers: Response["headers"], record: Json): void {
      ({ date } = headers);
      learn(record);
    },
    /** The known date of a report before it is updated. `given`: as an earlier process may have seen it. */
    beforeUpdate(id: string, given?: string): Pick<Intent, "generatedAt" | "since"> {
      const seen = dates.get(keyOf(id));
      const generatedAt = later(given, seen);
      return { generatedAt, since: generatedAt === seen ? undefined : clockOf({ date }) };
    },
    /** A request has just created or regenerated the report, or may have: its date counts, even if it is earlier than a known one. */
    regenerated(record: Json, request: string | undefined): void {
      learn(record, true);
      owners.set(nameOf(record), request);
    },
    /** The request of this process to which the report owes its date, if any does. */
    ownerOf: (record: Json) => owners.get(nameOf(record)),
  };
}

/** Remembers what the responses so far say about the account's reports. `now` only rises. */
export function createAccount(requester: Requester, now: () => number) {
  let of: "id" | "created_at" = "id";
  let highest: Watermark | undefined;
  /** When it was known to be the newest; a report that is shown by itself can be an old one. */
  let knownAt: number | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let finding: Promise<void> | undefined;
  /** The newest report when this client last deleted a project, which may have had it. */
  let unlisted: Watermark | undefined;
  /** Until when each may still be another request's: a look can match a report by its page only. */
  const claimed = createMemory<unknown, number>(MOST_CLAIMED);
  /** The request that got each: a restored one can have had its response in this process, if the audit could not save it. */
  const creators = createMemory<unknown, string | undefined>();
  /** The key to which a page redirected the last time, if it ever did to another one. */
  const redirects = createMemory<string, string>();
  const { observe: observeDate, ...dates } = createDates();

  /** Learns from a response, whoever requested it. */
  function observe({ headers, body }: Pick<Response, "headers" | "body">): void {
    for (const record of reportsIn(body)) {
      const { id } = record;
      observeDate(headers, record);
      // Most records of a list.
      if (of === "id" && highest && typeof id === "number" && id < highest.rank) continue;
      if (of === "id" && !isNumber(id)) {
        // Some texts have only digits: they are no numbers either.
        of = "created_at";
        highest = undefined;
        knownAt = undefined;
        readAt = Number.NEGATIVE_INFINITY;
      }
      const rank = rankOf(record, of);
      if (rank > (highest?.rank ?? Number.NEGATIVE_INFINITY)) highest = { of, rank, ids: [idOf(record)] };
      else if (highest?.rank === rank && !highest.ids.includes(idOf(record)))
        highest = { of, rank, ids: [...highest.ids, idOf(record)] };
    }
  }

  async function readShortList(list: string): Promise<void> {
    readAt = now();
    const response = await requester
      .request(list, { ...NEWEST, per_page: String(SMALLEST_PAGE) })
      .then(current)
      .catch(() => undefined);
    if (!response) return;
    observe(response);
    const records = unwrap(response.body);
    if (!Array.isArray(records) || !records.every(isReport)) return;
    // The next page may have more reports of that second.
    if (of === "created_at" && Number(highest?.ids.length) >= SMALLEST_PAGE) return;
    highest ??= { rank: 0, ids: [] };
    knownAt = now();
  }

  return {
    ...dates,
    observe,

    /** The newest report, as far as is known. A copy, because a deletion changes the original. */
    newest: () => (knownAt === undefined ? undefined : highest && { ...highest, ids: [...highest.ids] }),
    /** Has the newest report read again, if it is not known: what kept it from being read may be over by now. */
    readAgain(): void {
      readAt = Number.NEGATIVE_INFINITY;
    },
    /** Reads one short list if the newest report is not known. If that fails, a lost response stays uncertain. */
    findNewest(list: string): Promise<void> | undefined {
      if (finding || now() - Math.max(readAt, knownAt ?? readAt) < KNOWN_FOR) return finding;
      finding = readShortList(list).finally(() => {
        finding = undefined;
      });
      return finding;
    },

    /** A message got this report, which is new, for its page: from its response, or from a look, which can be wrong. */
    claim({ id, url }: Json, page: string, request: string | undefined, doubtedUntil = 0): void {
      claimed.set(keyOf(id), doubtedUntil);
      creators.set(keyOf(id), request);
      const key = typeof url === "string" && pageKey(url);
      if (key && key !== (redirects.get(page) ?? page)) redirects.set(page, key);
      // Only a list has all reports of a second.
      if (highest && (of === "id" || knownAt !== undefined)) knownAt = now();
    },
    /** Reports that somebody got in another process, from a response or a look. */
    claimAll(ids: readonly string[], doubtedUntil: number): void {
      for (const key of ids.map(keyOf)) claimed.set(key, claimed.get(key) ?? doubtedUntil);
    },
    /** Called when this client deleted a report, or a project, whose reports are not known: lists need not have them any more. */
    forget(id?: string): void {
      if (id === undefined) unlisted = highest;
      else if (highest) highest.ids = highest.ids.filter((other) => other !== id);
    },
    creatorOf: (record: Json) => creators.get(keyOf(record.id)),
    /** Until when a claim is in doubt; undefined if nobody got the report. */
    claimOf: (record: Json) => claimed.get(keyOf(record.id)),

    /** The names under which a page's report can be listed: its own, and where it redirected the last time. */
    namesOf: (page: string) => [...new Set([page, redirects.get(page) ?? page])],

    /** Reads the list down to a watermark. */
    readAfter: (list: string, watermark: Watermark) =>
      readAfter(requester, list, watermark, { newest: highest === unlisted ? undefined : highest, startedAt: now() }),
  };
}

export type Account = ReturnType<typeof createAccount>;

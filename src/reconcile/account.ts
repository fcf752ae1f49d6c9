import { pageKey } from "../address.js";
import { parseDate } from "../dates.js";
import { SeoError } from "../errors.js";
import type { Response } from "../http/transport.js";
import type { Json } from "../json.js";
import { idOf, reportsIn, unwrap } from "../records.js";

/**
 * The newest report before a request was sent. `rank` is its ID, or its creation date in milliseconds if the IDs are not
 * numbers; `ids` are the reports of that rank.
 */
export interface Watermark {
  /** Absent: there was no report. */
  of?: "id" | "created_at";
  rank: number;
  ids: string[];
}

/** Requests, which go through the client's budget. */
export interface Requests {
  request(type: string, input: Record<string, string>): Promise<Response>;
  /** Reads a list page by page, each only when it is needed. */
  pages(type: string, input: Record<string, string>): AsyncIterable<ListPage>;
}

interface ListPage {
  records: unknown[];
  total: number | undefined;
  response: Response;
}

/** What a list has after a watermark. */
export interface Reading {
  records: Json[];
  /** The last record that was read, whatever its date. */
  last: Json | undefined;
  /** The last page was full of records of earlier pages: the list may have more, which the service did not return. */
  repeats: boolean;
  /** How many records the list has, as far as it says. */
  total: number;
  /** The newest report that was known before. */
  newest: Watermark | undefined;
  response: Response | undefined;
  startedAt: number;
}

const MOST_REMEMBERED = 10_000;
/** A lost request of a long audit can be older than all of its reports, each of which must be explained. */
const MOST_CLAIMED = 100_000;
/** The smallest page that can be requested: a list with fewer records has no other page. */
const SMALLEST_PAGE = 10;
const NEWEST = { sort_by: "id", sort: "desc" };
/** Milliseconds for which the newest report counts as known. A report that others created since could be mistaken for ours. */
const FRESH = 300_000;

/** An ID that is too long for a number orders nothing: two of them can be rounded to the same. */
const isNumber = (id: unknown) => /^\d+$/.test(String(id)) && Number.isSafeInteger(Number(id));
/** Where a report stands in the order of creation; NaN if that is not known. */
function rankOf({ id, created_at }: Json, of: Watermark["of"] = isNumber(id) ? "id" : "created_at"): number {
  if (of === "created_at") return parseDate(created_at);
  return isNumber(id) ? Number(id) : Number.NaN;
}
const isBeyond = (own: number, id: string, { rank, ids }: Watermark) =>
  own > rank || (own === rank && !ids.includes(id));
export const isAfter = (record: Json, watermark: Watermark) =>
  isBeyond(rankOf(record, watermark.of), idOf(record), watermark);

/**
 * Whether a list has every report after a watermark: it goes back to the watermark, or to its end if there was no report, and
 * has the newest report that is known.
 */
export function covers({ records, last, repeats, total, newest }: Reading, watermark: Watermark): boolean {
  const { of, rank } = watermark;
  const isListed = (id: string) => records.some((record) => idOf(record) === id);
  if (newest?.ids.some((id) => isBeyond(newest.rank, id, watermark) && !isListed(id))) return false;
  if (of === undefined) return !repeats && records.length >= total;
  const oldest = last ? rankOf(last, of) : Number.NaN;
  // An ID belongs to one report, but a second to several.
  return oldest < rank || (oldest === rank && (of === "id" || !repeats));
}

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

/** What the responses so far say about the account's reports. `now` only rises. */
export function createAccount({ request, pages }: Requests, now: () => number) {
  let of: "id" | "created_at" = "id";
  let highest: Watermark | undefined;
  /** When it was known to be the newest; a report that is shown by itself can be an old one. */
  let knownAt: number | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let finding: Promise<void> | undefined;
  /** Until when each may still be another request's: a look can match a report by its page only. */
  const claimed = createMemory<string, number>(MOST_CLAIMED);
  /** Whose each is: a restored request can have had its response in this process, if the audit could not save it. */
  const owners = createMemory<string, string>();
  const ownerOf = (page: string, watermark: Watermark | undefined) => `${watermark?.rank} ${page}`;
  /** Where a page redirected the last time, or its own key. */
  const redirects = createMemory<string, string>();
  /** By ID as the service sends it: a number need not become a text for each record of each list. */
  const generated = createMemory<unknown, string>();

  /** Learns from a response, whoever requested it. */
  function observe({ body }: Pick<Response, "body">): void {
    for (const record of reportsIn(body)) {
      const { id, generated_at } = record;
      // Most dates are known; a new text would outlive its response.
      if (typeof generated_at === "string" && generated.get(id) !== generated_at) generated.set(id, generated_at);
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
    const response = await request(list, { ...NEWEST, per_page: String(SMALLEST_PAGE) }).catch(() => undefined);
    if (!response) return;
    observe(response);
    if (!Array.isArray(unwrap(response.body))) return;
    // The next page may have more reports of that second.
    if (of === "created_at" && Number(highest?.ids.length) >= SMALLEST_PAGE) return;
    highest ??= { rank: 0, ids: [] };
    knownAt = now();
  }

  return {
    observe,

    /** The newest report, as far as is known. */
    newest: () => (knownAt === undefined ? undefined : highest),
    generatedAt: (id: string) => generated.get(id) ?? generated.get(Number(id)),

    /** Reads one short list if the newest report is not known. If that fails, a lost response stays uncertain. */
    findNewest(list: string): Promise<void> | undefined {
      if (finding || now() - Math.max(readAt, knownAt ?? readAt) < FRESH) return finding;
      finding = readShortList(list).finally(() => {
        finding = undefined;
      });
      return finding;
    },

    /** A message got this report, which is new, for its page: from its response, or from a look, which can be wrong. */
    claim(record: Json, page: string, doubtedUntil = 0, watermark?: Watermark): void {
      claimed.set(idOf(record), doubtedUntil);
      owners.set(idOf(record), ownerOf(page, watermark));
      if (typeof record.url === "string") redirects.set(page, pageKey(record.url));
      // Only a list has all reports of a second.
      if (highest && (of === "id" || knownAt !== undefined)) knownAt = now();
    },
    /** Reports that somebody got in another process, from a response or a look. */
    claimAll(ids: readonly string[], doubtedUntil: number): void {
      for (const id of ids) claimed.set(id, claimed.get(id) ?? doubtedUntil);
    },
    /** This client deleted a report: no list has it any more. */
    forget(id: string): void {
      if (highest) highest.ids = highest.ids.filter((other) => other !== id);
    },
    /** Until when a claim is in doubt; undefined if nobody got the report. */
    claimOf: (record: Json) => claimed.get(idOf(record)),
    /** This request got the report, before it was restored. */
    has: (page: string, watermark: Watermark | undefined, record: Json) =>
      owners.get(idOf(record)) === ownerOf(page, watermark),

    /** The names under which a page's report can be listed: its own, and where it redirected the last time. */
    namesOf: (page: string) => [...new Set([page, redirects.get(page) ?? page])],

    /**
     * The listed reports after a watermark, and those of its rank, newest first. Rejects if the list is not sorted, or became
     * shorter. Whether it is complete, `covers` says.
     */
    async readAfter(list: string, watermark: Watermark): Promise<Reading> {
      const reading: Reading = {
        records: [],
        last: undefined,
        repeats: false,
        total: 0,
        newest: highest,
        response: undefined,
        startedAt: now(),
      };
      let lowest = Number.POSITIVE_INFINITY;
      for await (const page of pages(list, { ...NEWEST, per_page: "25" })) {
        const { total = reading.total } = page;
        if (total < reading.total)
          throw new SeoError("SEO_RESPONSE", "The list of reports became shorter while it was read.");
        reading.total = total;
        reading.response = page.response;
        reading.repeats = page.records.length === 0 && reportsIn(page.response.body).length >= SMALLEST_PAGE;
        for (const record of page.records as Json[]) {
          const rank = rankOf(record, watermark.of);
          if (!(rank <= lowest)) throw new SeoError("SEO_RESPONSE", "The list of reports is not sorted by date.");
          lowest = rank;
          reading.last = record;
          if (rank >= watermark.rank) reading.records.push(record);
        }
        if (lowest < watermark.rank) break;
      }
      return reading;
    },
  };
}

export type Account = ReturnType<typeof createAccount>;

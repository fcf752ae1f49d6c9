import { type Address, readAddress } from "../address.js";
import { SeoError } from "../errors.js";
import type { Response } from "../http/transport.js";

/**
 * The newest report before a request was sent. `rank` is its ID, or its creation date in milliseconds if the IDs are not
 * numbers; `ids` are the reports of that rank.
 */
export interface Watermark {
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

export type Json = Record<string, unknown>;
export type Reading = { records: Json[]; response: Response | undefined };

const MOST_REMEMBERED = 10_000;
const NEWEST = { sort_by: "id", sort: "desc" };

export const idOf = (record: Json) => String(record.id);
/** Where a report stands in the order of creation. */
const rankOf = (record: Json) =>
  /^\d+$/.test(idOf(record)) ? Number(record.id) : Date.parse(String(record.created_at));
export const isAfter = (record: Json, { rank, ids }: Watermark) =>
  rankOf(record) > rank || (rankOf(record) === rank && !ids.includes(idOf(record)));

/** The reports in a response: a list, one wrapped in `data`, or one by itself. A project has no ID. */
export function reportsIn(body: unknown): Json[] {
  const { data = body } = Object(body) as { data?: unknown };
  return [data].flat().filter((record): record is Json => Object(record).id !== undefined);
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MOST_REMEMBERED && oldest !== undefined) map.delete(oldest);
}

/** What the responses so far say about the account's reports. */
export function createAccount({ request, pages }: Requests, date: () => number) {
  let newest: Watermark | undefined;
  let finding: Promise<void> | undefined;
  let skew: number | undefined;
  const claimed = new Map<string, number>();
  const redirects = new Map<string, Address>();
  const generated = new Map<string, string>();

  /** Learns from a response, whoever requested it. */
  function observe({ body, headers }: Pick<Response, "body" | "headers">): void {
    const clock = Date.parse(String(headers.date));
    skew = Number.isNaN(clock) ? undefined : clock - date();
    for (const record of reportsIn(body)) {
      const rank = rankOf(record);
      const id = idOf(record);
      if (!Number.isNaN(rank) && rank > (newest?.rank ?? Number.NEGATIVE_INFINITY)) newest = { rank, ids: [id] };
      else if (newest?.rank === rank && !newest.ids.includes(id)) newest = { rank, ids: [...newest.ids, id] };
      if (typeof record.generated_at === "string") remember(generated, id, record.generated_at);
    }
  }

  async function readShortList(list: string): Promise<void> {
    const response = await request(list, { ...NEWEST, per_page: "10" }).catch(() => undefined);
    if (!response) return;
    observe(response);
    const { data = response.body } = Object(response.body) as { data?: unknown };
    if (Array.isArray(data) && data.length === 0) newest ??= { rank: 0, ids: [] };
  }

  return {
    observe,

    newest: () => newest,
    /** The service's clock minus this machine's. Undefined if its responses have no date. */
    skew: () => skew,
    generatedAt: (id: string) => generated.get(id),
    redirectOf: ({ key }: Address) => redirects.get(key),

    /** Reads one short list if no report is known yet. If that fails, a lost response stays uncertain. */
    findNewest(list: string): Promise<void> | undefined {
      if (newest) return undefined;
      finding ??= readShortList(list).finally(() => {
        finding = undefined;
      });
      return finding;
    },

    /** A message got this report for its page. */
    claim(record: Json, page: Address): void {
      remember(claimed, idOf(record), rankOf(record));
      remember(redirects, page.key, readAddress(String(record.url)));
    },
    isClaimed: (record: Json) => claimed.has(idOf(record)),

    /** Whether a report can be the one that was requested for `page` when `watermark` was the newest. */
    matches(record: Json, page: Address, watermark: Watermark | undefined): boolean {
      const { key } = readAddress(String(record.url));
      const samePage = key === page.key || key === redirects.get(page.key)?.key;
      return samePage && watermark !== undefined && isAfter(record, watermark);
    },

    /** All reports after a watermark, newest first. Rejects if the list is not sorted, or a report may have been missed. */
    async readAfter(list: string, watermark: Watermark): Promise<Reading> {
      const records: Json[] = [];
      let last = Number.POSITIVE_INFINITY;
      let most = 0;
      let response: Response | undefined;
      for await (const page of pages(list, { ...NEWEST, per_page: "25" })) {
        const { total = most } = page;
        if (total < most) throw new SeoError("SEO_RESPONSE", "The list of reports became shorter while it was read.");
        most = total;
        response = page.response;
        for (const record of page.records as Json[]) {
          const rank = rankOf(record);
          if (!(rank <= last)) throw new SeoError("SEO_RESPONSE", "The list of reports is not sorted by date.");
          last = rank;
          if (isAfter(record, watermark)) records.push(record);
        }
        if (last < watermark.rank) break;
      }
      return { records, response };
    },
  };
}

export type Account = ReturnType<typeof createAccount>;

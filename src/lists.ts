import { SeoError } from "./errors.js";
import { isObject, type Json } from "./json.js";
import { unwrap } from "./records.js";

/** The place of a response in a list, as it says itself, whichever paginator made it. */
export interface Shape {
  records: unknown[];
  /** Its own number, and that of the last page. */
  page: number | undefined;
  pages: number | undefined;
  total: number | undefined;
  /** Whether another page follows; undefined where the response does not say. */
  more: boolean | undefined;
  cursor: string | undefined;
}

/** One page of a list that is read completely. */
export interface ListPage<A = unknown> {
  /** The records that no earlier page had. */
  records: unknown[];
  /** From 1. */
  page: number;
  pages: number | undefined;
  total: number | undefined;
  /** The list has more records, or may have: `limit` cut it, or the service did not return all of them. */
  truncated: boolean;
  /** No page follows. */
  isLast: boolean;
  response: A;
}

type WithBody = { body: unknown };

const count = (value: unknown) =>
  value !== "" && value !== null && Number.isSafeInteger(Number(value)) ? Number(value) : undefined;

/** A cursor that is only in a link. The rest of the link is not used: it may name another host, or lack the filters. */
function cursorOf(link: unknown): string | undefined {
  if (typeof link !== "string") return undefined;
  return new URLSearchParams(link.slice(link.indexOf("?") + 1)).get("cursor") ?? undefined;
}

const linkTo = ({ next, next_page_url }: Json) => next ?? next_page_url ?? undefined;

/** Recognizes the shapes of a list; undefined where the response is none. */
export function readShape(body: unknown): Shape | undefined {
  const records = unwrap(body);
  if (!Array.isArray(records)) return undefined;
  const bare = Object(body) as Json;
  const links: Json = Object(bare.links);
  const figures: Json = Object(bare.meta ?? bare);
  const next = linkTo(links) ?? linkTo(figures) ?? linkTo(bare);
  const { next_cursor: own } = figures;
  const cursor = (typeof own === "string" || typeof own === "number" ? String(own) : cursorOf(next)) || undefined;
  const pages = count(figures.last_page);
  const follows = next !== undefined || cursor !== undefined;
  const ends = "next_cursor" in figures || "next_page_url" in figures || "next" in links;
  const more = follows || (ends ? false : undefined);
  return { records, page: count(figures.current_page), pages, total: count(figures.total), more, cursor };
}

function shapeOf(response: WithBody): Shape {
  const shape = readShape(response.body);
  const reject = (why: string) =>
    new SeoError("SEO_RESPONSE", `The response is not a list: ${why}.`, { body: response.body });
  if (!shape) throw reject("expected an array, or an object with an array in data");
  if (!shape.records.every(isObject)) throw reject("it contains something that is not an object");
  return shape;
}

/** The identity of a record: its `id`, or the name of a project. As text, because its type differs between responses. */
export function idIn(record: unknown, id: string): string | undefined {
  const { [id]: own, id: usual } = Object(record) as Json;
  const value = own ?? usual;
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

/**
 * Distinguishes the records of a list that no earlier page had. Records without an ID cannot be distinguished: they count as new,
 * unless their whole page is the same as the one before.
 */
function createSieve(id: string) {
  const seen = new Set<string>();
  let before = "";
  const isNew = (key: string | undefined) => key === undefined || !seen.has(key);
  return {
    isNew: (record: unknown) => isNew(idIn(record, id)),
    /** The new records of a page. `brings`: they prove that the page is another one. `isOther`: the response says that it is. */
    take(records: unknown[], isOther: boolean) {
      const ids = records.map((record) => idIn(record, id));
      const text = ids.includes(undefined) ? JSON.stringify(records) : "";
      const isRepeated = text !== "" && text === before && !isOther;
      before = text;
      const own = new Set<string>();
      const added = records.filter((_, i) => {
        const { [i]: key } = ids;
        if (isRepeated || !isNew(key) || (key !== undefined && own.has(key))) return false;
        if (key !== undefined) own.add(key);
        return true;
      });
      const brings = ids.some((key) => key !== undefined) ? own.size > 0 : added.length > 0;
      return { added, brings };
    },
    add(records: unknown[]): void {
      for (const record of records) {
        const key = idIn(record, id);
        if (key !== undefined) seen.add(key);
      }
    },
  };
}

/** The place of a page in its list. */
interface PagePlace {
  /** The list has pages with numbers, and says how many. */
  isNumbered: boolean;
  /** Whether the response says that another page follows; undefined if it does not say. */
  follows: boolean | undefined;
  /** The page is another one than those before. */
  moves: boolean;
}

/** Reads from a response where its page, the nth, is. `brings`: the page has new records. */
function placeOf({ records, page: own, pages, cursor, more }: Shape, nth: number, brings: boolean): PagePlace {
  const isNumbered = pages !== undefined && cursor === undefined;
  // If rows shifted by a whole page, the last page's records come again, and the rest of the list is still to come.
  const moves = brings || (isNumbered && records.length > 0 && (own ?? nth) === nth);
  return { isNumbered, follows: isNumbered ? nth < pages : more, moves };
}

/** The part of a list that was read so far. */
interface ListProgress {
  nth: number;
  /** The records that were returned, and how many there can be. */
  count: number;
  most: number;
  /** The page has more new records than can be returned. */
  isCut: boolean;
  /** The page has as many records as were requested. */
  isFull: boolean;
  /** The highest number of records that a response gave for the list. */
  total: number;
}

/** Whether a list ends with a page, and whether it then has more; undefined if only the next page can show it. */
function endOf(
  { follows, moves }: PagePlace,
  { nth, count, most, isCut, isFull, total }: ListProgress,
): { isLast: boolean; truncated: boolean | undefined } {
  const canFollow = moves && follows !== false;
  if (count >= most) return { isLast: true, truncated: isCut || (canFollow && follows) };
  if (canFollow) return { isLast: false, truncated: false };
  // Rows moved, or the service returns the same page for every number.
  const stalls = !moves && nth > 1 && (follows ?? isFull);
  return { isLast: true, truncated: total > 0 ? count < total : stalls };
}

/** The last page to request before the nth is worked on, so that the service is not idle meanwhile. */
const lastAhead = (
  { isNumbered }: PagePlace,
  { records, pages = 0 }: Shape,
  { nth, count, most }: ListProgress,
  ahead: number,
) =>
  isNumbered
    ? Math.min(pages, nth + ahead, nth + Math.ceil((most - count) / records.length))
    : nth + Math.min(ahead, 1);

/**
 * Reads a list to its end, or to `limit` records (0: no limit). `get` sends the user's query with `extra` added.
 * Once the number of pages is known, up to `ahead` of them are requested before they are needed; they come out in order.
 * With `ahead` 0, a page is requested only when it is needed. `size`: the records of a full page; a page of more is the whole list.
 * A record whose ID came before is dropped: rows shift while a list is read. Records without an ID are all returned.
 */
export async function* readPages<A extends WithBody>(
  get: (extra: Record<string, string>) => Promise<A>,
  { id = "id", limit = 0, ahead = 0, size = 0 }: { id?: string; limit?: number; ahead?: number; size?: number } = {},
): AsyncGenerator<ListPage<A>> {
  const sieve = createSieve(id);
  const requested: Promise<A>[] = [];
  const most = limit || Number.POSITIVE_INFINITY;
  let count = 0;
  let total = 0;
  let last = 1;
  let response = await get({});

  function request(cursor: string | undefined): Promise<A> {
    last++;
    const next = get(cursor === undefined ? { page: String(last) } : { cursor });
    next.catch(() => {});
    return next;
  }

  /** A page that fails may have more. */
  const hasMore = (nth: number) =>
    get({ page: String(nth) })
      .then((next) => shapeOf(next).records.some(sieve.isNew))
      .catch(() => true);

  for (let nth = 1; ; nth++) {
    const shape = shapeOf(response);
    const { added, brings } = sieve.take(shape.records, shape.page === nth);
    const records = added.slice(0, most - count);
    sieve.add(records);
    count += records.length;
    total = Math.max(total, shape.total ?? 0);
    const place = placeOf(shape, nth, brings);
    const isCut = added.length > records.length;
    const progress = { nth, count, most, isCut, isFull: shape.records.length === size, total };
    const { isLast, truncated = await hasMore(nth + 1) } = endOf(place, progress);
    const wanted = isLast ? 0 : lastAhead(place, shape, progress, ahead);
    while (last < wanted) requested.push(request(shape.cursor));
    yield { records, page: nth, pages: shape.pages, total: shape.total, truncated, isLast, response };
    if (isLast) return;
    response = await (requested.shift() ?? request(shape.cursor));
  }
}

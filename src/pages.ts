import { SeoError } from "./errors.js";
import { isObject, type Json } from "./json.js";
import { unwrap } from "./records.js";

/** What a response says about its place in a list, whichever paginator made it. */
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
export interface Page<A = unknown> {
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
  answer: A;
}

type Answered = { body: unknown };

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

function shapeOf(answer: Answered): Shape {
  const shape = readShape(answer.body);
  const reject = (why: string) =>
    new SeoError("SEO_RESPONSE", `The response is not a list: ${why}.`, { body: answer.body });
  if (!shape) throw reject("expected an array, or an object with an array in data");
  if (!shape.records.every(isObject)) throw reject("it contains something that is not an object");
  return shape;
}

/** What identifies a record: its `id`, or the name of a project. As text, because its type differs between responses. */
export function idIn(record: unknown, id: string): string | undefined {
  const { [id]: own, id: usual } = Object(record) as Json;
  const value = own ?? usual;
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

/**
 * Tells the records of a list that no earlier page had. Records without an ID cannot be told apart: they count as new, unless their
 * whole page is the same as the one before.
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
      const again = text !== "" && text === before && !isOther;
      before = text;
      const own = new Set<string>();
      const fresh = records.filter((_, i) => {
        const { [i]: key } = ids;
        if (again || !isNew(key) || (key !== undefined && own.has(key))) return false;
        if (key !== undefined) own.add(key);
        return true;
      });
      const brings = ids.some((key) => key !== undefined) ? own.size > 0 : fresh.length > 0;
      return { fresh, brings };
    },
    add(records: unknown[]): void {
      for (const record of records) {
        const key = idIn(record, id);
        if (key !== undefined) seen.add(key);
      }
    },
  };
}

/**
 * Reads a list to its end, or to `limit` records (0: no limit). `get` sends the user's query with `extra` added.
 * Once the number of pages is known, up to `ahead` of them are requested before they are needed; they come out in order.
 * With `ahead` 0, a page is requested only when it is needed. `size`: the records of a full page; a page of more is the whole list.
 * A record whose ID came before is dropped: rows shift while a list is read. Records without an ID are all returned.
 */
export async function* readPages<A extends Answered>(
  get: (extra: Record<string, string>) => Promise<A>,
  { id = "id", limit = 0, ahead = 0, size = 0 }: { id?: string; limit?: number; ahead?: number; size?: number } = {},
): AsyncGenerator<Page<A>> {
  const sieve = createSieve(id);
  const requested: Promise<A>[] = [];
  const most = limit || Number.POSITIVE_INFINITY;
  let count = 0;
  let largest = 0;
  let answer = await get({});
  let last = 1;
  for (let page = 1; ; page++) {
    const shape = shapeOf(answer);
    const { records, pages, total, more, cursor } = shape;
    const known = pages !== undefined && cursor === undefined;
    const { fresh, brings } = sieve.take(records, shape.page === page);
    const taken = fresh.slice(0, most - count);
    sieve.add(taken);
    count += taken.length;
    // If rows shifted by a whole page, the last page's records come again, and the rest of the list is still to come.
    const advances = known && records.length > 0 && (shape.page ?? page) === page;
    const follows = (brings || advances) && (known ? page < pages : (more ?? true));
    const full = count >= most;
    // If the response does not say whether more follows, only the next page does. If it fails, it may hold some.
    const beyond = async () => {
      if (!follows || known || more) return follows;
      return get({ page: String(page + 1) })
        .then((next) => shapeOf(next).records.some(sieve.isNew))
        .catch(() => true);
    };
    const isLast = !follows || full;
    largest = Math.max(largest, total ?? 0);
    // Rows moved, or the service returns the same page for every number.
    const stalls = !brings && !advances && page > 1 && (known ? page < pages : (more ?? records.length === size));
    const lacks = largest > 0 ? count < largest : stalls;
    const truncated = full ? fresh.length > taken.length || (await beyond()) : isLast && lacks;
    // Requested before this page is worked on, so that the service is not idle meanwhile.
    const wanted = known
      ? Math.min(pages, page + ahead, page + Math.ceil((most - count) / records.length))
      : page + Math.min(ahead, 1);
    const request = () => {
      last++;
      const next = get(cursor === undefined ? { page: String(last) } : { cursor });
      next.catch(() => {});
      return next;
    };
    while (!isLast && last < wanted) requested.push(request());
    yield { records: taken, page, pages, total, truncated, isLast, answer };
    if (isLast) return;
    answer = await (requested.shift() ?? request());
  }
}

import { SeoError } from "./errors.js";
import { isObject, type Json } from "./json.js";
import { unwrap } from "./records.js";

/** The place of a response in a list, as it says itself, whichever paginator made it. */
export type Shape = NonNullable<ReturnType<typeof readShape>>;

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

/** Pages without a new record that are read one after the other: rows can shift by more than a page. */
const MOST_IDLE = 10;

type WithBody = { body: unknown; attempts?: number };

const count = (value: unknown) =>
  ["number", "string"].includes(typeof value) && value !== "" && Number.isSafeInteger(Number(value))
    ? Number(value)
    : undefined;

/** A cursor that is only in a link. The rest of the link is not used: it may name another host, or lack the filters. */
function cursorOf(link: unknown): string | undefined {
  if (typeof link !== "string") return undefined;
  return new URLSearchParams(link.slice(link.indexOf("?") + 1)).get("cursor") ?? undefined;
}

const linkTo = ({ next, next_page_url }: Json) => next || next_page_url || undefined;

/** Recognizes the shapes of a list; undefined where the response is none. */
export function readShape(body: unknown) {
  const records: unknown = unwrap(body);
  if (!Array.isArray(records)) return undefined;
  const bare = Object(body) as Json;
  const links: Json = Object(bare.links);
  const figures: Json = Object(bare.meta ?? bare);
  const next = linkTo(links) ?? linkTo(figures) ?? linkTo(bare);
  const { next_cursor: own } = figures;
  const cursor = (typeof own === "string" || typeof own === "number" ? String(own) : cursorOf(next)) || undefined;
  // 0 beside records is no last page.
  const pages = count(figures.last_page) || undefined;
  const follows = next !== undefined || cursor !== undefined;
  const ends = "next_cursor" in figures || "next_page_url" in figures || "next" in links;
  /** Whether another page follows; undefined where the response does not say. */
  const more = follows || (ends ? false : undefined);
  return { records, page: count(figures.current_page), pages, total: count(figures.total), more, cursor };
}

function shapeOf({ body, attempts }: WithBody): Shape {
  const shape = readShape(body);
  const reject = (why: string) =>
    new SeoError("SEO_RESPONSE", `The response is not a list: ${why}.`, { body, attempts });
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

/** Whether the list has pages with numbers, and says how many. */
const isNumbered = ({ pages, cursor }: Shape) => pages !== undefined && cursor === undefined;

/** The part of a list that was read so far. */
interface ListProgress {
  nth: number;
  /** 1 if the service counts pages from 0. */
  shift: number;
  /** The records that were returned, and how many there can be. */
  count: number;
  most: number;
  /** The new records of the page, and how many of them can be returned. */
  added: number;
  kept: number;
  /** How many of the last pages had no new record. */
  idle: number;
  /** The records of a full page, if that is known. */
  size: number | undefined;
  /** The highest number of records that a response gave for the list. */
  total: number;
}

/** Whether a list ends with a page, the nth, and whether it then has more; undefined if only the next page can show it. */
function endOf(
  shape: Shape,
  { nth, shift, count, most, added, kept, idle, size, total }: ListProgress,
): { isLast: boolean; truncated: boolean | undefined } {
  const { records, page = nth, pages = 0, more } = shape;
  // If rows shifted by a whole page, the last page's records come again, and the rest of the list is still to come. So do those of
  // the first page, if the service counts from 1 although it calls it 0.
  const canMove = (isNumbered(shape) && page === nth) || (shift > 0 && nth === 2);
  const moves = added > 0 || (canMove && records.length > 0 && idle < MOST_IDLE);
  // Page 0 of 1 is the first of two, or the only one of a service that counts from 1.
  const isUnclear = shift > 0 && nth === 1 && pages === 2;
  const follows = isNumbered(shape) && !isUnclear ? nth < pages : more;
  const canFollow = moves && follows !== false;
  if (count >= most) return { isLast: true, truncated: added > kept || (canFollow && follows) };
  if (canFollow) return { isLast: false, truncated: false };
  // Rows moved, or the service returns the same page for every number.
  const stalls = !moves && nth > 1 && (follows ?? records.length === size);
  return { isLast: true, truncated: total > 0 ? count < total : stalls };
}

/** The last page to request before the nth is worked on, so that the service is not idle meanwhile. */
const lastAhead = (shape: Shape, { nth, count, most }: ListProgress, ahead: number) =>
  isNumbered(shape)
    ? Math.min(shape.pages ?? 0, nth + ahead, nth + Math.ceil((most - count) / shape.records.length))
    : nth + Math.min(ahead, 1);

/**
 * Reads a list to its end, or to `limit` records (0: no limit). `get` sends `query` with `extra` added; its
 * `per_page` tells a full page. Without page numbers, a page of more is the whole list.
 * Once the number of pages is known, up to `ahead` of them are requested before they are needed; they come out in order.
 * With `ahead` 0, a page is requested only when it is needed.
 * A record whose ID came before is dropped: rows shift while a list is read. So is one without an ID that is the same as one before.
 */
export async function* readPages<A extends WithBody>(
  get: (extra: Record<string, string>) => Promise<A>,
  { per_page }: Record<string, string>,
  { id = "id", limit = 0, ahead = 0 }: { id?: string; limit?: number; ahead?: number } = {},
): AsyncGenerator<ListPage<A>> {
  /** The records so far, by their ID or as they are. */
  const seen = new Set<string>();
  const keyOf = (record: unknown) => idIn(record, id) ?? JSON.stringify(record);
  const requested: Promise<A>[] = [];
  const most = limit || Number.POSITIVE_INFINITY;
  const size = per_page === undefined ? undefined : Number(per_page);
  let count = 0;
  let total = 0;
  let last = 1;
  let idle = 0;
  let shift = 0;
  let response = await get({});

  /** A page by its number. If no response says that it exists, and the service itself does not find it, it is behind the end. */
  const getPage = (nth: number, { pages, more }: Shape) =>
    get({ page: String(nth - shift) }).catch((cause: unknown): A => {
      const isMissing = cause instanceof SeoError && cause.code === "SEO_NOT_FOUND" && isObject(cause.body);
      if (!isMissing || pages !== undefined || more !== undefined) throw cause;
      return { ...response, body: [], attempts: cause.attempts };
    });

  function request(shape: Shape): Promise<A> {
    last++;
    const { cursor } = shape;
    const next = cursor === undefined ? getPage(last, shape) : get({ cursor });
    next.catch(() => {});
    return next;
  }

  /** A page that fails may have more. */
  const hasMore = (nth: number, shape: Shape) =>
    getPage(nth, shape)
      .then((next) => shapeOf(next).records.some((record) => !seen.has(keyOf(record))))
      .catch(() => true);

  for (let nth = 1; ; nth++) {
    const shape = shapeOf(response);
    if (nth === 1 && shape.page === 0) shift = 1;
    if (shape.page !== undefined) shape.page += shift;
    if (shape.pages !== undefined) shape.pages += shift;
    const added = shape.records.filter((record) => {
      const before = seen.size;
      return seen.add(keyOf(record)).size > before;
    });
    const records = added.slice(0, most - count);
    count += records.length;
    idle = added.length > 0 ? 0 : idle + 1;
    total = Math.max(total, shape.total ?? 0);
    const progress = { nth, shift, count, most, added: added.length, kept: records.length, idle, size, total };
    const { isLast, truncated = await hasMore(nth + 1, shape) } = endOf(shape, progress);
    const wanted = isLast ? 0 : lastAhead(shape, progress, ahead);
    while (last < wanted) requested.push(request(shape));
    yield { records, page: nth, pages: shape.pages, total: shape.total, truncated, isLast, response };
    if (isLast) return;
    response = await (requested.shift() ?? request(shape));
  }
}

import { SeoError } from "./errors.js";
import type { Json } from "./json.js";
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
  /** `limit` cut the list, or may have. */
  truncated: boolean;
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
  if (shape) return shape;
  throw new SeoError(
    "SEO_RESPONSE",
    "The response is not a list: expected an array, or an object with an array in data.",
    {
      body: answer.body,
    },
  );
}

/**
 * Reads a list to its end, or to `limit` records (0: no limit). `get` sends the user's query with `extra` added.
 * Once the number of pages is known, up to `ahead` of them are requested before they are needed; they come out in order.
 * With `ahead` 0, a page is requested only when it is needed.
 * A record whose ID came before is dropped: rows shift while a list is read.
 */
export async function* readPages<A extends Answered>(
  get: (extra: Record<string, string>) => Promise<A>,
  { id = "id", limit = 0, ahead = 0 }: { id?: string; limit?: number; ahead?: number } = {},
): AsyncGenerator<Page<A>> {
  const seen = new Set<string>();
  // Records without IDs cannot be distinguished: all of them are returned.
  let identified = true;
  const isNew = (record: unknown) => !identified || !seen.has(requireId(record, id));
  const requested: Promise<A>[] = [];
  const most = limit || Number.POSITIVE_INFINITY;
  let count = 0;
  let before = "";
  let answer = await get({});
  let last = 1;
  for (let page = 1; ; page++) {
    const shape = shapeOf(answer);
    const { records, pages, total, more, cursor } = shape;
    const [record] = records;
    if (count === 0) identified = typeof record !== "object" || record === null || keyOf(record, id) !== undefined;
    const known = pages !== undefined && cursor === undefined;
    // If rows shifted by a whole page, the last page's records come again, and the rest of the list is still to come.
    const advances = known && records.length > 0 && (shape.page ?? page) === page;
    // Without IDs, only the same page again shows that a service ignores the page number.
    const text = identified ? "" : JSON.stringify(records);
    const again = !identified && text === before && shape.page !== page;
    before = text;
    let cut = false;
    const fresh = records.filter((record) => {
      if (again || !isNew(record)) return false;
      if (count >= most) {
        cut = true;
        return false;
      }
      if (identified) seen.add(requireId(record, id));
      count++;
      return true;
    });
    const follows = (fresh.length > 0 || advances) && (known ? page < pages : (more ?? true));
    const full = count >= most;
    // If the response does not say whether more follows, only the next page does. If it fails, it may hold some.
    const beyond = async () => {
      if (!follows || known || more) return follows;
      return get({ page: String(page + 1) })
        .then((next) => shapeOf(next).records.some(isNew))
        .catch(() => true);
    };
    const truncated = full && (cut || (await beyond()));
    const ended = !follows || full;
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
    while (!ended && last < wanted) requested.push(request());
    yield { records: fresh, page, pages, total, truncated, answer };
    if (ended) return;
    answer = await (requested.shift() ?? request());
  }
}

/** What identifies a record: its `id`, or the name of a project. As text, because its type differs between responses. */
function keyOf(record: unknown, id: string): string | undefined {
  const { [id]: own, id: usual } = Object(record) as Json;
  const value = own ?? usual;
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

/** The same where it cannot be done without. Throws SEO_RESPONSE. */
export function requireId(record: unknown, id: string): string {
  const key = keyOf(record, id);
  if (key === undefined)
    throw new SeoError("SEO_RESPONSE", `The list contains a record without ${id}, so its pages cannot be combined.`);
  return key;
}

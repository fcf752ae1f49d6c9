import type { Answer } from "./client.js";
import { SeoError } from "./errors.js";

/** What an answer says of its place in a list, whichever paginator made it. */
interface Shape {
  records: unknown[];
  /** Its own number, and that of the last page. */
  page: number | undefined;
  pages: number | undefined;
  total: number | undefined;
  /** Whether another page follows; undefined where the answer does not say. */
  more: boolean | undefined;
  cursor: string | undefined;
}

/** One page of a list that is read to its end. */
export interface Page {
  /** The records that no earlier page had. */
  records: unknown[];
  /** From 1. */
  page: number;
  pages: number | undefined;
  total: number | undefined;
  /** `limit` cut the list. */
  truncated: boolean;
  answer: Answer;
}

type Json = Record<string, unknown>;

const count = (value: unknown) =>
  value !== "" && value !== null && Number.isSafeInteger(Number(value)) ? Number(value) : undefined;

/** A cursor that is only in a link. Of the link nothing else is used: it may name another host, or have lost the filters. */
function cursorOf(link: unknown): string | undefined {
  if (typeof link !== "string") return undefined;
  return new URLSearchParams(link.slice(link.indexOf("?") + 1)).get("cursor") ?? undefined;
}

/** Recognises the shapes of a list's answer; undefined where it is none. */
export function readShape(body: unknown): Shape | undefined {
  if (Array.isArray(body)) {
    return { records: body, page: undefined, pages: undefined, total: undefined, more: undefined, cursor: undefined };
  }
  const { data, links, meta, ...bare } = Object(body) as { data?: unknown; links?: Json; meta?: Json };
  if (!Array.isArray(data)) return undefined;
  const figures: Json = Object(meta ?? bare);
  const next = [Object(links) as Json, figures, bare as Json]
    .map((from) => from.next ?? from.next_page_url)
    .find((link) => link !== undefined && link !== null);
  const { next_cursor: own } = figures;
  const cursor = (typeof own === "string" || typeof own === "number" ? String(own) : cursorOf(next)) || undefined;
  const pages = count(figures.last_page);
  const follows = next !== undefined || cursor !== undefined;
  const ends = "next_cursor" in figures || "next_page_url" in figures || "next" in Object(links);
  const more = follows || (ends ? false : undefined);
  return { records: data, page: count(figures.current_page), pages, total: count(figures.total), more, cursor };
}

function shapeOf(answer: Answer): Shape {
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
 * Reads a list to its end, or to `limit` records (0: no limit). `ask` sends the user's query with `extra` added.
 * Once the number of pages is known, up to `ahead` of them are on their way; they come out in order.
 * A record whose id came before is dropped, and a page that brings nothing new is the end.
 */
export async function* readPages(
  ask: (extra: Record<string, string>) => Promise<Answer>,
  { id, limit, ahead }: { id: string; limit: number; ahead: number },
): AsyncGenerator<Page> {
  const seen = new Set<string>();
  const unseen = (records: unknown[]) => records.some((record) => !seen.has(idOf(record, id)));
  const coming: Promise<Answer>[] = [];
  const most = limit || Number.POSITIVE_INFINITY;
  let answer = await ask({});
  let asked = 1;
  for (let page = 1; ; page++) {
    const { records, pages, total, more, cursor } = shapeOf(answer);
    const fresh = records.filter((record) => {
      const key = idOf(record, id);
      return !seen.has(key) && seen.size < most && seen.add(key);
    });
    const known = pages !== undefined && cursor === undefined;
    const follows = fresh.length > 0 && (known ? page < pages : (more ?? true));
    const full = seen.size >= most;
    // Where the answer does not say whether more follows, only the next page does; one that cannot be had may hold some.
    const beyond = async () => {
      if (!follows || known || more) return follows;
      return ask({ page: String(page + 1) })
        .then((next) => unseen(shapeOf(next).records))
        .catch(() => true);
    };
    const truncated = full && (unseen(records) || (await beyond()));
    const ended = !follows || full;
    // Asked for before somebody works on this one, so that the service is not left waiting meanwhile.
    const wanted = known
      ? Math.min(pages, page + ahead, page + Math.ceil((most - seen.size) / records.length))
      : page + 1;
    while (!ended && asked < wanted) {
      asked++;
      const next = ask(cursor === undefined ? { page: String(asked) } : { cursor });
      next.catch(() => {});
      coming.push(next);
    }
    yield { records: fresh, page, pages, total, truncated, answer };
    if (ended) return;
    answer = await (coming.shift() as Promise<Answer>);
  }
}

/** What identifies a record: `id`, or the name of a project. As text, for its type differs between answers. */
export function idOf(record: unknown, id: string): string {
  const { [id]: own, id: usual } = Object(record) as Json;
  const value = own ?? usual;
  if (typeof value === "string" || typeof value === "number") return String(value);
  throw new SeoError("SEO_RESPONSE", `The list contains a record without ${id}, so its pages cannot be combined.`);
}

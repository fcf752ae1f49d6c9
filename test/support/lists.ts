import { createServer } from "node:http";
import { unwrap } from "../../src/records.js";
import { openLocally } from "./local.js";

export type Row = Record<string, unknown>;

/** The input of a paginator. */
interface View {
  /** The whole list, and where the page begins and ends in it. */
  all: readonly Row[];
  from: number;
  to: number;
  page: number;
  size: number;
  /** A link to a page or cursor with the faults of real installations: another host, http, no filters and no per_page. */
  link(query: Record<string, string | number>): string;
}

export type Shape = (view: View) => unknown;

const encode = (from: number) => Buffer.from(JSON.stringify({ from })).toString("base64url");

/** The number of the last page. */
const last = ({ all, size }: View) => Math.max(1, Math.ceil(all.length / size));
const more = ({ all, to }: View) => to < all.length;
const rows = ({ all, from, to }: View) => all.slice(from, to);

/** The numbers of a length-aware paginator, each converted by `figure`. */
function figures(view: View, figure: (value: number) => unknown = (value) => value): Row {
  const { from, to, page, size, all, link } = view;
  return {
    current_page: figure(page),
    from: all.length > from ? from + 1 : null,
    last_page: figure(last(view)),
    links: [{ url: link({ page }), label: String(page), active: true }],
    path: link({}),
    per_page: String(size),
    to: all.length > from ? to : null,
    total: figure(all.length),
  };
}

const around = (view: View) => ({
  first: view.link({ page: 1 }),
  prev: view.page > 1 ? view.link({ page: view.page - 1 }) : null,
  next: more(view) ? view.link({ page: view.page + 1 }) : null,
});

const bareLinks = (view: View) => {
  const { first, prev, next } = around(view);
  return { first_page_url: first, prev_page_url: prev, next_page_url: next };
};

const nextCursor = (view: View) => (more(view) ? encode(view.to) : null);
const cursorLink = (view: View) => (more(view) ? view.link({ cursor: encode(view.to) }) : null);

/** The paginators with cursors instead of page numbers. */
const cursors: Record<string, Shape> = {
  "cursor in meta": (view) => ({
    data: rows(view),
    links: { first: null, last: null, prev: null, next: cursorLink(view) },
    meta: { path: view.link({}), per_page: view.size, next_cursor: nextCursor(view), prev_cursor: null },
  }),
  "cursor only in the link": (view) => ({
    data: rows(view),
    links: { first: null, last: null, prev: null, next: cursorLink(view) },
    meta: { path: view.link({}), per_page: view.size },
  }),
  "cursor that is a number": (view) => ({ data: rows(view), meta: { next_cursor: more(view) ? view.to : null } }),
  "cursor, blank at the end": (view) => ({ data: rows(view), meta: { next_cursor: nextCursor(view) ?? "" } }),
  "bare, cursor": (view) => ({
    data: rows(view),
    per_page: view.size,
    next_cursor: nextCursor(view),
    next_page_url: cursorLink(view),
  }),
};

/** The response of every known paginator to a request for a page. */
export const shapes: Record<string, Shape> = {
  ...cursors,
  "length-aware": (view) => ({
    data: rows(view),
    links: { ...around(view), last: view.link({ page: last(view) }) },
    meta: figures(view),
    status: 200,
  }),
  "length-aware, figures as text": (view) => ({ data: rows(view), links: around(view), meta: figures(view, String) }),
  "length-aware, without links": (view) => ({ data: rows(view), meta: figures(view) }),
  "length-aware, without its own number": (view) => ({ data: rows(view), meta: { last_page: last(view) } }),
  simple: (view) => ({
    data: rows(view),
    links: { ...around(view), last: null },
    meta: { current_page: view.page, from: view.from + 1, path: view.link({}), per_page: view.size, to: view.to },
  }),
  bare: (view) => ({
    ...figures(view),
    data: rows(view),
    ...bareLinks(view),
    last_page_url: view.link({ page: last(view) }),
  }),
  "bare, simple": (view) => ({ current_page: view.page, data: rows(view), ...bareLinks(view), per_page: view.size }),
  "counted from 0": (view) => ({ data: rows(view), meta: { current_page: view.page - 1, last_page: last(view) - 1 } }),
  "counted from 1, but called 0": (view) => ({ data: rows(view), meta: { current_page: 0, last_page: last(view) } }),
  "plain array": rows,
  "plain data": (view) => ({ data: rows(view) }),
  "plain array of the whole list": ({ all }) => all,
  "the whole list in data": ({ all }) => ({ data: all, status: 200 }),
};

/** The first page for every number. */
export const firstPage: Shape = ({ all, size }) => all.slice(0, size);

interface Asked {
  path: string;
  query: URLSearchParams;
  /** Counted from 1. */
  nth: number;
}

interface Reply {
  status?: number;
  headers?: Record<string, string>;
  body: unknown;
}

/** The options of a list server, which can change while it runs. */
export interface ListOptions {
  all: readonly Row[];
  shape?: Shape;
  /** Maximum number of records per page, whatever per_page says. */
  most?: number;
  /** A page after the last one is not found. */
  ends?: boolean;
  /** Delays the response. */
  wait?: (asked: Asked) => Promise<unknown> | undefined;
  /** Returns a response instead of the list. */
  reply?: (asked: Asked) => Reply | undefined;
}

/** The page of a list that a query requests. Its links lead to `base`. */
export function pageOf(
  { all, shape = shapes["length-aware"] as Shape, most = Number.POSITIVE_INFINITY }: ListOptions,
  query: URLSearchParams,
  base: string,
): unknown {
  const size = Math.min(Number(query.get("per_page") ?? 10), most);
  const cursor = query.get("cursor");
  const first = shape === shapes["counted from 0"] ? 0 : 1;
  const page = Object.values(cursors).includes(shape) ? 1 : Number(query.get("page") ?? first) + 1 - first;
  const from = cursor ? fromCursor(cursor) : (page - 1) * size;
  const link = (place: Record<string, string | number>) =>
    `${base}?${new URLSearchParams(Object.entries(place).map(([name, value]) => [name, String(value)]))}`;
  return shape({ all, from, to: Math.min(from + size, all.length), page, size, link });
}

function replyTo(options: ListOptions, query: URLSearchParams, base: string): Reply {
  const body = pageOf(options, query, base);
  const isBehind = options.ends && query.has("page") && [unwrap(body)].flat().length === 0;
  return isBehind ? { status: 404, body: { message: "Invalid page." } } : { body };
}

/** A service with the same list at every path, and with links to another host. */
export async function startLists(first: ListOptions) {
  const asked: Asked[] = [];
  let running = 0;
  const strayed: string[] = [];
  const elsewhere = createServer((request, response) => {
    strayed.push(String(request.url));
    response.end("[]");
  });
  const other = await openLocally(elsewhere);
  const strange = `http://localhost:${other.port}/api/v1/lists`;

  const server = createServer(async (request, response) => {
    const url = new URL(String(request.url), "http://localhost");
    const one = { path: url.pathname, query: url.searchParams, nth: asked.length + 1 };
    asked.push(one);
    lists.busiest = Math.max(lists.busiest, ++running);
    await lists.options.wait?.(one);
    running--;
    const { status = 200, headers, body } = lists.options.reply?.(one) ?? replyTo(lists.options, one.query, strange);
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  });
  const { url, close } = await openLocally(server);

  const lists = {
    url,
    options: first,
    asked,
    /** The requests to the host in the links. */
    strayed,
    /** The maximum number of concurrent requests. */
    busiest: 0,
    async close(): Promise<void> {
      await Promise.all([close(), other.close()]);
    },
  };
  return lists;
}

export type Lists = Awaited<ReturnType<typeof startLists>>;

function fromCursor(cursor: string): number {
  const from = Number(cursor);
  return Number.isInteger(from) ? from : Number(JSON.parse(Buffer.from(cursor, "base64url").toString()).from);
}

/** `count` reports with descending IDs, the last of which is `first`, as the service sorts them. */
export const reports = (count: number, first = 1): Row[] =>
  Array.from({ length: count }, (_, i) => {
    const id = first + count - 1 - i;
    return { id, url: `example.com/${id}`, score: id % 101, result: "good", privacy: 0, created_at: "2026-01-01" };
  });

/** Projects, which have no ID. */
const projects = (count: number): Row[] =>
  Array.from({ length: count }, (_, i) => ({ project: `p${i}.example`, reports: i, created_at: null }));

/** The records of either list, by node type. */
export const listed: Record<string, (count: number) => Row[]> = {
  "seo-report-list": reports,
  "seo-project-list": projects,
};

/** A report with checks, by name and whether they passed. */
export const checked = (report: Row, checks: Record<string, boolean>): Row => ({
  ...report,
  results: Object.fromEntries(
    Object.entries(checks).map(([name, passed]) => [
      name,
      { passed, importance: "high", value: null, ...(passed ? {} : { errors: ["wrong"] }) },
    ]),
  ),
});

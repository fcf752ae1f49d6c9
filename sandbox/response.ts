/** How the service writes its responses: records, items, lists and errors. */
import { resultOf, resultsOf } from "./pages.js";
import type { Project, Report } from "./reports.js";
import type { Fields, RequestError } from "./request.js";

/** An object is sent as JSON, text as HTML unless `headers` has another type. */
export type Reply = { status: number; body: object | string; headers?: Record<string, string> };

export const NOT_FOUND: Reply = { status: 404, body: { message: "Resource not found.", status: 404 } };

/** The body says 200 even for a 201, as the real service's does. */
const ok = (body: object, status = 200): Reply => ({ status, body: { ...body, status: 200 } });

export const deleted = (object: string, id: number | string): Reply =>
  ok({ [object === "report" ? "id" : object]: id, object, deleted: true });

/** An error about fields repeats its status in the body, as the real service does. */
export const rejection = ({ status, messages }: RequestError): Reply => ({
  status,
  body: typeof messages === "string" ? { message: messages } : { message: messages, status },
});

export const movedTo = (location: string): Reply => ({
  status: 301,
  body: { message: `Moved to ${location}` },
  headers: { Location: location },
});

export const notAllowed = (method: string, allowed: string): Reply => ({
  status: 405,
  body: { message: `The ${method} method is not supported here. Supported methods: ${allowed}.` },
  headers: { Allow: allowed },
});

/** ISO 8601 with six decimals, as the real service writes it. */
const timestamp = (time: number): string => `${new Date(time).toISOString().slice(0, -1)}000Z`;

export function reportRecord(report: Report): object {
  const { id, url, project, score, privacy, password } = report;
  return {
    id,
    url,
    project,
    score,
    result: resultOf(score),
    results: resultsOf(url, score),
    privacy,
    password: password !== null,
    generated_at: timestamp(report.generated_at),
    created_at: timestamp(report.created_at),
    updated_at: timestamp(report.updated_at),
  };
}

export const projectRecord = (project: Project): object => ({ ...project, created_at: timestamp(project.created_at) });

export const item = <Row>(row: Row | undefined, record: (row: Row) => object, status = 200): Reply =>
  row ? ok({ data: record(row) }, status) : NOT_FOUND;

/** The page of `rows` that `fields` selects; `url` is the list's own. */
export function list<Row>(rows: readonly Row[], record: (row: Row) => object, fields: Fields, url: string): Reply {
  const perPage = Number(fields.per_page ?? 10);
  const page = Number(fields.page ?? 1);
  const lastPage = Math.max(1, Math.ceil(rows.length / perPage));
  const start = (page - 1) * perPage;
  const data = rows.slice(start, start + perPage).map(record);
  const link = (to: number) => `${url}?${new URLSearchParams({ ...fields, page: String(to) })}`;
  const prev = page > 1 ? link(page - 1) : null;
  const next = page < lastPage ? link(page + 1) : null;
  return ok({
    data,
    links: { first: link(1), last: link(lastPage), prev, next },
    meta: {
      current_page: page,
      from: data.length > 0 ? start + 1 : null,
      last_page: lastPage,
      links: [
        { url: prev, label: "&laquo; Previous", active: false },
        { url: link(page), label: String(page), active: true },
        { url: next, label: "Next &raquo;", active: false },
      ],
      path: url,
      per_page: perPage,
      to: data.length > 0 ? start + data.length : null,
      total: rows.length,
    },
  });
}

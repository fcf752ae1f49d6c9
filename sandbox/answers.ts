import type { Project, Report } from "./reports.js";
import type { Answer, Fields } from "./rules.js";
import { resultOf, resultsOf } from "./seed.js";

export const NOT_FOUND: Answer = { status: 404, body: { message: "Resource not found.", status: 404 } };

export const ok = (body: object, status = 200): Answer => ({ status, body: { ...body, status: 200 } });

/** ISO 8601 with the six decimals that the real service writes. */
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

/** The page of `rows` that `fields` asks for, wrapped as the real service wraps it; `place` is the list's own URL. */
export function pageOf<Row>(rows: readonly Row[], record: (row: Row) => object, fields: Fields, place: string): Answer {
  const perPage = Number(fields.per_page ?? 10);
  const page = Number(fields.page ?? 1);
  const lastPage = Math.max(1, Math.ceil(rows.length / perPage));
  const start = (page - 1) * perPage;
  const data = rows.slice(start, start + perPage).map(record);
  const link = (to: number) => `${place}?${new URLSearchParams({ ...fields, page: String(to) })}`;
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
      path: place,
      per_page: perPage,
      to: data.length > 0 ? start + data.length : null,
      total: rows.length,
    },
  });
}

import type { Project, Report } from "./reports.js";

export const REPORT_ORDERS: Record<string, (report: Report) => string | number> = {
  id: (report) => report.id,
  generated_at: (report) => report.generated_at,
  url: (report) => report.url,
  score: (report) => report.score,
};
export const PROJECT_ORDERS: Record<string, (project: Project) => string | number> = {
  created_at: (project) => project.created_at,
  project: (project) => project.project,
};

/** Equal keys stay in the order of their ids. */
export function sorted<Row>(rows: Row[], keyOf: ((row: Row) => string | number) | undefined, sort = "desc"): Row[] {
  if (!keyOf) return rows;
  const below = sort === "asc" ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [keyOf(a), keyOf(b)];
    return x === y ? 0 : x < y ? below : -below;
  });
}

import { hash, pageAt, resultOf, scoreOf } from "./pages.js";
import { type Fields, parseAddress } from "./request.js";

export type Report = {
  id: number;
  url: string;
  project: string;
  /** How often the report was regenerated; it and the URL determine the score. */
  generation: number;
  score: number;
  privacy: number;
  password: string | null;
  generated_at: number;
  created_at: number;
  updated_at: number;
};
export type Project = { project: string; reports: number; score: number; created_at: number };
export type Reports = ReturnType<typeof createReports>;

export const REPORT_SORT_KEYS: Record<string, (report: Report) => string | number> = {
  id: (report) => report.id,
  generated_at: (report) => report.generated_at,
  url: (report) => report.url,
  score: (report) => report.score,
};
export const PROJECT_SORT_KEYS: Record<string, (project: Project) => string | number> = {
  created_at: (project) => project.created_at,
  project: (project) => project.project,
};

const SEEDED_SPAN = 90 * 24 * 3600 * 1000;
/** Two of ten seeded reports are not public. */
const SEEDED_PRIVACY: Fields[] = [{ privacy: "1" }, { privacy: "2", password: "open" }];

/** The reports, in memory: `count` of them at the start, created in the 90 days before `now`, with IDs after `lastId`. */
export function createReports(count: number, now: () => number = Date.now, lastId = 0) {
  const byId = new Map<number, Report>();
  let version = 0;
  let latest = 0;

  /** Always rises, so that two changes in the same millisecond have different dates. */
  function tick(): number {
    latest = Math.max(latest + 1, now());
    return latest;
  }

  function add(url: string, project: string, time: number): Report {
    const report: Report = {
      id: ++lastId,
      url,
      project,
      generation: 0,
      score: scoreOf(url, 0),
      privacy: 0,
      password: null,
      generated_at: time,
      created_at: time,
      updated_at: time,
    };
    byId.set(report.id, report);
    version++;
    return report;
  }

  function regenerate(report: Report, time: number): void {
    report.generation++;
    report.score = scoreOf(report.url, report.generation);
    report.generated_at = report.updated_at = time;
  }

  /** A password takes effect, and is kept, only with privacy 2. */
  function protect(report: Report, fields: Fields): void {
    if (fields.privacy !== undefined) report.privacy = Number(fields.privacy);
    report.password = report.privacy === 2 ? (fields.password ?? report.password) : null;
  }

  function seed(): void {
    const end = now();
    for (let i = 0; i < count; i++) {
      const url = pageAt(i);
      const chance = hash(String(i));
      const created = Math.floor(end - SEEDED_SPAN * (1 - (i + (chance % 1000) / 1000) / count));
      const report = add(url, url.replace(/\/.*/, ""), created);
      if (chance % 3 === 0) regenerate(report, Math.floor(created + (end - created) * ((chance % 7) / 7)));
      protect(report, SEEDED_PRIVACY[chance % 10] ?? {});
    }
  }

  /** Clients read a list page by page, so its sorted rows are kept until something changes. */
  function cached<Row>(find: (query: Fields) => Row[]): (query: Fields) => readonly Row[] {
    let last = { key: "", rows: [] as Row[] };
    return ({ page, per_page, ...query }) => {
      const key = JSON.stringify([version, query]);
      if (key !== last.key) last = { key, rows: find(query) };
      return last.rows;
    };
  }

  const list = cached(({ search = "", project, result, sort_by = "id", sort }) => {
    const matches = like(search);
    const rows = [...byId.values()].filter(
      (report) =>
        matches(report.url) &&
        (project === undefined || report.project === project) &&
        (result === undefined || resultOf(report.score) === result),
    );
    return sorted(rows, REPORT_SORT_KEYS[sort_by], sort);
  });

  const projects = cached(({ search = "", sort_by = "created_at", sort }) => {
    const matches = like(search);
    const groups = new Map<string, Report[]>();
    for (const report of byId.values()) {
      if (!matches(report.project)) continue;
      const group = groups.get(report.project);
      if (group) group.push(report);
      else groups.set(report.project, [report]);
    }
    const rows = Array.from(groups, ([project, group]) => {
      const score = Math.round(group.reduce((sum, report) => sum + report.score, 0) / group.length);
      return { project, reports: group.length, score, created_at: group[0]?.created_at ?? 0 };
    });
    return sorted(rows, PROJECT_SORT_KEYS[sort_by], sort);
  });

  function store(fields: Fields): Report {
    const address = parseAddress(fields.url ?? "");
    if (!address) throw new TypeError(`Not the URL of a page: ${fields.url}`);
    const report = add(address.url, address.project, tick());
    protect(report, fields);
    return report;
  }

  function update(id: number, fields: Fields): Report | undefined {
    const report = byId.get(id);
    if (!report) return undefined;
    report.updated_at = tick();
    protect(report, fields);
    if (fields.update === "1") regenerate(report, report.updated_at);
    version++;
    return report;
  }

  function remove(id: number): boolean {
    version++;
    return byId.delete(id);
  }

  /** Returns the number of reports that were deleted. */
  function removeProject(project: string): number {
    const members = [...byId.values()].filter((report) => report.project === project);
    for (const report of members) remove(report.id);
    return members.length;
  }

  seed();
  const get = (id: number) => byId.get(id);
  return { list, projects, get, store, update, remove, removeProject };
}

/** Equal keys stay in the order of their IDs. */
function sorted<Row>(rows: Row[], keyOf: ((row: Row) => string | number) | undefined, sort = "desc"): Row[] {
  if (!keyOf) return rows;
  const below = sort === "asc" ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [keyOf(a), keyOf(b)];
    return x === y ? 0 : x < y ? below : -below;
  });
}

/** SQL's `LIKE '%search%'`: ignores case; `%` stands for any text and `_` for any one character. */
function like(search: string): (text: string) => boolean {
  const parts = search
    .split("%")
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("_", "."))
    .map((part) => new RegExp(part, "gis"));
  return (text) => {
    let end = 0;
    return parts.every((part) => {
      part.lastIndex = end;
      const found = part.test(text);
      end = part.lastIndex;
      return found;
    });
  };
}

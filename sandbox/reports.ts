import { readAddress } from "./address.js";
import { PROJECT_ORDERS, REPORT_ORDERS, sorted } from "./orders.js";
import type { Fields } from "./rules.js";
import { hash, pageAt, resultOf, scoreOf } from "./seed.js";

export type Report = {
  id: number;
  url: string;
  project: string;
  /** How often the report was regenerated; the score follows from it and the URL. */
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

const SEEDED_SPAN = 90 * 24 * 3600 * 1000;
/** Two of ten seeded reports are not public. */
const SEEDED_ACCESS: Fields[] = [{ privacy: "1" }, { privacy: "2", password: "open" }];

/** The state of the sandbox, in memory: `count` seeded reports, dated over the 90 days before `now`. */
export function createReports(count: number, now: () => number = Date.now) {
  const byId = new Map<number, Report>();
  let nextId = 1;
  let version = 0;
  let latest = 0;

  /** Strictly rising, so that of two changes in one millisecond the second still has another date. */
  function tick(): number {
    latest = Math.max(latest + 1, now());
    return latest;
  }

  function add(url: string, project: string, time: number): Report {
    const report: Report = {
      id: nextId++,
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

  /** The password is kept only where it takes effect. */
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
      protect(report, SEEDED_ACCESS[chance % 10] ?? {});
    }
  }

  /** Pages of one list are asked for one after the other: its sorted rows are kept until something changes. */
  function remembered<Row>(find: (query: Fields) => Row[]): (query: Fields) => readonly Row[] {
    let last = { key: "", rows: [] as Row[] };
    return ({ page, per_page, ...query }) => {
      const key = JSON.stringify([version, query]);
      if (key !== last.key) last = { key, rows: find(query) };
      return last.rows;
    };
  }

  const list = remembered(({ search = "", project, result, sort_by = "id", sort }) => {
    const sought = search.toLowerCase();
    const rows = [...byId.values()].filter(
      (report) =>
        report.url.toLowerCase().includes(sought) &&
        (project === undefined || report.project === project) &&
        (result === undefined || resultOf(report.score) === result),
    );
    return sorted(rows, REPORT_ORDERS[sort_by], sort);
  });

  const projects = remembered(({ search = "", sort_by = "created_at", sort }) => {
    const sought = search.toLowerCase();
    const groups = new Map<string, Report[]>();
    for (const report of byId.values()) {
      if (!report.project.includes(sought)) continue;
      const group = groups.get(report.project);
      if (group) group.push(report);
      else groups.set(report.project, [report]);
    }
    const rows = Array.from(groups, ([project, group]) => {
      const score = Math.round(group.reduce((sum, report) => sum + report.score, 0) / group.length);
      return { project, reports: group.length, score, created_at: group[0]?.created_at ?? 0 };
    });
    return sorted(rows, PROJECT_ORDERS[sort_by], sort);
  });

  function store(fields: Fields): Report {
    const address = readAddress(fields.url ?? "");
    if (!address) throw new TypeError(`not a page's address: ${fields.url}`);
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

  /** Says how many reports went with the project. */
  function removeProject(project: string): number {
    const doomed = [...byId.values()].filter((report) => report.project === project);
    for (const report of doomed) remove(report.id);
    return doomed.length;
  }

  seed();
  return { list, projects, get: (id: number) => byId.get(id), store, update, remove, removeProject };
}

import type { Reports } from "../../sandbox/reports.js";

/** How often something happened, by its name. */
export type Counts = Record<string, number>;

/** Adds to the count of a name. */
export function add(counts: Counts, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}

/** The number of those that happened more than once. */
export const moreThanOnce = (counts: Counts) => Object.values(counts).filter((often) => often > 1).length;

/** Counts how often the sandbox creates or regenerates reports, by page. The returned function returns the counts since its last call. */
export function countEffects(reports: Reports): () => Counts {
  let effects: Counts = {};
  const { store, update } = reports;
  reports.store = (fields) => {
    const report = store(fields);
    add(effects, report.url);
    return report;
  };
  reports.update = (id, fields) => {
    const report = update(id, fields);
    if (report && fields.update === "1") add(effects, report.url);
    return report;
  };
  return () => {
    const counted = effects;
    effects = {};
    return counted;
  };
}

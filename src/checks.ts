import { type ById, type Change, figures, merged, type Subject } from "./changes.js";
import { findingsOf } from "./findings.js";
import { isObject } from "./json.js";
import { idOf } from "./records.js";

/** The saved part of reports, to compare their checks. */
export interface CheckState {
  /** The names of all checks. */
  checks: string[];
  /** For each report a text with a mark per check, in the order of `checks`. A mark takes a byte of memory. */
  reports: ById<string>;
}

const PASSED = "+";
const FAILED = "-";
const UNKNOWN = " ";

/** More names are ignored, so that a service with other names in each report cannot fill the memory. */
const MOST_CHECKS = 1000;

/** Compares the checks of reports. A check that a report did not have before is no change; one that it lacks now is saved as it was. */
export const checks: Subject<CheckState> = {
  changes: ["failed", "fixed"],

  isState: (value): value is CheckState =>
    isObject(value) &&
    Array.isArray(value.checks) &&
    isObject(value.reports) &&
    Object.values(value.reports).every((marks) => typeof marks === "string" && /^[-+ ]*$/.test(marks)),

  compare(before = { checks: [], reports: {} }) {
    const seen: ById<string> = Object.create(null);
    const places = new Map(before.checks.map((check, place) => [check, place]));
    let found = 0;

    function placeOf(check: string): number | undefined {
      if (!places.has(check) && places.size < MOST_CHECKS) places.set(check, places.size);
      return places.get(check);
    }

    return {
      get found() {
        return found;
      },

      compare(record) {
        const id = idOf(record);
        const saved = Object.hasOwn(before.reports, id) ? (before.reports[id] as string) : "";
        const marks = [...saved];
        const changes: Change[] = [];
        for (const { check, passed, issue } of findingsOf(record)) {
          found++;
          const place = placeOf(check);
          if (place === undefined) continue;
          while (marks.length < place) marks.push(UNKNOWN);
          const mark = passed ? PASSED : FAILED;
          const { [place]: known = UNKNOWN } = marks;
          marks[place] = mark;
          if (known === mark || known === UNKNOWN) continue;
          const scores: Change["scores"] = [null, passed ? null : figures(record).score];
          const change = passed ? "fixed" : "failed";
          changes.push({ change, payload: issue(), worse: !passed, scores, details: { check } });
        }
        const now = marks.join("");
        if (now !== "") seen[id] = now === saved ? saved : now;
        return changes;
      },

      deleted: () => [],

      state: (whole) => ({ checks: [...places.keys()], reports: merged(before.reports, seen, whole) }),
    };
  },
};

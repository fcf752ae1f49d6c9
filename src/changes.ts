import { isObject, type Json } from "./json.js";
import { idOf } from "./records.js";

/** A difference between a report, or one of its checks, and what was saved of it. */
export interface Change {
  change: "created" | "changed" | "deleted" | "failed" | "fixed";
  /** The report as it is listed now, or what was saved of a deleted one; for a check, the issue. */
  payload: unknown;
  worse: boolean;
  /** The score before and after; null if it is unknown or does not count. */
  scores: [number | null, number | null];
  /** The properties of `msg.seo` about the change. */
  details: {
    previous?: Figures;
    /** The names of the values that differ. */
    fields?: string[];
    check?: string;
  };
}

/** Compares a list with the state of the last run, record by record. */
interface Comparison<S> {
  /** The number of checks in the list so far, if checks are compared. */
  readonly found?: number;
  /** The changes that a listed report shows. */
  compare(report: Json): Change[];
  /** The reports that are not listed any more. Only correct after a whole list. */
  deleted(): Change[];
  /** The new state. If the list was not whole, what is saved of the reports that were not listed remains. */
  state(whole: boolean): S;
}

/** A way to compare lists. `S`: the state that is saved between two runs, as JSON. */
export interface Subject<S> {
  /** The changes that it can find. */
  changes: Change["change"][];
  isState(value: unknown): value is S;
  /** `before`: absent in a first run. `threshold`: points by which a score must have moved to count. */
  compare(before: S | undefined, threshold: number): Comparison<S>;
}

/** The changes that are sent, by the values of the option `only`. `limit`: a score. */
export const conditions: Record<string, (change: Change, limit: number) => boolean> = {
  all: () => true,
  worse: ({ worse }) => worse,
  below: ({ scores: [before, now] }, limit) => now !== null && now < limit && (before === null || before >= limit),
};

export type Figures = ReturnType<typeof figures>;

/** By ID, as text. */
export type ById<T> = Record<string, T>;

interface ReportState {
  reports: ById<Figures>;
}

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
const number = (value: unknown) =>
  value === null || value === "" || !Number.isFinite(Number(value)) ? null : Number(value);

/**
 * The saved part of a report between two runs: values that can change, and its URL for when it is deleted. Older
 * installations return the score as a number in `result`, and no word; types differ between responses ("2" and 2).
 */
export function figures(record: unknown) {
  const { id, url, score, result, privacy, created_at, generated_at, updated_at } = Object(record) as Json;
  const points = number(result);
  return {
    id,
    url: text(url),
    score: number(score) ?? points,
    result: points === null ? text(result) : null,
    privacy: number(privacy),
    created_at: text(created_at),
    generated_at: text(generated_at),
    updated_at: text(updated_at),
  };
}

/** The properties that count as a change if there is a threshold for the score: dates alone do not. */
const decisive = ["score", "result", "privacy"];

const results = ["good", "decent", "bad"];

/** Whether a report is worse than before: by its score, or by its result if the scores do not differ. */
function isWorse(before: Figures, now: Figures): boolean {
  if (before.score !== null && before.score !== now.score) return Number(now.score) < before.score;
  const rankOf = ({ result }: Figures) => results.indexOf(String(result).toLowerCase());
  return rankOf(before) >= 0 && rankOf(now) > rankOf(before);
}

/** The saved state: the listed reports, and those that were not listed if the list was not whole. */
export const merged = <T>(before: ById<T>, seen: ById<T>, whole: boolean) => (whole ? seen : { ...before, ...seen });

/**
 * Compares the figures of reports. A score that moved less than the threshold is saved as it was, so that small steps add up.
 * A figure that the response lacks is saved as it was, too.
 */
export const reports: Subject<ReportState> = {
  changes: ["created", "changed", "deleted"],

  isState: (value): value is ReportState =>
    isObject(value) &&
    isObject(value.reports) &&
    Object.values(value.reports).every((report) => isObject(report) && "score" in report),

  compare({ reports: before } = { reports: {} }, threshold) {
    const seen: ById<Figures> = Object.create(null);
    return {
      compare(record) {
        const id = idOf(record);
        const now = figures(record);
        const previous = Object.hasOwn(before, id) ? before[id] : undefined;
        seen[id] = now;
        if (!previous)
          return [{ change: "created", payload: record, worse: false, scores: [null, now.score], details: {} }];
        const names = Object.keys(now) as (keyof Figures)[];
        for (const name of names)
          if (now[name] === null || name === "id") Object.assign(now, { [name]: previous[name] });
        // A score that was unknown counts as moved, whatever the threshold.
        const moved = previous.score === null ? threshold : Math.abs(Number(now.score) - previous.score);
        if (moved < threshold) now.score = previous.score;
        const fields = names.filter((name) => now[name] !== previous[name]);
        if (!fields.some((name) => threshold === 0 || decisive.includes(name))) return [];
        const scores: Change["scores"] = [previous.score, now.score];
        const worse = isWorse(previous, now);
        return [{ change: "changed", payload: record, worse, scores, details: { previous, fields } }];
      },

      deleted() {
        const gone = Object.entries(before).filter(([id]) => !Object.hasOwn(seen, id));
        return gone.map(([, previous]) => ({
          change: "deleted",
          payload: previous,
          worse: false,
          scores: [previous.score, null],
          details: { previous },
        }));
      },

      state: (whole) => ({ reports: merged(before, seen, whole) }),
    };
  },
};

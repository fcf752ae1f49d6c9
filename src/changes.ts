import { idOf } from "./pages.js";

/** What is saved of a report between two runs: what can change, and its URL for when it is deleted. */
export interface Figures {
  id: unknown;
  url: string | null;
  score: number | null;
  result: string | null;
  privacy: number | null;
  created_at: string | null;
  generated_at: string | null;
  updated_at: string | null;
}

/** The reports by ID, as text. */
export type Snapshot = Record<string, Figures>;

export interface Change {
  change: "created" | "changed" | "deleted";
  /** The report as it is listed now, or what was saved of a deleted one. */
  record: unknown;
  previous?: Figures;
  /** The names of the values that differ. */
  fields?: string[];
}

type Json = Record<string, unknown>;

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
const number = (value: unknown) =>
  value === null || value === "" || !Number.isFinite(Number(value)) ? null : Number(value);

/** Older installations return the score as a number in `result`, and no word; types differ between responses ("2" and 2). */
function figures(record: unknown): Figures {
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

/** What counts as a change if there is a threshold for the score: a regenerated report alone does not. */
const decisive = ["score", "result", "privacy"];

/**
 * Compares the list with the state of the last run, record by record; `seen` then holds the new state.
 * `threshold`: points by which a score must have moved; a score that moved less is saved as it was, so that
 * small steps add up. A figure that the response lacks is saved as it was, too.
 */
export function createComparison(before: Snapshot, threshold = 0) {
  const seen: Snapshot = Object.create(null);
  return {
    seen,

    /** The change that a listed record shows, if any. Throws SEO_RESPONSE for a record without an ID. */
    compare(record: unknown): Change | undefined {
      const id = idOf(record, "id");
      const now = figures(record);
      const previous = Object.hasOwn(before, id) ? before[id] : undefined;
      seen[id] = now;
      if (!previous) return { change: "created", record };
      const names = Object.keys(now) as (keyof Figures)[];
      for (const name of names) if (now[name] === null || name === "id") Object.assign(now, { [name]: previous[name] });
      // A score that was unknown counts as moved, whatever the threshold.
      const moved = previous.score === null ? threshold : Math.abs(Number(now.score) - previous.score);
      if (moved < threshold) now.score = previous.score;
      const fields = names.filter((name) => now[name] !== previous[name]);
      const counts = threshold === 0 ? fields.length > 0 : fields.some((name) => decisive.includes(name));
      return counts ? { change: "changed", record, previous, fields } : undefined;
    },

    /** The reports that are not listed any more. Only correct after a whole list. */
    deleted(): Change[] {
      const gone = Object.keys(before).filter((id) => !Object.hasOwn(seen, id));
      return gone.map((id) => ({ change: "deleted", record: before[id], previous: before[id] as Figures }));
    },
  };
}

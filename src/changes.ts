import { idOf } from "./pages.js";

/** What is kept of a report between two looks at the list: what may change, and its address for when it is gone. */
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

/** The reports by id, as text. */
export type Snapshot = Record<string, Figures>;

export interface Change {
  change: "created" | "changed" | "deleted";
  /** The report as it is listed now, or what was kept of one that is gone. */
  record: unknown;
  previous?: Figures;
  /** The names of the figures that differ. */
  fields?: string[];
}

type Json = Record<string, unknown>;

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
const number = (value: unknown) =>
  value === null || value === "" || !Number.isFinite(Number(value)) ? null : Number(value);

/** Older installations give the score as a number in `result`, and no word; types differ between answers ("2" and 2). */
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

/** What counts when a threshold says how far a score must move: a report that was made again is then no change by itself. */
const decisive = ["score", "result", "privacy"];

/**
 * Compares the list with what was seen before, record by record; `seen` then holds what to keep.
 * `threshold`: points by which a score must have moved; a score that moved less is kept as it was, so that
 * small steps add up. A figure that the answer leaves out is kept as it was, too.
 */
export function createComparison(before: Snapshot, threshold = 0) {
  const seen: Snapshot = Object.create(null);
  return {
    seen,

    /** The change that a listed record shows, if any. Throws SEO_RESPONSE for a record without an id. */
    compare(record: unknown): Change | undefined {
      const id = idOf(record, "id");
      const now = figures(record);
      const previous = Object.hasOwn(before, id) ? before[id] : undefined;
      seen[id] = now;
      if (!previous) return { change: "created", record };
      const names = Object.keys(now) as (keyof Figures)[];
      for (const name of names) if (now[name] === null || name === "id") Object.assign(now, { [name]: previous[name] });
      // A score that was not known has not moved by so many points: it is news.
      const moved = previous.score === null ? threshold : Math.abs(Number(now.score) - previous.score);
      if (moved < threshold) now.score = previous.score;
      const fields = names.filter((name) => now[name] !== previous[name]);
      const counts = threshold === 0 ? fields.length > 0 : fields.some((name) => decisive.includes(name));
      return counts ? { change: "changed", record, previous, fields } : undefined;
    },

    /** The reports that were not listed any more. To be asked only after a whole list. */
    deleted(): Change[] {
      const gone = Object.keys(before).filter((id) => !Object.hasOwn(seen, id));
      return gone.map((id) => ({ change: "deleted", record: before[id], previous: before[id] as Figures }));
    },
  };
}

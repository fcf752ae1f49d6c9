import { hash } from "node:crypto";

/** How a page can end. */
export const outcomes = ["created", "regenerated", "fresh", "failed", "uncertain"] as const;

export type Outcome = (typeof outcomes)[number];

/** How far a row is: its outcome, once that was told. A row that repeats another waits until then. */
const states = ["waiting", "sent", "ended", ...outcomes] as const;

export type State = (typeof states)[number];

/** 72 bits of a hash: of a million pages, two are confused in one list of ten billion. Texts this short are copied. */
const digest = (key: string) => hash("sha256", key, "base64url").slice(0, 12);

const NONE = -1;

/** What is in memory of each row: some 30 bytes, and as much again for finding its page. */
export function createPages() {
  let count = 0;
  let offsets = new Float64Array(64);
  /** The first row of the same page, and the next one. */
  let firsts = new Int32Array(64);
  let nexts = new Int32Array(64);
  let marks = new Uint8Array(64);
  const lasts = new Map<number, number>();
  const rows = new Map<string, number>();
  const counts = Object.fromEntries(states.map((state) => [state, 0])) as Record<State, number>;

  function grow(): void {
    const size = offsets.length * 2;
    const larger = { offsets: new Float64Array(size), firsts: new Int32Array(size), nexts: new Int32Array(size) };
    larger.offsets.set(offsets);
    larger.firsts.set(firsts);
    larger.nexts.set(nexts);
    ({ offsets, firsts, nexts } = larger);
    const more = new Uint8Array(size);
    more.set(marks);
    marks = more;
  }

  return {
    counts,
    count: () => count,

    /** Adds a row, which begins at `offset` of its list. */
    add(key: string, offset: number): void {
      if (count === offsets.length) grow();
      const row = count++;
      const text = digest(key);
      const first = rows.get(text) ?? row;
      offsets[row] = offset;
      firsts[row] = first;
      nexts[row] = NONE;
      if (first === row) rows.set(text, row);
      else {
        nexts[lasts.get(first) ?? first] = row;
        lasts.set(first, row);
      }
      counts.waiting++;
    },

    /** The page of a key: its first row. */
    find: (key: string) => rows.get(digest(key)),
    offset: (row: number) => offsets[row] as number,
    pageOf: (row: number) => firsts[row] as number,
    state: (row: number) => states[marks[row] as number] as State,

    /** All rows of a page. */
    *rowsOf(page: number): Generator<number> {
      for (let row = page; row !== NONE; row = nexts[row] as number) yield row;
    },

    set(row: number, state: State): void {
      counts[states[marks[row] as number] as State]--;
      counts[state]++;
      marks[row] = states.indexOf(state);
    },
  };
}

export type Pages = ReturnType<typeof createPages>;

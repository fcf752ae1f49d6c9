import { memory, versions } from "../runtime.js";
import type { Counts } from "../service.js";

/** How much the heap may grow. */
const GROWTH = 1.2;

/** The heap after garbage collection, in MB. */
export const heap = async () => Number(((await memory()).heapUsed / 2 ** 20).toFixed(1));

export const hasGrown = (heaps: number[]) => (heaps.at(-1) ?? 0) > (heaps[0] ?? 0) * GROWTH;

/** The number of those that happened more than once. */
export const moreThanOnce = (counts: Iterable<number>) => [...counts].filter((often) => often > 1).length;

/** Adds to the count of a name. */
export function add(counts: Counts, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}

/** How often audits have reported their rows, by batch, and the ends of the batches as the row after the last one. */
export class Reported {
  readonly #batches = new Map<string, { first: Uint8Array; all: Uint8Array }>();
  readonly #pages: number;

  constructor(pages: number) {
    this.#pages = pages;
  }

  get batches(): number {
    return this.#batches.size;
  }

  start(batch: string): void {
    this.#batches.set(batch, { first: new Uint8Array(this.#pages + 1), all: new Uint8Array(this.#pages + 1) });
  }

  /** Returns whether it is the row's first result, with or without `repeated`. */
  result({
    batch,
    index,
    repeated = false,
  }: {
    batch: string;
    index: number;
    repeated?: boolean | undefined;
  }): boolean {
    const { first, all } = this.#batches.get(batch) ?? {};
    if (!first || !all) throw new Error(`There is no batch ${batch}.`);
    if (!repeated) first[index] = (first[index] ?? 0) + 1;
    all[index] = (all[index] ?? 0) + 1;
    return all[index] === 1;
  }

  end(progress: { batch: string; finished: boolean; repeated?: boolean | undefined }): void {
    if (progress.finished) this.result({ ...progress, index: this.#pages });
  }

  /** The batches without all results or an end. */
  open(): number {
    return [...this.#batches.values()].filter(({ all }) => all.includes(0)).length;
  }

  problems() {
    const firsts = [...this.#batches.values()].flatMap(({ first }) => [...first]);
    return {
      "batches without all results or an end": this.open(),
      "results and ends reported twice": moreThanOnce(firsts),
    };
  }
}

/** Prints the result of a soak test, and ends the process; the test failed if there is a problem. */
export function conclude(values: Record<string, unknown>, problems: Record<string, number | boolean>): never {
  console.log(versions());
  console.table({ ...values, ...problems });
  const found = Object.entries(problems).filter(([, problem]) => Number(problem) > 0);
  if (found.length > 0) console.error(`The soak test failed: ${found.map(([name]) => name).join(", ")}.`);
  process.exit(found.length > 0 ? 1 : 0);
}

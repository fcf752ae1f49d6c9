import type { Result } from "../../../src/audit/options.js";
import { add, type Counts } from "../counts.js";
import type { Message } from "../driver.js";
import { memory, versions } from "../runtime.js";

/** How much the heap may grow. */
const GROWTH = 1.2;

/** The heap after garbage collection, in MB. */
export const heap = async () => Number(((await memory()).heapUsed / 2 ** 20).toFixed(1));

export const hasGrown = (heaps: number[]) => (heaps.at(-1) ?? 0) > (heaps[0] ?? 0) * GROWTH;

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
      "results and ends reported twice": firsts.filter((often) => often > 1).length,
    };
  }
}

/** What messages and audits report, to compare it with what the service has done. Pages have no scheme. */
export class Ledger {
  /** What happened. */
  readonly events: Counts = {};
  /** Messages with the response to another one. */
  mixedUp = 0;
  /** By page, how many requests have taken effect at least and at most. */
  #least: Counts = {};
  #most: Counts = {};
  #wrong = 0;

  /** A message with this page for `store report`. A deploy can drop it. */
  sent(page: string): void {
    add(this.#most, page);
  }

  stored({ page, payload }: Message): void {
    add(this.events, "store created");
    if ((payload as { url: string }).url !== page) this.mixedUp++;
    add(this.#least, String(page));
  }

  failed({ page, seo }: Message): void {
    const { operation, error } = seo as { operation: string; error: { code: string; uncertain: boolean } };
    add(this.events, `${operation} ${error.code}${error.uncertain ? ", uncertain" : ""}`);
    if (operation === "seo-report-store" && !error.uncertain) add(this.#most, String(page), -1);
  }

  /** The first result of a page. */
  audited({ input, outcome }: Result): void {
    const hasEffect = outcome === "created" || outcome === "regenerated";
    if (hasEffect) add(this.#least, String(input));
    if (hasEffect || outcome === "uncertain") add(this.#most, String(input));
  }

  /** Compares all that was reported since the last time, once everything has ended, with the effects by page. */
  settle(effects: Counts): void {
    for (const page of Object.keys({ ...effects, ...this.#most })) {
      const often = effects[page] ?? 0;
      if (often < (this.#least[page] ?? 0) || often > (this.#most[page] ?? 0)) this.#wrong++;
    }
    this.#least = {};
    this.#most = {};
  }

  problems() {
    return {
      "pages with more or fewer effects than reported": this.#wrong,
      "responses to another message": this.mixedUp,
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

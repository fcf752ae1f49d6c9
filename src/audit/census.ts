import type { Json } from "../json.js";
import { rankOf } from "../reconcile/watermark.js";
import { idOf } from "../records.js";

/**
 * The reports that were found in readings of a list, the one generated last first. Meanwhile, others can be created or deleted,
 * and those that are regenerated move to where the list was read before.
 */
export class Census {
  /** A report that moves is missed by one reading, but not by all. */
  readonly #found = new Set<string>();
  #foundNow = new Set<string>();
  /** Reports that were created since the reading began: they must not stand for those that moved. */
  #late = new Set<string>();
  #pages = 0;
  #totalAtFirst: number | undefined;
  #total = 0;
  #newest = Number.NaN;
  /** Rows that came again: rows before them were created, or moved. */
  #repeats = 0;
  #hasMoved = false;
  /** The total fell: reports that were found can be gone. */
  #fell = false;
  /** The total fell during this reading: rows behind the deleted ones moved up, perhaps to where the list was read before. */
  #fellNow = false;

  /** Another reading begins. */
  begin(): void {
    for (const id of this.#late) this.#found.add(id);
    this.#foundNow = new Set();
    this.#late = new Set();
    this.#pages = 0;
    this.#repeats = 0;
    this.#fellNow = false;
  }

  /**
   * Adds the new reports of a page of the list, which has so many `rows`. `total` is the number of reports in the account, if the
   * list says so.
   */
  add(reports: Json[], rows: number, total: number | undefined): void {
    const isFirst = ++this.#pages === 1;
    if (isFirst) {
      this.#totalAtFirst = total;
      this.#newest = Math.max(...reports.map((report) => rankOf(report)));
    }
    if (total !== undefined && total < this.#total) {
      this.#fell = true;
      this.#fellNow ||= !isFirst;
    }
    this.#total = total ?? this.#total;
    this.#repeats += rows - reports.length;
    for (const report of reports) {
      const isLate = !isFirst && rankOf(report) >= this.#newest;
      for (const ids of isLate ? [this.#late] : [this.#found, this.#foundNow]) ids.add(idOf(report));
    }
  }

  /** Without totals, only another reading shows whether reports moved. In a single page, none can. */
  #unknown(): false | undefined {
    return this.#pages > 1 ? undefined : false;
  }

  /**
   * Whether the pages so far can lack reports that were before their end when the reading began; undefined if only another reading
   * shows it. Those that moved are in the next reading.
   */
  skips(): boolean | undefined {
    if (this.#totalAtFirst === undefined) return this.#unknown();
    const moves = !this.#hasMoved && this.#repeats > this.#total - this.#totalAtFirst;
    this.#hasMoved ||= moves;
    return this.#fellNow || moves;
  }

  /** Whether the whole list lacked reports that were there when the reading began; as `skips`. `isCut`: as it says itself. */
  misses(isCut: boolean): boolean | undefined {
    if (this.#totalAtFirst === undefined) return isCut || this.#unknown();
    const { size } = this.#fell ? this.#foundNow : this.#found;
    return (isCut || this.#fellNow) && size < this.#totalAtFirst;
  }
}

import type { Reading } from "./list.js";
import { type Knowledge, look } from "./look.js";
import type { Search } from "./search.js";
import type { Watermark } from "./watermark.js";

const SECOND = 1000;
/** Many that search share their looks. */
const MOST_SECONDS_BETWEEN = 5;

/** All searches of a client. One read of the list serves those that are due. */
export class Searches {
  readonly #knowledge: Knowledge;
  readonly #sleep: (ms: number) => Promise<unknown>;
  readonly #searches = new Set<Search>();
  #isLooking = false;

  constructor(knowledge: Knowledge, sleep: (ms: number) => Promise<unknown>) {
    this.#knowledge = knowledge;
    this.#sleep = sleep;
  }

  add(search: Search): void {
    this.#searches.add(search);
    void this.#lookForAll();
  }

  delete(search: Search): void {
    this.#searches.delete(search);
  }

  /** Looks for all that is due, until nothing is searched for. */
  async #lookForAll(): Promise<void> {
    const { account, now } = this.#knowledge;
    if (this.#isLooking) return;
    this.#isLooking = true;
    while (this.#searches.size > 0) {
      const due = [...this.#searches].filter((search) => search.begin(now()));
      const [oldest] = due.flatMap(({ readTo }) => readTo ?? []).sort((a, b) => a.rank - b.rank);
      let reading: Promise<Reading> | undefined;
      const read = (list: string) => {
        reading ??= account.readAfter(list, oldest as Watermark);
        return reading;
      };
      for (const search of due) void this.#look(search, read);
      await reading?.catch(() => {});
      await this.#sleep(SECOND * Math.min(this.#searches.size, MOST_SECONDS_BETWEEN));
    }
    this.#isLooking = false;
  }

  async #look(search: Search, read: (list: string) => Promise<Reading>): Promise<void> {
    const { now } = this.#knowledge;
    try {
      search.apply(await look(this.#knowledge, search, read), now());
    } catch {
      search.fail(now());
    }
    if (search.isOver) this.#searches.delete(search);
  }
}

import type { SeoError } from "./errors.js";
import type { Task } from "./lane.js";

/** The task that waits, and how its wait ends early. */
interface Wait {
  task: Task;
  /** No limit of the service ends it. */
  kept: boolean;
  refuse(error: SeoError): void;
}

/** The tasks that wait for something other than a slot. They let others go on. */
export class Waits {
  readonly #waits = new Set<Wait>();

  get size(): number {
    return this.#waits.size;
  }

  /** Waits for `work`. If it is cancelled before, calls `stop` and rejects. */
  add<Value>(task: Task, work: () => Promise<Value>, kept: boolean, stop: () => void): Promise<Value> {
    return new Promise((resolve, reject) => {
      const refuse = (error: SeoError) => {
        stop();
        reject(error);
      };
      const wait = { task, kept, refuse };
      this.#waits.add(wait);
      task.lane.waiting++;
      task.lane.changed();
      work()
        .finally(() => this.#end(wait))
        .then(resolve, reject);
    });
  }

  /** Ends those that match. */
  cancel(error: SeoError, matches: (wait: Wait) => boolean): void {
    for (const wait of [...this.#waits].filter(matches)) {
      this.#end(wait);
      wait.refuse(error);
    }
  }

  #end(wait: Wait): void {
    if (!this.#waits.delete(wait)) return;
    wait.task.lane.waiting--;
    wait.task.lane.changed();
  }
}

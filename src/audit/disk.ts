import { cancelled } from "../errors.js";
import type { Clock } from "./clock.js";
import { Trouble } from "./trouble.js";

const MINUTE = 60_000;

/** Holds everything up while nothing can be saved. `store.probe` rejects for as long as that is so; `between` are milliseconds. */
export function createDisk(
  clock: Clock,
  store: { probe(): Promise<void>; readonly between?: number },
  hooks: { failed(error: Trouble): void; changed(): void },
) {
  let trouble: Trouble | undefined;
  let waiting: { resolve(): void; reject(error: unknown): void }[] = [];
  let cancel = () => {};
  let closed = false;
  let probing = false;
  /** An error is told once, until something was saved. */
  let told = false;

  function settle(how: (waiter: (typeof waiting)[number]) => void): void {
    const waiters = waiting;
    waiting = [];
    waiters.forEach(how);
  }

  async function retry(): Promise<void> {
    if (!trouble || probing) return;
    cancel();
    probing = true;
    const free = await store.probe().then(
      () => true,
      () => false,
    );
    probing = false;
    if (closed) return;
    if (!free) {
      cancel = clock.later(store.between ?? MINUTE, retry);
      return;
    }
    trouble = undefined;
    hooks.changed();
    settle(({ resolve }) => resolve());
  }

  function stall(error: Trouble): void {
    if (trouble || closed) return;
    trouble = error;
    cancel = clock.later(store.between ?? MINUTE, retry);
    if (!told) hooks.failed(error);
    told = true;
    hooks.changed();
  }

  return {
    trouble: () => trouble,
    stall,

    /** Something was saved. */
    saved(): void {
      told = false;
    },

    /** Reads or writes, and retries until it succeeds. Rejects with SEO_CANCELLED once this is closed. */
    async keep<Value>(work: () => Promise<Value>): Promise<Value> {
      for (;;) {
        try {
          return await work();
        } catch (cause) {
          if (!(cause instanceof Trouble)) throw cause;
          if (closed) throw cancelled;
          stall(cause);
          await new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }));
        }
      }
    },

    /** Probes now. */
    retry,

    close(): void {
      closed = true;
      cancel();
      settle(({ reject }) => reject(cancelled));
    },
  };
}

export type Disk = ReturnType<typeof createDisk>;

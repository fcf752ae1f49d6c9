import { cancelled } from "./errors.js";

/** A promise that is resolved from outside. */
export function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const nothing = () => {};

/** Makes a function that does one piece of work after the other, and resolves or rejects as each does. */
export function createSequence() {
  let end: Promise<unknown> = Promise.resolve();
  return <Value>(work: () => Promise<Value> | Value): Promise<Value> => {
    const done = end.then(work);
    // Without the value, which can be large.
    end = done.then(nothing, nothing);
    return done;
  };
}

/**
 * Makes a function that lets pieces of work with the same name run one after the other: it returns the end of all that came
 * before; undefined if nothing did. `ended` is the end of the piece itself.
 */
export function createTurns() {
  const ends = new Map<string, Promise<unknown>>();
  return (name: string, ended: Promise<unknown>): Promise<unknown> | undefined => {
    const before = ends.get(name);
    // One that gives up while it waits does not let the next one pass.
    const all = before ? before.then(() => ended) : ended;
    ends.set(name, all);
    void all.then(() => {
      if (ends.get(name) === all) ends.delete(name);
    });
    return before;
  };
}

/** Does work for all that came meanwhile, together: the next group begins when the one before, and `wait` after it, have ended. */
export function createGroups<Item, Value>(work: (items: Item[]) => Promise<Value>, wait: () => unknown = () => {}) {
  const inOrder = createSequence();
  let next: { items: Item[]; done: Promise<Value> } | undefined;
  let closed = false;
  return {
    /** Resolves, or rejects, with the work for its group. */
    async add(...items: Item[]): Promise<Value> {
      if (closed) throw cancelled;
      if (!next) {
        const items: Item[] = [];
        void inOrder(wait);
        const done = inOrder(() => {
          next = undefined;
          return work(items);
        });
        next = { items, done };
      }
      next.items.push(...items);
      return next.done;
    },

    /** Takes nothing more. Resolves when nothing is left to do. */
    async close(): Promise<void> {
      closed = true;
      await inOrder(() => {});
    },
  };
}

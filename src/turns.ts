/** A promise that is resolved from outside. */
export function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Lets pieces of work that share a name run one after the other. */
export function createTurns() {
  const last = new Map<string, Promise<void>>();
  return {
    /** Waits for all that came before under this name; undefined if nothing did. `ended` is the end of this one. */
    take(name: string, ended: Promise<void>): Promise<void> | undefined {
      const before = last.get(name);
      // One that gives up while it waits does not let the next one pass.
      const all = Promise.all([before, ended]).then(() => {
        if (last.get(name) === all) last.delete(name);
      });
      last.set(name, all);
      return before;
    },
  };
}

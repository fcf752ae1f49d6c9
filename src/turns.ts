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
  const last = new Map<string, Promise<unknown>>();
  return {
    /** Waits for all that came before under this name; undefined if nothing did. `ended` is the end of this one. */
    take(name: string, ended: Promise<unknown>): Promise<unknown> | undefined {
      const before = last.get(name);
      // One that gives up while it waits does not let the next one pass.
      const all = before ? Promise.all([before, ended]) : ended;
      last.set(name, all);
      void all.then(() => {
        if (last.get(name) === all) last.delete(name);
      });
      return before;
    },
  };
}

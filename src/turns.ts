/** A promise that is resolved from outside. */
export function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Makes a function that does one piece of work after the other, and resolves or rejects as each does. */
export function createSequence() {
  let last: Promise<unknown> = Promise.resolve();
  return <Value>(work: () => Promise<Value> | Value): Promise<Value> => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}

/** Lets pieces of work that share a name run one after the other. */
export function createTurns() {
  const last = new Map<string, Promise<unknown>>();

  /** Waits for all that came before under this name; undefined if nothing did. `ended` is the end of this one. */
  function take(name: string, ended: Promise<unknown>): Promise<unknown> | undefined {
    const before = last.get(name);
    // One that gives up while it waits does not let the next one pass.
    const all = before ? Promise.all([before, ended]) : ended;
    last.set(name, all);
    void all.then(() => {
      if (last.get(name) === all) last.delete(name);
    });
    return before;
  }

  return {
    take,

    /** Does `work` after all that came before under this name, for which `wait` waits. */
    async run<Value>(
      name: string,
      work: () => Promise<Value>,
      wait: (before: Promise<unknown>) => Promise<unknown>,
    ): Promise<Value> {
      const { promise, resolve } = deferred();
      try {
        const before = take(name, promise);
        if (before) await wait(before);
        return await work();
      } finally {
        resolve();
      }
    },
  };
}

/** Does work for all that came meanwhile, together: the next group begins when the one before has ended. */
export function createGroups<Item>(work: (items: Item[]) => Promise<void>) {
  let next: { items: Item[]; done: Promise<void> } | undefined;
  let last: Promise<unknown> = Promise.resolve();
  return {
    /** Resolves, or rejects, with the work for its group. */
    add(...items: Item[]): Promise<void> {
      if (!next) {
        const group: Item[] = [];
        const done = last.then(() => {
          next = undefined;
          return work(group);
        });
        next = { items: group, done };
        last = done.catch(() => {});
      }
      next.items.push(...items);
      return next.done;
    },

    /** Resolves when nothing is left to do. */
    ended: (): Promise<unknown> => last,
  };
}

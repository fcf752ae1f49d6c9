/** A job's slot. It has one while its request is in flight. */
export interface Hold {
  /** Nothing is in flight any more, and the job continues. */
  leave(): void;
  /** Waits for a slot again. */
  regain(): Promise<void>;
  end(): void;
}

/** So many requests can be in flight. `freed` is called when a job leaves its slot before it ends. */
export function createSlots(count: number, freed: () => void) {
  let free = count;
  let aside = 0;
  const waiting = new Set<() => void>();

  function serve(): void {
    for (const enter of waiting) {
      if (free === 0) return;
      free--;
      waiting.delete(enter);
      enter();
    }
  }

  function give(): void {
    free++;
    serve();
  }

  return {
    /** How many jobs have their slot. */
    inFlight: () => count - free,
    /** How many jobs have left their slot. */
    aside: () => aside,

    take(): Hold | undefined {
      if (free === 0) return undefined;
      free--;
      let inFlight = true;
      let enter = () => {};
      return {
        leave() {
          if (!inFlight) return;
          inFlight = false;
          aside++;
          give();
          freed();
        },

        /** Jobs that continue come before new ones. */
        async regain() {
          if (inFlight) return;
          await new Promise<void>((resolve) => {
            enter = () => {
              inFlight = true;
              aside--;
              resolve();
            };
            waiting.add(enter);
            serve();
          });
        },

        end() {
          waiting.delete(enter);
          if (inFlight) give();
          else aside--;
        },
      };
    },
  };
}

/** What a job holds: a slot, except while its response is lost and looked for. */
export interface Hold {
  lose(): void;
  regain(): Promise<void>;
  end(): void;
}

/** So many requests can be in flight. `freed` is called when a job gives its slot up before it ends. */
export function createSlots(count: number, freed: () => void) {
  let free = count;
  let lost = 0;
  const waiting: (() => void)[] = [];

  function give(): void {
    const next = waiting.shift();
    if (next) next();
    else free++;
  }

  return {
    /** How many jobs look for their response. */
    lost: () => lost,

    take(): Hold | undefined {
      if (free === 0) return undefined;
      free--;
      let inFlight = true;
      return {
        lose() {
          if (!inFlight) return;
          inFlight = false;
          lost++;
          give();
          freed();
        },

        /** Those that go on come before those that begin. */
        async regain() {
          if (inFlight) return;
          if (free > 0) free--;
          else await new Promise<void>((resolve) => waiting.push(resolve));
          inFlight = true;
          lost--;
        },

        end() {
          if (inFlight) give();
          else lost--;
        },
      };
    },

    /** Lets those that wait go on, because nothing is sent any more. */
    close(): void {
      for (const next of waiting.splice(0)) next();
    },
  };
}

export type Slots = ReturnType<typeof createSlots>;

/** So many requests can be in flight. */
export function createSlots(count: number) {
  let free = count;
  const waiting: (() => void)[] = [];
  return {
    take(): boolean {
      if (free <= 0) return false;
      free--;
      return true;
    },

    /** Waits for one. Those that wait come first. */
    async wait(): Promise<void> {
      if (this.take()) return;
      await new Promise<void>((resolve) => waiting.push(resolve));
    },

    give(): void {
      const next = waiting.shift();
      if (next) next();
      else free++;
    },

    /** Lets all that wait go on. */
    close(): void {
      for (const next of waiting.splice(0)) next();
    },
  };
}

export type Slots = ReturnType<typeof createSlots>;

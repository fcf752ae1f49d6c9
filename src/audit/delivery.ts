/** Milliseconds that a result takes to its next nodes: Node-RED delivers messages later, and several nodes in turn. */
const DELIVERY = 50;

/**
 * Holds back the note that a row was told until its result has been delivered: if the process dies before, it is told again.
 * `write` must not throw.
 */
export function createDelivery(write: (row: number) => void) {
  let sent: number[] = [];
  let delivered: number[] = [];
  let timer: NodeJS.Timeout | undefined;
  let wake = () => {};

  function note(): void {
    for (const row of delivered) write(row);
    delivered = sent;
    sent = [];
    timer = delivered.length > 0 ? setTimeout(note, DELIVERY) : undefined;
    if (!timer) wake();
  }

  return {
    add(row: number): void {
      sent.push(row);
      timer ??= setTimeout(note, DELIVERY);
    },
    /** Notes all rows now, because something is about to be noted that builds on them. */
    flush(): void {
      clearTimeout(timer);
      delivered.push(...sent);
      sent = [];
      note();
    },
    /** Resolves when all rows were noted. */
    async settled(): Promise<void> {
      if (!timer) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    },
    /** Notes nothing more: what may not have been delivered is told again. */
    close(): void {
      clearTimeout(timer);
      timer = undefined;
      wake();
    },
  };
}

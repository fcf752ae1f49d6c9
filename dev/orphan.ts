/** Milliseconds. */
const LOOK = 300;

/** Calls `act` once the parent process has ended: npm passes a signal to the shell that runs a script, which passes it to nobody. */
export function whenOrphaned(act: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    act();
  }, LOOK);
  timer.unref();
}

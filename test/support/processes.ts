import { setTimeout as sleep } from "node:timers/promises";

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Whether a process runs. A negative ID is that of a process group: whether one of its processes runs. */
export const isRunning = (pid: number): boolean => send(pid, 0);

/** Ends the processes of a group that still run. */
export async function endGroup(pid: number): Promise<void> {
  while (send(-pid, "SIGKILL")) await sleep(20);
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Whether something accepts connections on a port of this computer. */
export const accepts = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });

/** The end of a start whose program is missing: an error in CI, elsewhere one line and undefined. */
export function missing(hint: string, cause?: unknown): undefined {
  if (process.env.CI) throw new Error(cause ? `${hint} ${cause}` : hint, { cause });
  console.log(`      ${hint}`);
}

/** Starts a program, which must accept connections on a port. `hint`: what is not tested without the program. */
export async function startProgram([program = "", ...args]: string[], port: number, hint: string) {
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
  const child = spawn(program, args, { env, stdio: "ignore" });
  let hasEnded = false;
  const ended = once(child, "exit")
    .catch(() => {})
    .then(() => {
      hasEnded = true;
    });
  while (!(await accepts(port))) {
    if (hasEnded) return missing(hint);
    await sleep(20);
  }
  return {
    async close(): Promise<void> {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

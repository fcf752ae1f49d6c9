import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Orders, Said } from "./machine.js";
import { until } from "./time.js";

const MACHINE = fileURLToPath(new URL("./machine.js", import.meta.url));

/** Processes that audit pages in one folder, one after the other, and what they said. */
export function createFleet(orders: Orders) {
  const children = new Set<ChildProcess>();
  const said: Said[] = [];
  const results = () => said.flatMap((one) => ("result" in one ? [one.result] : []));

  /** Kills a process, and reads all that it said. */
  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "close");
    child.kill("SIGKILL");
    await ended;
  }

  return {
    results,
    finals: () => said.filter((one) => "finished" in one).length,
    errors: () => said.flatMap((one) => ("error" in one ? [one.error] : [])),
    spawn(pages?: string[]): ChildProcess {
      const all = JSON.stringify({ ...orders, ...(pages && { pages }) });
      const child = spawn(process.execPath, [MACHINE, all], { stdio: ["pipe", "pipe", "inherit"] });
      children.add(child);
      child.once("exit", () => children.delete(child));
      createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on("line", (line) => {
        said.push(JSON.parse(line));
      });
      return child;
    },
    kill,
    until: (holds: () => boolean) =>
      until(holds, { now: () => `${results().length}, ${JSON.stringify(said.slice(-3))}` }),
    stop: () => Promise.all(Array.from(children, kill)),
  };
}

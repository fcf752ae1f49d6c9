import { spawnSync } from "node:child_process";
import { cpus } from "node:os";

/** Keeps this process, and all that it starts, on one processor, if there are two and the system can. */
export function pin(processor: 0 | 1): void {
  if (cpus().length > 1) spawnSync("taskset", ["-a", "-p", "-c", String(processor), String(process.pid)]);
}

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tasks } from "./inside.js";

type Result<T extends keyof Tasks> = Awaited<ReturnType<Tasks[T]>>;

/** A process of its own that does the tasks of inside.ts, with an empty Node-RED folder. */
export function startInstance(execArgv: string[] = []) {
  const userDir = mkdtempSync(join(tmpdir(), "seo-bench-"));
  const child = fork(new URL("inside.js", import.meta.url), { execArgv: ["--expose-gc", ...execArgv] });
  let settle = (_error: string | undefined, _value?: unknown) => {};
  child.on("message", ({ error, value }: { error?: string; value?: unknown }) => settle(error, value));
  const ended = once(child, "exit").then(() => settle("The process ended."));
  return {
    userDir,
    do<T extends keyof Tasks>(task: T, input: Parameters<Tasks[T]>[0]): Promise<Result<T>> {
      return new Promise((resolve, reject) => {
        settle = (error, value) => (error === undefined ? resolve(value as Result<T>) : reject(new Error(error)));
        child.send({ task, input });
      });
    },
    async stop(): Promise<void> {
      if (child.connected) child.disconnect();
      await ended;
      rmSync(userDir, { recursive: true });
    },
  };
}

import { fork } from "node:child_process";
import { once } from "node:events";
import type { Tasks } from "./child.js";
import { pin } from "./servers.js";

type Result<T extends keyof Tasks> = Awaited<ReturnType<Tasks[T]>>;

/** Starts a process that does the tasks of child.ts. */
export function startInstance() {
  const child = fork(new URL("child.js", import.meta.url), { execArgv: ["--expose-gc"] });
  pin(child.pid, 0);
  let settle = (_error: string | undefined, _value?: unknown) => {};
  child.on("message", ({ error, value }: { error?: string; value?: unknown }) => settle(error, value));
  const ended = once(child, "exit").then(() => settle("The process ended."));
  return {
    run<T extends keyof Tasks>(task: T, input: Parameters<Tasks[T]>[0]): Promise<Result<T>> {
      return new Promise((resolve, reject) => {
        settle = (error, value) => (error === undefined ? resolve(value as Result<T>) : reject(new Error(error)));
        child.send({ task, input });
      });
    },
    async stop(): Promise<void> {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

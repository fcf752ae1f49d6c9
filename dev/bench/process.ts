import { fork } from "node:child_process";
import { once } from "node:events";

/** Does these tasks for the process that started this one. */
export function serve(tasks: Record<string, (input: never) => unknown>): void {
  process.on("message", async ({ task, input }: { task: string; input: never }) => {
    try {
      process.send?.({ value: await tasks[task]?.(input) });
    } catch (error) {
      process.send?.({ error: String((error as Error).stack) });
    }
  });
  process.on("disconnect", () => process.exit());
}

/** Starts a module that serves `Tasks`. It does one at a time. */
export function startProcess<Tasks extends { [Task in keyof Tasks]: (input: never) => unknown }>(
  module: URL,
  execArgv: string[] = [],
) {
  const child = fork(module, { execArgv });
  const ended = once(child, "exit");
  return {
    async run<Task extends keyof Tasks>(
      task: Task,
      input: Parameters<Tasks[Task]>[0],
    ): Promise<Awaited<ReturnType<Tasks[Task]>>> {
      const response = once(child, "message") as Promise<[{ value: unknown; error?: string }]>;
      child.send({ task, input });
      const end = ended.then(() => [{ value: undefined, error: "The process ended." }]);
      const [{ value, error } = { value: undefined }] = await Promise.race([response, end]);
      if (error) throw new Error(error);
      return value as Awaited<ReturnType<Tasks[Task]>>;
    },
    async stop(): Promise<void> {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

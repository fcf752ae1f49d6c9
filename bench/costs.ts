import { list } from "./contenders.js";
import type { Library } from "./inside.js";
import { startInstance } from "./instance.js";
import { medians } from "./statistics.js";

/** How many messages wait while their memory is measured. */
export const QUEUED = 20_000;
/** The settings of the service node that reads the pages. */
export const CONCURRENCY = 4;

async function within<T>(flow: object[], work: (instance: ReturnType<typeof startInstance>) => Promise<T>): Promise<T> {
  const instance = startInstance();
  try {
    await instance.do("boot", { userDir: instance.userDir, flow });
    return await work(instance);
  } finally {
    await instance.stop();
  }
}

/** Bytes of heap for each message that waits, beyond the message itself. */
export const measureQueue = (origin: string): Promise<number> =>
  within(list("held", `${origin}/held`, { concurrency: 1, queue: QUEUED }), ({ do: run }) =>
    run("queue", { id: "held", count: QUEUED }),
  );

export interface Loading {
  name: Library;
  ms: number;
  heap: number;
  rss: number;
}

/** What loading takes, each time in a Node-RED that has just started, in turns. */
export async function measureLoading(rounds: number): Promise<Loading[]> {
  const names: Library[] = [
    "at the start",
    "with the first message",
    "both together",
    "undici and zod",
    "http request's libraries",
  ];
  const taken = names.map((name) => ({ name, all: [] as Omit<Loading, "name">[] }));
  for (let round = 0; round < rounds; round++) {
    for (const { name, all } of taken) {
      const instance = startInstance();
      all.push(await instance.do("load", { userDir: instance.userDir, name }).finally(() => instance.stop()));
    }
  }
  return taken.map(({ name, all }) => ({ name, ...medians(all) }));
}

export interface Reading {
  output: string;
  ms: number;
  records: number;
  heap: number;
}

/** The list of 1 000 pages of 100 records each, read with each output that reads them all, and by bare undici; in turns. */
export async function measurePages(origin: string, rounds: number): Promise<Reading[]> {
  const service = { concurrency: CONCURRENCY };
  const readers = ["all", "pages", "records"].map((output) => ({ output, all: [] as Omit<Reading, "output">[] }));
  const bare = { output: "undici.request", all: [] as Omit<Reading, "output">[] };
  const flow = [
    ...readers.flatMap(({ output }) => list(output, `${origin}/slow`, service, { output, limit: "" })),
    ...list("first", origin, service),
  ];
  return within(flow, async ({ do: run }) => {
    // Loads what a first message loads.
    await run("pages", { id: "first" });
    for (let round = 0; round < rounds; round++) {
      for (const { output, all } of readers) all.push(await run("pages", { id: output }));
      bare.all.push(await run("barePages", { origin: `${origin}/slow`, connections: CONCURRENCY }));
    }
    return [...readers, bare].map(({ output, all }) => ({ output, ...medians(all) }));
  });
}

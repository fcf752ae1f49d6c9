import { list } from "./contenders.js";
import type { Library } from "./inside.js";
import { startInstance } from "./instance.js";
import { BARE } from "./results.js";
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

/** Measures each of these in turns, and says the medians. */
async function inTurns<N extends string, T extends { [figure in keyof T]: number }>(
  rounds: number,
  names: N[],
  measure: (name: N) => Promise<T>,
): Promise<({ name: N } & T)[]> {
  const taken = names.map((name) => ({ name, all: [] as T[] }));
  for (let round = 0; round < rounds; round++) for (const { name, all } of taken) all.push(await measure(name));
  return taken.map(({ name, all }) => ({ name, ...medians(all) }));
}

/** What loading takes, each time in a Node-RED that has just started. */
export function measureLoading(rounds: number): Promise<Loading[]> {
  const names: Library[] = [
    "at the start",
    "with the first message",
    "both together",
    "undici and zod",
    "http request's libraries",
  ];
  return inTurns(rounds, names, (name) => {
    const instance = startInstance();
    return instance.do("load", { userDir: instance.userDir, name }).finally(() => instance.stop());
  });
}

export interface Reading {
  /** The output that reads the list, or what does in its place. */
  name: string;
  ms: number;
  records: number;
  heap: number;
}

/** The list of 1 000 pages of 100 records each, read with each output that reads them all, and by bare undici. */
export async function measurePages(service: string, rounds: number): Promise<Reading[]> {
  const outputs = ["all", "pages", "records"];
  const origin = `${service}/slow`;
  const settings = { concurrency: CONCURRENCY };
  const flow = [
    ...outputs.flatMap((output) => list(output, origin, settings, { output, limit: "" })),
    ...list("first", service, settings),
  ];
  return within(flow, async ({ do: run }) => {
    // Loads what a first message loads.
    await run("pages", { id: "first" });
    return inTurns(rounds, [...outputs, BARE], (name) =>
      name === BARE ? run("barePages", { origin, connections: CONCURRENCY }) : run("pages", { id: name }),
    );
  });
}

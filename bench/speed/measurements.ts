import type { Library } from "./child.js";
import { BARE, contenders, list, loads } from "./contenders.js";
import { startInstance } from "./instance.js";
import { type Figures, medians } from "./measure.js";

/** The number of messages that wait while their memory is measured. */
export const QUEUED = 20_000;
/** Of the service node that reads the pages. */
export const CONCURRENCY = 4;
/** Until the code is compiled. */
const COMPILE = { warm: 0, ms: 0, requests: 4000 };

export type Row = { contender: string; inFlight: number } & Figures;
export type Loading = { name: Library; ms: number; heap: number; rss: number };
/** `name` is an output of the list node, or what reads the pages without it. */
export type Reading = { name: string; ms: number; records: number; heap: number };

/** Measures all items in turns, `rounds` times, and returns the medians. */
async function inTurns<I extends object, T extends { [figure in keyof T]: number }>(
  rounds: number,
  items: I[],
  measure: (item: I) => Promise<T>,
): Promise<(I & T)[]> {
  const measured = items.map((item) => ({ item, all: [] as T[] }));
  for (let round = 0; round < rounds; round++) for (const { item, all } of measured) all.push(await measure(item));
  return measured.map(({ item, all }) => ({ ...item, ...medians(all) }));
}

async function within<T>(flow: object[], work: (instance: ReturnType<typeof startInstance>) => Promise<T>): Promise<T> {
  const instance = startInstance();
  try {
    await instance.run("boot", { userDir: instance.userDir, flow });
    return await work(instance);
  } finally {
    await instance.stop();
  }
}

/** Measures all contenders with all numbers of messages in flight. */
export async function measureRequests(origin: string, { rounds, ms }: { rounds: number; ms: number }): Promise<Row[]> {
  const instances = Object.fromEntries(Object.keys(contenders).map((name) => [name, startInstance()]));
  const items = loads.flatMap((inFlight) => Object.keys(contenders).map((contender) => ({ contender, inFlight })));
  const measure = (
    { contender, inFlight }: (typeof items)[number],
    span = { warm: inFlight * 2, ms, requests: inFlight * 4 },
  ) => {
    const instance = instances[contender];
    if (!instance) throw new Error(`There is no contender ${contender}.`);
    return instance.run("measure", { name: contender, origin, inFlight, span });
  };
  try {
    for (const [name, { userDir, run }] of Object.entries(instances))
      await run("boot", { userDir, flow: contenders[name]?.flow(origin) ?? [] });
    for (const item of items) await measure(item, COMPILE);
    return await inTurns(rounds, items, (item) => measure(item));
  } finally {
    await Promise.all(Object.values(instances).map((instance) => instance.stop()));
  }
}

/** The heap per waiting message, besides the message itself, in bytes. */
export const measureQueue = (origin: string): Promise<number> =>
  within(list("held", `${origin}/held`, { concurrency: 1, queue: QUEUED }), ({ run }) =>
    run("queue", { id: "held", count: QUEUED }),
  );

/** The cost of loading, each time in a Node-RED that has just started. */
export function measureLoading(rounds: number): Promise<Loading[]> {
  const names: Library[] = [
    "at the start",
    "with the first message",
    "both together",
    "undici and zod",
    "http request's libraries",
  ];
  return inTurns(
    rounds,
    names.map((name) => ({ name })),
    ({ name }) => {
      const { run, userDir, stop } = startInstance();
      return run("load", { userDir, name }).finally(stop);
    },
  );
}

/** Reads a list of 1,000 pages with 100 records each, with each output that reads all pages, and with undici alone. */
export async function measurePages(service: string, rounds: number): Promise<Reading[]> {
  const outputs = ["all", "pages", "records"];
  const origin = `${service}/slow`;
  const settings = { concurrency: CONCURRENCY };
  const flow = [
    ...outputs.flatMap((output) => list(output, origin, settings, { output, limit: "" })),
    ...list("first", service, settings),
  ];
  return within(flow, async ({ run }) => {
    // Loads the modules that the first message loads.
    await run("pages", { id: "first" });
    return inTurns(
      rounds,
      [...outputs, BARE].map((name) => ({ name })),
      ({ name }) =>
        name === BARE ? run("barePages", { origin, connections: CONCURRENCY }) : run("pages", { id: name }),
    );
  });
}

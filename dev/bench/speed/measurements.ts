import type { Library } from "./child.js";
import { BARE, CORE, contenders, FLOOR, list, loads, OURS } from "./contenders.js";
import { startInstance } from "./instance.js";
import { type Figures, medians, relativeTo, spread } from "./measure.js";
import { byCause, type Times } from "./owners.js";
import type { Server } from "./servers.js";

/** The number of messages that wait while their memory is measured. */
export const QUEUED = 20_000;
/** Of the service node that reads the pages. */
export const CONCURRENCY = 4;
/** Until the code is compiled. */
const COMPILE = { warm: 0, ms: 0, requests: 4000 };

/** `server`: the share of one processor that the server needed. */
export type Measured = Figures & { server: number };
/** Those that others are compared with. */
const references = [OURS, FLOOR, CORE];
/** `spread`: that of the processor time. `relative`: the figures as multiples of another contender's, by its name. */
export type Row = {
  contender: string;
  inFlight: number;
  spread: number;
  relative: Record<string, Measured>;
} & Measured;
export type Loading = { name: Library; ms: number; heap: number; rss: number };
/** `name` is an output of the list node, or what reads the pages without it. */
export type Reading = { name: string; ms: number; records: number; heap: number };

/** Measures all items in turns, `rounds` times. */
async function inTurns<I extends object, T extends { [figure in keyof T]: number }>(
  rounds: number,
  items: I[],
  measure: (item: I) => Promise<T>,
): Promise<{ item: I; all: T[] }[]> {
  const measured = items.map((item) => ({ item, all: [] as T[] }));
  for (let round = 0; round < rounds; round++) for (const { item, all } of measured) all.push(await measure(item));
  return measured;
}

/** An item with the medians of its figures. */
const summarize = <I extends object, T extends { [figure in keyof T]: number }>({
  item,
  all,
}: {
  item: I;
  all: T[];
}) => ({
  ...item,
  ...medians(all),
});

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
export async function measureRequests(
  { origin, used }: Server,
  { rounds, ms }: { rounds: number; ms: number },
): Promise<Row[]> {
  const instances = Object.fromEntries(Object.keys(contenders).map((name) => [name, startInstance()]));
  const items = loads.flatMap((inFlight) => Object.keys(contenders).map((contender) => ({ contender, inFlight })));
  const measure = async (
    { contender, inFlight }: (typeof items)[number],
    // V8 discards compiled code while a contender waits for its turn.
    span = { warm: ms, ms, requests: inFlight * 4 },
  ) => {
    const instance = instances[contender];
    if (!instance) throw new Error(`There is no contender ${contender}.`);
    const began = performance.now();
    const before = used();
    const figures = await instance.run("measure", { name: contender, origin, inFlight, span });
    return { ...figures, server: (used() - before) / (performance.now() - began) };
  };
  try {
    for (const [name, { userDir, run }] of Object.entries(instances))
      await run("boot", { userDir, flow: contenders[name]?.flow(origin) ?? [] });
    for (const item of items) await measure(item, COMPILE);
    const rows = await inTurns(rounds, items, (item) => measure(item));
    const turnsOf = (name: string, inFlight: number) =>
      rows.find(({ item }) => item.contender === name && item.inFlight === inFlight)?.all ?? [];
    return rows.map((row) => ({
      ...summarize(row),
      spread: spread(row.all.map(({ cpu }) => cpu)),
      relative: Object.fromEntries(
        references.map((name) => [name, relativeTo(turnsOf(name, row.item.inFlight), row.all)]),
      ),
    }));
  } finally {
    await Promise.all(Object.values(instances).map((instance) => instance.stop()));
  }
}

/** The processor time of a request by cause, with 32 in flight: that of a node of ours, and that of the floor. */
export async function measureCauses(origin: string): Promise<Record<string, Times>> {
  const causes: Record<string, Times> = {};
  for (const name of [OURS, FLOOR]) {
    causes[name] = await within(contenders[name]?.flow(origin) ?? [], async ({ run }) => {
      const input = (requests: number) => ({ name, origin, inFlight: 32, span: { warm: 0, ms: 0, requests } });
      await run("measure", input(8000));
      const { figures, profile } = await run("profile", input(60_000));
      return byCause(profile, figures.cpu);
    });
  }
  return causes;
}

/** The heap per waiting message, besides the message itself, in bytes. */
export const measureQueue = (origin: string): Promise<number> =>
  within(list("held", `${origin}/held`, { concurrency: 1, queue: QUEUED }), ({ run }) =>
    run("queue", { id: "held", count: QUEUED }),
  );

/** The cost of loading, each time in a Node-RED that has just started. */
export async function measureLoading(rounds: number): Promise<Loading[]> {
  const names: Library[] = [
    "the package",
    "an empty package",
    "with the first message",
    "the package, with the first message",
    "undici and zod",
    "http request's libraries",
  ];
  const rows = await inTurns(
    rounds,
    names.map((name) => ({ name })),
    ({ name }): Promise<Omit<Loading, "name">> => {
      const { run, userDir, stop } = startInstance();
      return run("load", { userDir, name }).finally(stop);
    },
  );
  return rows.map(summarize);
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
    const rows = await inTurns(
      rounds,
      [...outputs, BARE].map((name) => ({ name })),
      ({ name }) =>
        name === BARE ? run("barePages", { origin, connections: CONCURRENCY }) : run("pages", { id: name }),
    );
    return rows.map(summarize);
  });
}

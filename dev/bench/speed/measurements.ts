import type { Library } from "./child.js";
import { BARE, CORE, contenders, FLOOR, list, loads, OURS } from "./contenders.js";
import { startInstance } from "./instance.js";
import { type Figures, median } from "./measure.js";

/** The number of messages that wait while their memory is measured. */
const QUEUED = 20_000;
const CONCURRENCY = 4;
/** Until the code is compiled. */
const COMPILE = { warm: 0, ms: 0, requests: 4000 };

/** Those that others are compared with. */
const references = [OURS, FLOOR, CORE];
/** `relative`: the figures as multiples of another contender's, by its name. */
export type Row = { contender: string; inFlight: number; relative: Record<string, Figures> } & Figures;
/** The milliseconds to load a library, or to read all pages. */
export type Times<Name extends string = string> = Record<Name, number>;

/** The medians of figures, property by property. */
const medians = (all: Figures[]): Figures => {
  const of = (name: keyof Figures) => median(all.map((figures) => figures[name]));
  return { rate: of("rate"), cpu: of("cpu"), p99: of("p99") };
};

/** The medians of figures relative to others of the same rounds: a machine is not equally fast all the time. */
const relativeTo = (others: Figures[], all: Figures[]): Figures => {
  const of = (name: keyof Figures) =>
    median(all.map((figures, round) => figures[name] / (others[round]?.[name] ?? Number.NaN)));
  return { rate: of("rate"), cpu: of("cpu"), p99: of("p99") };
};

/** Measures the time of each name in turns, and returns the medians. */
async function inTurns<Name extends string>(
  rounds: number,
  names: Name[],
  measure: (name: Name) => Promise<{ ms: number }>,
): Promise<Times<Name>> {
  const all: [Name, number][] = [];
  for (let round = 0; round < rounds; round++) for (const name of names) all.push([name, (await measure(name)).ms]);
  const of = (name: Name) => median(all.flatMap(([one, ms]) => (one === name ? [ms] : [])));
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Times<Name>;
}

/** Measures all contenders with all numbers of messages in flight. */
export async function measureRequests(origin: string, { rounds, ms }: { rounds: number; ms: number }): Promise<Row[]> {
  const instances = Object.entries(contenders).map(([name, { flow }]) => ({ name, flow, ...startInstance() }));
  const turns = loads.flatMap((inFlight) =>
    instances.map((instance) => ({ ...instance, inFlight, all: [] as Figures[] })),
  );
  const measure = ({ name, inFlight, run }: (typeof turns)[number], span = { warm: ms, ms, requests: inFlight * 4 }) =>
    run("measure", { name, origin, inFlight, span });
  try {
    for (const { run, flow } of instances) await run("boot", { flow: flow(origin) });
    for (const turn of turns) await measure(turn, COMPILE);
    // V8 discards compiled code while a contender waits for its turn, so each turn begins with a warm-up.
    for (let round = 0; round < rounds; round++) for (const turn of turns) turn.all.push(await measure(turn));
    return turns.map(({ name: contender, inFlight, all }) => {
      const compare = (other: string) =>
        relativeTo(turns.find((turn) => turn.name === other && turn.inFlight === inFlight)?.all ?? [], all);
      const relative = Object.fromEntries(references.map((other) => [other, compare(other)]));
      return { contender, inFlight, ...medians(all), relative };
    });
  } finally {
    await Promise.all(instances.map(({ stop }) => stop()));
  }
}

async function within<T>(
  flow: ReturnType<typeof list>,
  work: (run: ReturnType<typeof startInstance>["run"]) => Promise<T>,
): Promise<T> {
  const { run, stop } = startInstance();
  try {
    await run("boot", { flow });
    return await work(run);
  } finally {
    await stop();
  }
}

/** The heap per waiting message, besides the message itself, in bytes. */
export const measureQueue = (origin: string): Promise<number> =>
  within(list("held", `${origin}/held`, { concurrency: 1, queue: QUEUED }), (run) =>
    run("queue", { id: "held", count: QUEUED }),
  );

/** The time of loading, each time in a Node-RED that has just started. */
export const measureLoading = (rounds: number): Promise<Times<Library>> =>
  inTurns<Library>(rounds, ["the package", "an empty package", "undici and zod"], (name) => {
    const { run, stop } = startInstance();
    return run("load", { name }).finally(stop);
  });

/** Reads a list of 1,000 pages with 100 records each, with the output `all`, and with undici alone. */
export function measurePages(service: string, rounds: number): Promise<Times> {
  const origin = `${service}/slow`;
  const settings = { concurrency: CONCURRENCY };
  const flow = [...list("all", origin, settings, { output: "all", limit: "" }), ...list("first", service, settings)];
  return within(flow, async (run) => {
    // Loads the modules that the first message loads.
    await run("pages", { id: "first" });
    return inTurns(rounds, ["all", BARE], (id) =>
      id === BARE ? run("barePages", { origin, connections: CONCURRENCY }) : run("pages", { id }),
    );
  });
}

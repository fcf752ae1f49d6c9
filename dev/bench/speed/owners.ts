import type { Profiler } from "node:inspector";

/** Microseconds per request. */
export type Times = Record<string, number>;

/** The package that a file belongs to, Node, or a file of ours. */
function ownerOf(url: string): string {
  const [, ours] = /\/dist\/((?:src|nodes|dev\/bench)\/.*)$/.exec(url) ?? [];
  const packages = [...url.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)/g)];
  return ours ?? packages.at(-1)?.[1] ?? (url === "" ? "V8" : "Node");
}

/** Divides the processor time of a request, `cpu` microseconds, by owner. */
function divide({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile, cpu: number) {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const owners: Times = {};
  let busy = 0;
  for (const [index, id] of samples.entries()) {
    const { functionName = "", url = "" } = frames.get(id) ?? {};
    const time = timeDeltas[index] ?? 0;
    if (functionName === "(idle)") continue;
    busy += time;
    const owner = functionName.startsWith("(") ? functionName : ownerOf(url);
    owners[owner] = (owners[owner] ?? 0) + time;
  }
  return Object.entries(owners).map(([name, time]) => [name, (time / busy) * cpu] as const);
}

/** What processor time is spent on, by a pattern of its owner; the first that matches counts. */
const causes: [cause: string, owner: RegExp][] = [
  ["garbage collector", /^\(garbage collector\)$/],
  ["undici", /^undici$/],
  ["Node-RED", /^@node-red\//],
  ["zod", /^zod$/],
  ["JSON, and the bench itself", /^(secure-json-parse|dev\/bench\/.*)$/],
  ["these nodes", /^(src|nodes)\//],
  ["Node and V8", /./],
];

/** Divides the processor time of a request by cause, in the order of `causes`. */
export function byCause(profile: Profiler.Profile, cpu: number): Times {
  const times: Times = Object.fromEntries(causes.map(([cause]) => [cause, 0]));
  for (const [owner, time] of divide(profile, cpu)) {
    const [cause = ""] = causes.find(([, pattern]) => pattern.test(owner)) ?? [];
    times[cause] = (times[cause] ?? 0) + time;
  }
  return times;
}

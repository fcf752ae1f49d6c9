import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { startNginx } from "../../../test/support/nginx.js";
import { fill } from "../../markdown.js";
import { nodeRed, root } from "../../nodered.js";
import { startProcess } from "../process.js";
import { chart } from "./chart.js";
import type { Library, Tasks } from "./child.js";
import { contenders } from "./contenders.js";
import { type Figures, median } from "./measure.js";
import { pin } from "./pin.js";
import { type Measured, type Run, report, summarize } from "./report.js";
import { nginx, type Tasks as ServiceTasks } from "./service.js";

/**
 * `npm run bench` prints the result, and writes it to docs/performance.md, beside those of other versions of Node; it takes five minutes.
 * `npm run bench -- --quick` takes one, is less exact, and only prints it. The running Node selects the Node-RED.
 */
const quick = process.argv.includes("--quick");
const { rounds, count, loads, lists } = quick
  ? { rounds: 3, count: 4000, loads: 1, lists: 1 }
  : { rounds: 11, count: 16_000, loads: 9, lists: 3 };

const start = () => startProcess<Tasks>(new URL("child.js", import.meta.url), ["--expose-gc"]);

/** Does one task in a process of its own. */
function once<Task extends keyof Tasks>(task: Task, input: Parameters<Tasks[Task]>[0]) {
  const child = start();
  return child.run(task, input).finally(child.stop);
}

/** Measures all contenders in turns. In the first one, their code is compiled. */
async function measureRequests(origin: string): Promise<Measured["requests"]> {
  const all = Object.keys(contenders).map((name) => ({ name, child: start(), figures: [] as Figures[] }));
  try {
    for (const { name, child } of all) await child.run("prepare", { name, origin });
    for (let round = 0; round <= rounds; round++)
      for (const { child, figures } of all) figures.push(await child.run("measure", { count }));
    return Object.fromEntries(all.map(({ name, figures }) => [name, figures.slice(1)]));
  } finally {
    await Promise.all(all.map(({ child }) => child.stop()));
  }
}

/** Measures the time to load each library in turns, each time in a Node-RED that has just started. */
async function measureLoading(): Promise<Measured["loading"]> {
  const all = { "the package": [], "an empty package": [], "undici and zod": [] } as Record<Library, number[]>;
  const names = Object.keys(all) as Library[];
  for (let load = 0; load < loads; load++) for (const name of names) all[name].push(await once("load", { name }));
  return Object.fromEntries(names.map((name) => [name, median(all[name])])) as Measured["loading"];
}

async function run(): Promise<Run> {
  pin(1);
  const service = startProcess<ServiceTasks>(new URL("service.js", import.meta.url));
  const origin = await service.run("start", {});
  const server = await startNginx(nginx);
  try {
    const measured = {
      requests: await measureRequests(server?.url ?? origin),
      queued: await once("queue", { origin }),
      loading: await measureLoading(),
      pages: await once("pages", { origin, rounds: lists }),
    };
    return {
      node: process.versions.node,
      nodeRed: nodeRed().version,
      machine: `${cpus().length} x ${cpus()[0]?.model}`,
      server: server ? "nginx" : "Node's http",
      date: new Date().toISOString().slice(0, 10),
      ...summarize(measured),
    };
  } finally {
    await service.stop();
    await server?.close();
  }
}

/** Keeps the run beside those of other versions of Node, and writes all into the document. */
function publish(result: Run): void {
  const file = join(root, "dev/bench/speed/runs.json");
  const known = JSON.parse(readFileSync(file, "utf8")) as Record<string, Run>;
  const all = { ...known, [String(result.node.split(".")[0])]: result };
  const runs = Object.values(all);
  // More digits than the document shows would only be noise.
  const rounded = (_: string, value: unknown) => (typeof value === "number" ? Number(value.toPrecision(8)) : value);
  writeFileSync(file, `${JSON.stringify(all, rounded, 2)}\n`);
  writeFileSync(join(root, "docs/performance.svg"), chart(runs));
  const document = "docs/performance.md";
  writeFileSync(join(root, document), fill(document, { figures: () => report(runs) }));
}

const result = await run();
console.log(`Node-RED ${result.nodeRed}, ${result.machine}, against ${result.server}\n\n${report([result])}`);
if (!quick) publish(result);

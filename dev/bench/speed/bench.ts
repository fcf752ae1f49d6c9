import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startNginx } from "../../../test/support/nginx.js";
import { fill } from "../../markdown.js";
import { nodeRed, root } from "../../nodered.js";
import type { Tasks } from "./child.js";
import { contenders } from "./contenders.js";
import { pin } from "./measure.js";
import { type Round, type Run, report, summarize } from "./report.js";
import { nginx, startService } from "./service.js";

/**
 * `npm run bench` prints the result of seven rounds, and writes it to docs/performance.md, beside those of other versions of Node; it
 * takes ten minutes. `npm run bench -- 1` measures one round, and only prints it. The running Node selects the Node-RED.
 */
const ROUNDS = 7;
const [, , only] = process.argv;
const run = promisify(execFile);

/** Measures something in a process of its own. */
async function measure<Task extends keyof Tasks>(task: Task, origin: string, name = "") {
  const script = join(import.meta.dirname, "child.js");
  const { stdout } = await run(process.execPath, ["--expose-gc", script, task, origin, name]);
  return JSON.parse(stdout) as Awaited<ReturnType<Tasks[Task]>>;
}

/** Measures everything once. Each round begins with another contender, because the first one finds cold caches. */
async function measureAll(service: string, server: string, round: number): Promise<Round> {
  const names = Object.keys(contenders);
  const first = round % names.length;
  const requests: Round["requests"] = {};
  for (const name of [...names.slice(first), ...names.slice(0, first)])
    requests[name] = await measure("requests", server, name);
  const queued = await measure("queue", service);
  return { requests, queued, load: await measure("load", service), pages: await measure("pages", service) };
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
  const document = "docs/performance.md";
  writeFileSync(join(root, document), fill(document, { figures: () => report(runs) }));
}

pin(1);
const service = await startService();
const server = await startNginx(nginx);
try {
  const rounds: Round[] = [];
  while (rounds.length < Number(only ?? ROUNDS))
    rounds.push(await measureAll(service.url, server?.url ?? service.url, rounds.length));
  const result: Run = {
    node: process.versions.node,
    nodeRed: nodeRed().version,
    machine: `${cpus().length} x ${cpus()[0]?.model}`,
    server: server ? "nginx" : "Node's http",
    date: new Date().toISOString().slice(0, 10),
    figures: summarize(rounds),
  };
  console.log(`Node-RED ${result.nodeRed}, ${result.machine}, against ${result.server}\n\n${report([result])}`);
  if (!only) publish(result);
} finally {
  service.stop();
  await server?.close();
}

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { nodeRed, root } from "../../nodered.js";
import { fillIn } from "../markdown.js";
import { chart } from "./chart.js";
import { measureLoading, measurePages, measureQueue, measureRequests } from "./measurements.js";
import { gains, type Run, report, verdicts } from "./report.js";
import { startNginx, startNode } from "./servers.js";

/**
 * `npm run bench` prints the result, and writes it to docs/performance.md, beside those of other versions of Node; it takes five minutes.
 * `npm run bench -- --quick` takes one, is less exact, and only prints it. The running Node selects the Node-RED.
 */
const quick = process.argv.includes("--quick");
const rounds = quick ? 1 : 3;
const loads = quick ? 1 : 9;
const requests = quick ? { rounds: 3, ms: 300 } : { rounds: 11, ms: 400 };

async function run(): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "seo-bench-"));
  const service = await startNode();
  const server = (await startNginx(folder)) ?? service;
  try {
    return {
      nodeRed: nodeRed().version,
      node: process.versions.node,
      machine: `${cpus().length} x ${cpus()[0]?.model}`,
      server: server.name,
      date: new Date().toISOString().slice(0, 10),
      requests: await measureRequests(server.origin, requests),
      queued: await measureQueue(service.origin),
      loading: await measureLoading(loads),
      pages: await measurePages(service.origin, rounds),
    };
  } finally {
    service.stop();
    server.stop();
    rmSync(folder, { recursive: true });
  }
}

/** Numbers with eight digits, more than the document shows, and each measurement on a line. */
const compact = (runs: Record<string, Run>) =>
  JSON.stringify(runs, (_, value) => (typeof value === "number" ? Number(value.toPrecision(8)) : value))
    .replaceAll(/(?<=[[,])\{|"(requests|loading|pages)":/g, "\n  $&")
    .replaceAll(/"\d+":\{/g, "\n$&");

/** Keeps the run beside those of other versions of Node, and writes all into the document. */
function publish(result: Run): void {
  const docs = join(root, "docs");
  const file = join(root, "dev/bench/speed/runs.json");
  const known = JSON.parse(readFileSync(file, "utf8")) as Record<string, Run>;
  const [major = ""] = result.node.split(".");
  const all = { ...known, [major]: result };
  const runs = Object.values(all);
  writeFileSync(file, `${compact(all)}\n`);
  writeFileSync(join(docs, "performance.svg"), chart(runs));
  fillIn(join(docs, "performance.md"), gains(runs), "gains");
  fillIn(join(docs, "performance.md"), verdicts(runs), "targets");
}

const result = await run();
console.log(report(result));
if (!quick) publish(result);

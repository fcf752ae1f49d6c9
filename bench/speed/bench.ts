import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { nodeRed, root } from "../../dev/nodered.js";
import { fillIn } from "../markdown.js";
import { chart } from "./chart.js";
import { measureLoading, measurePages, measureQueue, measureRequests } from "./measurements.js";
import { type Run, report } from "./report.js";
import { startNginx, startNode } from "./servers.js";

/**
 * `npm run bench` writes its results to docs/performance.md. `npm run bench -- --quick` takes a minute, is less exact, and
 * only prints them. The running Node selects the Node-RED.
 */
const quick = process.argv.includes("--quick");
const rounds = quick ? 1 : 5;
const ms = quick ? 700 : 1500;

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
      requests: await measureRequests(server.origin, { rounds, ms }),
      queued: await measureQueue(service.origin),
      loading: await measureLoading(rounds),
      pages: await measurePages(service.origin, rounds),
    };
  } finally {
    service.stop();
    server.stop();
    rmSync(folder, { recursive: true });
  }
}

/** Keeps the run beside that of the other Node-RED, and writes both into the document. */
function publish(result: Run): void {
  const docs = join(root, "docs");
  const file = join(docs, "performance.json");
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Record<string, Run>) : {};
  const all = { ...known, [nodeRed().name]: result };
  const runs = [all["node-red-4"], all["node-red"]].filter((one) => one !== undefined);
  writeFileSync(file, `${JSON.stringify(all, null, 2)}\n`);
  writeFileSync(join(docs, "performance.svg"), chart(runs));
  fillIn(join(docs, "performance.md"), runs.map(report).join("\n\n"));
}

const result = await run();
console.log(report(result));
if (!quick) publish(result);

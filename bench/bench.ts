import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chart } from "./chart.js";
import { measureLoading, measurePages, measureQueue } from "./costs.js";
import { measureRequests } from "./requests.js";
import type { Run } from "./results.js";
import { nodeRed, nodeRedVersion } from "./runtime.js";
import { startNginx, startNode } from "./servers.js";
import { fillIn, report } from "./tables.js";

/**
 * The benchmark: `npm run bench`, which says in docs/performance.md what it found, or `npm run bench -- --quick`,
 * which takes a minute, is less exact, and only prints it. The running Node decides which Node-RED it is.
 */
const { values: options } = parseArgs({
  options: { quick: { type: "boolean", default: false }, rounds: { type: "string" }, ms: { type: "string" } },
});
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5));
const ms = Number(options.ms ?? (options.quick ? 700 : 1500));
const docs = fileURLToPath(new URL("../../docs/", import.meta.url));

async function run(): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "seo-bench-"));
  const service = await startNode();
  const server = (await startNginx(folder)) ?? service;
  try {
    const requests = await measureRequests(server.origin, { rounds, ms });
    return {
      nodeRed: nodeRedVersion,
      node: process.versions.node,
      machine: `${cpus().length} x ${cpus()[0]?.model}`,
      server: server.name,
      date: new Date().toISOString().slice(0, 10),
      requests,
      queued: await measureQueue(service.origin),
      loading: await measureLoading(rounds),
      pages: await measurePages(service.origin, rounds),
    };
  } finally {
    service.stop();
    if (server !== service) server.stop();
    rmSync(folder, { recursive: true });
  }
}

/** Keeps the run beside that of the other Node-RED, and writes both into the document. */
function publish(found: Run): void {
  mkdirSync(docs, { recursive: true });
  const file = join(docs, "performance.json");
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Record<string, Run>) : {};
  const all = { ...known, [nodeRed]: found };
  const runs = [all["node-red-4"], all["node-red"]].filter((one) => one !== undefined);
  writeFileSync(file, `${JSON.stringify(all, null, 2)}\n`);
  writeFileSync(join(docs, "performance.svg"), chart(runs));
  fillIn(join(docs, "performance.md"), runs.map(report).join("\n\n"));
}

const found = await run();
console.log(report(found));
if (!options.quick) publish(found);

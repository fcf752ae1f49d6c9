import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../../sandbox/server.js";
import { type Group, type Machine, type Round, startGroup } from "../../../test/support/machines.js";
import { type Engine, engines, startServer } from "../../../test/support/servers.js";
import { fill, table } from "../../markdown.js";
import { root } from "../../nodered.js";
import { countEffects, moreThanOnce } from "../counts.js";
import { versions } from "../runtime.js";

/**
 * `npm run bench:scaling` has one instance work on a batch in files, in Redis and in PostgreSQL, ends the lead of two instances,
 * five times, and writes its results to docs/scaling.md. `npm run bench:scaling -- 1` ends it once, and only prints them.
 */
const [, , only] = process.argv;
const SECOND = 1000;
const PATIENCE = 180 * SECOND;
const MACHINES = 2;
const PAGES = 180;
const LATENCY = 200;
/** An audit uses one request less than the service's concurrency, which is 4. */
const LIMIT = (3 * SECOND) / LATENCY;
/** How often the lead is ended. The list does not end before. */
const TIMES = Number(only ?? 5);
const LONG = 2000;
/** What an instance has sent before it was killed is received by then, in milliseconds. */
const SETTLED = 50;

/** Deploys a list to `machines` instances, for a new service, and starts it. */
async function start(group: Group, machines: number, pages: number, latency: number, settings: Round["settings"] = {}) {
  const requests: number[] = [];
  const service = await startSandbox({
    reports: 0,
    latency() {
      requests.push(Date.now());
      return latency;
    },
  });
  const effects = countEffects(service.reports);
  const urls = Array.from({ length: pages }, (_, index) => `https://example.com/${index}`);
  await group.deploy({ service, pages: urls, settings }, machines);
  await group.machines[0]?.red().inject("start");
  return { ...service, requests, effects };
}

/** Pages per second of one machine if only that limits them. */
async function busy(group: Group, pages: number, latency: number): Promise<number> {
  const service = await start(group, 1, pages, latency);
  const began = performance.now();
  await group.finished(pages, PATIENCE);
  await service.close();
  return (pages * SECOND) / (performance.now() - began);
}

const ends: [name: string, end: (lead: Machine) => Promise<void>][] = [
  ["`kill -9`", async (lead) => lead.kill("SIGKILL")],
  ["clean stop", (lead) => lead.stop()],
];

/** The least and the most seconds from the end of the lead to the next request of the other machine. */
async function takenOver(group: Group, engine: Engine): Promise<[string, number, number][]> {
  // A request that was noted, but not sent, is sent again after `reconcile`.
  const service = await start(group, MACHINES, LONG, 500, { reconcile: "20" });
  const rows: [string, number, number][] = [];
  for (const [name, end] of ends) {
    const seconds: number[] = [];
    while (seconds.length < TIMES) {
      const lead = group.machines[await group.leader(PATIENCE)] as Machine;
      await sleep(2 * SECOND * Math.random());
      const began = Date.now();
      await end(lead);
      const ended = Date.now() + SETTLED;
      await group.leader(PATIENCE);
      seconds.push(((service.requests.find((time) => time > ended) ?? Number.NaN) - began) / SECOND);
      await lead.start();
    }
    rows.push([`${engine}, ${name}`, Math.min(...seconds), Math.max(...seconds)]);
  }
  const twice = moreThanOnce(service.effects());
  if (twice > 0) throw new Error(`${engine}: ${twice} duplicates`);
  await service.close();
  return rows;
}

/** Measures instances whose batches are in files or on an engine. */
async function measure(engine?: Engine) {
  const server = engine && (await startServer(engine));
  if (engine && !server) throw new Error(`${engine} is not installed.`);
  const group = await startGroup(engine ? MACHINES : 1, server);
  try {
    // Loads the modules that the first message loads.
    await busy(group, 8, 10);
    const rate = [engine ?? "files", LIMIT, await busy(group, PAGES, LATENCY)];
    return { rate, takeovers: engine ? await takenOver(group, engine) : [] };
  } finally {
    await group.stop();
    await server?.close();
  }
}

const all = [];
for (const engine of [undefined, ...engines]) all.push(await measure(engine));
const text = [
  `${new Date().toISOString().slice(0, 10)}, ${versions()}, ${cpus().length} x ${cpus()[0]?.model}.`,
  `Pages per second on one machine, ${LATENCY} ms each:`,
  table(
    ["Batch in", "Limit", "Measured"],
    all.map(({ rate }) => rate),
  ),
  "Seconds from the end of the lead to the next request, without duplicates:",
  table(
    ["End of the lead", "Least", "Most"],
    all.flatMap(({ takeovers }) => takeovers),
  ),
].join("\n\n");
console.log(text);
const document = "docs/scaling.md";
if (!only) writeFileSync(join(root, document), fill(document, { bench: () => text }));

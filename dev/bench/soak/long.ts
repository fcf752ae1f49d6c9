import { type EventEmitter, once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../../src/audit/options.js";
import type { Progress } from "../../../src/audit/progress.js";
import { until } from "../../../test/support/time.js";
import { nodeRedModule } from "../../nodered.js";
import { add } from "../counts.js";
import { receivers, send } from "../driver.js";
import { boot, type FlowNode, serviceNode, startService } from "../runtime.js";
import { conclude, hasGrown, heap, Ledger, Reported } from "./results.js";

/**
 * `npm run soak -- long [minutes]`: audits, stores and report changes through a deploy every 3 s and all faults of the sandbox.
 * After each tenth, the batches end, and the process has to hold no more than after the first tenth.
 */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const TENTHS = 10;
const PAGES = 100;
const STORES = 10;
const BETWEEN_DEPLOYS = 3 * SECOND;
/** Deploys until the last batches of a tenth have ended. */
const MOST_AFTER = 40;
const minutes = Number(process.argv[3] ?? 20);

const { flows: runtime } = nodeRedModule<{
  flows: {
    getFlows(options: object): Promise<{ flows: FlowNode[] }>;
    setFlows(options: { flows: { flows: FlowNode[] }; deploymentType: "full" | "nodes" }): Promise<unknown>;
  };
}>("@node-red/runtime");
const { events: runtimeEvents } = nodeRedModule<{ events: EventEmitter }>("@node-red/util");

const service = await startService({ fail: 8 });
const audit = { existing: "existing", existingType: "msg", wires: [["results"], ["progress"]] };
const changes = { project: "audit.example.com", projectType: "str", changes: "all", limit: "0" };
const userDir = await boot([
  // Reconcile takes a third of the time between deploys. If it took longer, lost responses would never be found.
  serviceNode(service, { concurrency: 8, timeout: 2, reconcile: 1 }),
  { id: "store", type: "seo-report-store", output: "data", wires: [["stored"]] },
  { id: "changes", type: "seo-report-changes", ...changes, wires: [["changed"]] },
  { id: "audit", type: "seo-report-audit", ...audit },
  { id: "catch", type: "catch", scope: null, wires: [["caught"]] },
]);

const ledger = new Ledger();
const { events } = ledger;
const reported = new Reported(PAGES);
const started = new Set<string>();

receivers.set("results", ({ seo }) => {
  const result = seo as Result;
  add(events, `page ${result.outcome}${result.repeated ? ", repeated" : ""}`);
  if (reported.result(result)) ledger.audited(result);
});
receivers.set("progress", ({ payload }) => {
  const { batch, paused } = payload as Progress;
  started.add(batch);
  if (paused) add(events, "progress of a pause");
  reported.end(payload as Progress);
});
receivers.set("changed", ({ seo }) => add(events, `change: ${(seo as { change: string }).change}`));
receivers.set("stored", (msg) => ledger.stored(msg));
receivers.set("caught", (msg) => ledger.failed(msg));

let deploys = 0;
/** Deploys everything, or one changed node. */
async function deploy(deploymentType: "full" | "nodes"): Promise<void> {
  const name = String(++deploys);
  const changed = ["audit", "service", "store", "changes"][Math.floor(deploys / 2) % 4];
  const { flows } = await runtime.getFlows({});
  const restarted = once(runtimeEvents, "flows:started");
  const next = flows.map((node) => (deploymentType === "nodes" && node.id === changed ? { ...node, name } : node));
  await runtime.setFlows({ flows: { flows: next }, deploymentType });
  await restarted;
}

/** Starts the next batch: the same list, or, every fourth time, a list of new pages. */
async function startBatch(): Promise<void> {
  const topic = `batch ${reported.batches}`;
  const existing = ["regenerate", "return", "regenerate", "create"][reported.batches % 4];
  const site = existing === "create" ? `created.example.com/${reported.batches}` : "audit.example.com";
  reported.start(topic);
  const payload = Array.from({ length: PAGES }, (_, page) => `${site}/${page}`);
  send("audit", { topic, existing, payload });
  await until(() => started.has(topic));
}

let stores = 0;
async function work(): Promise<void> {
  for (let i = 0; i < STORES; i++) {
    const page = `created.example.com/store/${stores++}`;
    ledger.sent(page);
    send("store", { payload: page, page });
  }
  send("changes", {});
  await sleep(BETWEEN_DEPLOYS);
  await deploy(deploys % 2 ? "full" : "nodes");
}

type Sample = Record<string, number>;
const listeners = (of: EventEmitter) => of.eventNames().reduce((sum, name) => sum + of.listenerCount(name), 0);

/** What the process holds at rest, after a full deploy. */
async function sample(): Promise<Sample> {
  send("audit", { reset: true });
  await sleep(SECOND);
  await deploy("full");
  await sleep(6 * SECOND);
  const held: Sample = {
    "heap MB": await heap(),
    "open files": readdirSync("/proc/self/fd").length,
    "listeners of process": listeners(process),
    "listeners of RED.events": listeners(runtimeEvents),
    "files of batches": readdirSync(join(userDir, "seo-reports")).length,
  };
  for (const name of process.getActiveResourcesInfo()) held[name] = (held[name] ?? 0) + 1;
  return held;
}

const samples: Sample[] = [];
for (let tenth = 0; tenth < TENTHS; tenth++) {
  const end = performance.now() + (minutes * MINUTE) / TENTHS;
  while (performance.now() < end) {
    if (reported.open() < 2) await startBatch();
    await work();
  }
  for (let i = 0; i < MOST_AFTER && reported.open() > 0; i++) await work();
  samples.push(await sample());
  ledger.settle(await service.effects());
  console.error(`${reported.batches} batches, ${deploys} deploys: ${JSON.stringify(samples.at(-1))}`);
}
const [first = {}, last = {}] = [samples[0], samples.at(-1)];
const grown = ([name, value]: [string, number]) =>
  name === "heap MB" ? hasGrown([first[name] ?? 0, value]) : value > (first[name] ?? 0);
const held = [...new Set(samples.flatMap(Object.keys))].map((name) => [
  `${name}, after each tenth`,
  samples.map((one) => one[name] ?? 0).join(" "),
]);
conclude(
  { batches: reported.batches, deploys, ...events, ...Object.fromEntries(held) },
  { ...reported.problems(), ...ledger.problems(), "figures that grew": Object.entries(last).filter(grown).length },
);

import { type EventEmitter, once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../../src/audit/options.js";
import type { Progress } from "../../../src/audit/progress.js";
import { receivers, send } from "../driver.js";
import { boot, type FlowNode, nodeRedRequire, serviceNode, startService, until } from "../runtime.js";
import type { Counts } from "../service.js";
import { add, conclude, hasGrown, heap, Reported } from "./results.js";

/**
 * `npm run soak -- long [minutes]`: audits, stores and report changes through a deploy every 3 s and all faults of the sandbox.
 * After each tenth, the batches end, and the process has to hold no more than after the first tenth.
 */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const PATIENCE = 60 * SECOND;
const TENTHS = 10;
const PAGES = 100;
const STORES = 10;
const BETWEEN_DEPLOYS = 3 * SECOND;
/** Deploys until the last batches of a tenth have ended. */
const MOST_AFTER = 40;
const minutes = Number(process.argv[3] ?? 20);

const { flows: runtime } = nodeRedRequire("@node-red/runtime") as {
  flows: {
    getFlows(options: object): Promise<{ flows: FlowNode[] }>;
    setFlows(options: { flows: { flows: FlowNode[] }; deploymentType: "full" | "nodes" }): Promise<unknown>;
  };
};
const { events: runtimeEvents } = nodeRedRequire("@node-red/util") as { events: EventEmitter };

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

/** What happened, by name. */
const events: Counts = {};
/** By page, how many requests were reported to have taken effect, and how many more can have. */
const [certain, possible]: [Counts, Counts] = [{}, {}];
const count = (effects: Counts, url: string, by?: number) => add(effects, url.slice("https://".length), by);
/** Messages with the response to another. */
let mixedUp = 0;
const isEffect = (outcome: string) => ["created", "regenerated"].includes(outcome);
const reported = new Reported(PAGES);
const started = new Set<string>();

receivers.set("results", ({ seo }) => {
  const { input, outcome, repeated } = seo as Result;
  add(events, `page ${outcome}${repeated ? ", repeated" : ""}`);
  if (!reported.result(seo as Result)) return;
  if (isEffect(outcome)) count(certain, String(input));
  if (outcome === "uncertain") count(possible, String(input));
});
receivers.set("progress", ({ payload }) => {
  const { batch, paused } = payload as Progress;
  started.add(batch);
  if (paused) add(events, "progress of a pause");
  reported.end(payload as Progress);
});
receivers.set("changed", ({ seo }) => add(events, `change: ${(seo as { change: string }).change}`));
receivers.set("stored", ({ url, payload }) => {
  add(events, "store created");
  if (`https://${(payload as { url: string }).url}` !== url) mixedUp++;
  count(certain, String(url));
  count(possible, String(url), -1);
});
receivers.set("caught", ({ url, seo }) => {
  const { operation, error } = seo as { operation: string; error: { code: string; uncertain: boolean } };
  add(events, `${operation} ${error.code}${error.uncertain ? ", uncertain" : ""}`);
  if (operation === "seo-report-store" && !error.uncertain) count(possible, String(url), -1);
});

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
  const payload = Array.from({ length: PAGES }, (_, page) => `https://${site}/${page}`);
  send("audit", { topic, existing, payload });
  await until(() => started.has(topic), PATIENCE);
}

let stores = 0;
async function work(): Promise<void> {
  for (let i = 0; i < STORES; i++) {
    const url = `https://created.example.com/store/${stores++}`;
    // A deploy can drop it.
    count(possible, url);
    send("store", { payload: url, url });
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
  console.error(`${reported.batches} batches, ${deploys} deploys: ${JSON.stringify(samples.at(-1))}`);
}
const { effects } = await service.seen();
const [first = {}, last = {}] = [samples[0], samples.at(-1)];
const grown = ([name, value]: [string, number]) =>
  name === "heap MB" ? hasGrown([first[name] ?? 0, value]) : value > (first[name] ?? 0);
const held = [...new Set(samples.flatMap(Object.keys))].map((name) => [
  `${name}, after each tenth`,
  samples.map((one) => one[name] ?? 0).join(" "),
]);
conclude(
  { batches: reported.batches, deploys, ...events, ...Object.fromEntries(held) },
  {
    ...reported.problems(),
    "pages with more or fewer effects than reported": Object.entries(effects).filter(([page, often]) => {
      const least = certain[page] ?? 0;
      return often < least || often > least + (possible[page] ?? 0);
    }).length,
    "stores with the response to another": mixedUp,
    "figures that grew": Object.entries(last).filter(grown).length,
  },
);

import { type EventEmitter, once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../../src/audit/options.js";
import type { Progress } from "../../../src/audit/progress.js";
import { driver, drivers, receivers } from "../driver.js";
import { conclude } from "../markdown.js";
import { boot, type FlowNode, memory, nodeRedRequire, startService } from "../runtime.js";
import type { Seen } from "../service.js";

/**
 * `npm run soak -- long [minutes]`: audits, stores and report changes through a deploy every 3 s and all faults of the sandbox.
 * After each tenth, the batches end, and the process has to hold no more than after the first tenth.
 */
const MB = 2 ** 20;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const PATIENCE = 60 * SECOND;
const TENTHS = 10;
const PAGES = 100;
const STORES = 10;
const BETWEEN_DEPLOYS = 3 * SECOND;
/** Deploys until the last batches of a tenth have ended. */
const MOST_AFTER = 40;
const GROWTH = 1.2;
const minutes = Number(process.argv[3] ?? 20);

const { flows: runtime } = nodeRedRequire("@node-red/runtime") as {
  flows: {
    getFlows(options: object): Promise<{ flows: FlowNode[] }>;
    setFlows(options: { flows: { flows: FlowNode[] }; deploymentType: "full" | "nodes" }): Promise<unknown>;
  };
};
const { events: runtimeEvents } = nodeRedRequire("@node-red/util") as { events: EventEmitter };

const service = await startService({ fail: 8 });
const { url: baseUrl, apiKey } = service;
// Reconcile takes a third of the time between deploys. If it took longer, lost responses would never be found.
const settings = { concurrency: 8, timeout: 2, reconcile: 1, credentials: { apiKey } };
const audit = { existing: "existing", existingType: "msg", wires: [["results"], ["progress"]] };
const changes = { project: "audit.example.com", projectType: "str", changes: "all", limit: "0" };
const userDir = await boot([
  { id: "service", type: "seo-service", baseUrl, ...settings },
  { id: "store", type: "seo-report-store", service: "service", output: "data", wires: [["stored"]] },
  { id: "changes", type: "seo-report-changes", service: "service", ...changes, wires: [["changed"]] },
  { id: "audit", type: "seo-report-audit", service: "service", ...audit },
  { id: "catch", type: "catch", scope: null, wires: [["caught"]] },
  ...["store", "changes", "audit"].map((id) => driver(`to-${id}`, id)),
  ...["stored", "changed", "results", "progress", "caught"].map((id) => driver(id)),
]);
const send = (to: string, msg: object) => drivers.get(`to-${to}`)?.({ ...msg });

// The back-off is a fiftieth.
const random = Math.random;
Math.random = () => random() / 50;

type Counts = Seen["effects"];
const add = (counts: Counts, name: string, by = 1) => {
  counts[name] = (counts[name] ?? 0) + by;
};
/** What happened, by name. */
const events: Counts = {};
/** By page, how many requests were reported to have taken effect, and how many more can have. */
const [certain, possible]: [Counts, Counts] = [{}, {}];
const count = (effects: Counts, url: string, by?: number) => add(effects, url.slice("https://".length), by);
/** Messages with the response to another. */
let mixedUp = 0;
const isEffect = (outcome: string) => ["created", "regenerated"].includes(outcome);
/** By batch and row, the results without and with `repeated`. The end of the batch counts as a row after the last one. */
const rows = new Map<string, { first: Uint8Array; all: Uint8Array }>();
/** Returns whether the result is the row's first. */
function received(batch: string, index: number, repeated = false): boolean {
  const { first, all } = rows.get(batch) as { first: Uint8Array; all: Uint8Array };
  first[index] = (first[index] as number) + Number(!repeated);
  all[index] = (all[index] as number) + 1;
  return all[index] === 1;
}
const open = () => [...rows.values()].filter(({ all }) => all.includes(0)).length;
const started = new Set<string>();

receivers.set("results", ({ seo }) => {
  const { batch, index, input, outcome, repeated } = seo as Result;
  add(events, `page ${outcome}${repeated ? ", repeated" : ""}`);
  if (!received(batch, index, repeated)) return;
  if (isEffect(outcome)) count(certain, String(input));
  if (outcome === "uncertain") count(possible, String(input));
});
receivers.set("progress", ({ payload }) => {
  const { batch, finished, repeated, paused } = payload as Progress;
  started.add(batch);
  if (paused) add(events, "progress of a pause");
  if (finished) received(batch, PAGES, repeated);
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

const until = async (holds: () => boolean) => {
  for (const end = performance.now() + PATIENCE; !holds() && performance.now() < end; ) await sleep(20);
};

/** Starts the next batch: the same list, or, every fourth time, a list of new pages. */
async function startBatch(): Promise<void> {
  const topic = `batch ${rows.size}`;
  const existing = ["regenerate", "return", "regenerate", "create"][rows.size % 4];
  const site = existing === "create" ? `created.example.com/${rows.size}` : "audit.example.com";
  rows.set(topic, { first: new Uint8Array(PAGES + 1), all: new Uint8Array(PAGES + 1) });
  const payload = Array.from({ length: PAGES }, (_, page) => `https://${site}/${page}`);
  send("audit", { topic, existing, payload });
  await until(() => started.has(topic));
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
    "heap MB": (await memory()).heapUsed / MB,
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
    if (open() < 2) await startBatch();
    await work();
  }
  for (let i = 0; i < MOST_AFTER && open() > 0; i++) await work();
  samples.push(await sample());
  console.error(`${rows.size} batches, ${deploys} deploys: ${JSON.stringify(samples.at(-1))}`);
}
const { effects } = await service.seen();
const [first = {}, last = {}] = [samples[0], samples.at(-1)];
const hasGrown = (name: string) => (last[name] ?? 0) > (first[name] ?? 0) * (name === "heap MB" ? GROWTH : 1);
const held = [...new Set(samples.flatMap(Object.keys))].map((name) => [
  `${name}, after each tenth`,
  samples.map((one) => Number((one[name] ?? 0).toFixed(1))).join(" "),
]);
conclude(
  { batches: rows.size, deploys, ...events, ...Object.fromEntries(held) },
  {
    "batches without all results or an end": open(),
    "results and ends reported twice": [...rows.values()].flatMap(({ first }) => [...first]).filter((n) => n > 1)
      .length,
    "pages with more or fewer effects than reported": Object.entries(effects).filter(([page, often]) => {
      const least = certain[page] ?? 0;
      return often < least || often > least + (possible[page] ?? 0);
    }).length,
    "stores with the response to another": mixedUp,
    "figures that grew": Object.keys(last).filter(hasGrown).length,
  },
);

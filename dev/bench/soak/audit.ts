import { setTimeout as sleep } from "node:timers/promises";
import type { Progress } from "../../../src/audit/progress.js";
import { driver, drivers, receivers } from "../driver.js";
import { conclude } from "../markdown.js";
import { boot, memory, startService } from "../runtime.js";

/** `npm run soak -- audit [pages]`: an audit of many pages beside plain stores with the same budget, against the sandbox. */
const MB = 2 ** 20;
const SECOND = 1000;
const CONCURRENCY = 32;
const LATENCY = 100;
const STORES = 10_000;
/** The audit's speed, relative to plain stores. */
const LEAST_SPEED = 0.95;
/** Megabytes for the waiting pages, beyond the idle heap. */
const MOST_MEMORY = 25;

const pages = Number(process.argv[3] ?? 50_000);
const service = await startService({ latency: LATENCY });
const { url: baseUrl, apiKey } = service;
const settings = { concurrency: CONCURRENCY, queue: STORES, reconcile: "300", credentials: { apiKey } };
const audit = { existing: "create", existingType: "str", share: CONCURRENCY, wires: [["results"], ["progress"]] };
await boot([
  { id: "service", type: "seo-service", baseUrl, ...settings },
  { id: "store", type: "seo-report-store", service: "service", output: "body", wires: [["stored"]] },
  { id: "audit", type: "seo-report-audit", service: "service", ...audit },
  driver("to-store", "store"),
  driver("to-audit", "audit"),
  ...["stored", "results", "progress"].map((id) => driver(id)),
]);

const until = async (holds: () => boolean) => {
  while (!holds()) await sleep(5);
};

let stored = 0;
receivers.set("stored", () => {
  stored++;
});
let began = performance.now();
for (let i = 0; i < STORES; i++) drivers.get("to-store")?.({ payload: `https://plain.example.com/${i}` });
await until(() => stored === STORES);
const plain = STORES / ((performance.now() - began) / SECOND);

const reported = new Set<unknown>();
let results = 0;
let finished = false;
receivers.set("results", ({ seo }) => {
  results++;
  reported.add((seo as { index: number }).index);
});
receivers.set("progress", ({ payload }) => {
  finished = (payload as Progress).finished;
});
const idle = (await memory()).heapUsed;
began = performance.now();
const payload = Array.from({ length: pages }, (_, i) => `https://audit.example.com/${i % 97}/${i}`).join("\n");
drivers.get("to-audit")?.({ payload });
await until(() => results > 0);
const waiting = ((await memory()).heapUsed - idle) / MB;
await until(() => finished && reported.size === pages);
const audited = pages / ((performance.now() - began) / SECOND);

const { effects } = await service.seen();
conclude(
  {
    pages,
    "pages per second": audited.toFixed(1),
    "plain stores per second": plain.toFixed(1),
    ratio: (audited / plain).toFixed(2),
    "heap MB for waiting pages": waiting.toFixed(1),
  },
  {
    "reported twice": results - reported.size,
    "requested twice": Object.values(effects).filter((often) => often > 1).length,
    "too slow": Number(audited / plain < LEAST_SPEED),
    "too much memory": Number(waiting > MOST_MEMORY),
  },
);

import type { Result } from "../../../src/audit/options.js";
import type { Progress } from "../../../src/audit/progress.js";
import { until } from "../../../test/support/time.js";
import { moreThanOnce } from "../counts.js";
import { receivers, send } from "../driver.js";
import { boot, serviceNode, startService } from "../runtime.js";
import { conclude, Reported } from "./results.js";

/** `npm run soak -- audit [pages]`: an audit of many pages beside plain stores with the same budget, against the sandbox. */
const SECOND = 1000;
const CONCURRENCY = 32;
const LATENCY = 100;
const STORES = 10_000;
const PATIENT = { patience: Infinity };
/** The audit's speed, relative to plain stores. */
const LEAST_SPEED = 0.95;

const pages = Number(process.argv[3] ?? 50_000);
const service = await startService({ latency: LATENCY });
const audit = { existing: "create", existingType: "str", share: CONCURRENCY, wires: [["results"], ["progress"]] };
await boot([
  serviceNode(service, { concurrency: CONCURRENCY, queue: STORES, reconcile: "300" }),
  { id: "store", type: "seo-report-store", output: "body", wires: [["stored"]] },
  { id: "audit", type: "seo-report-audit", ...audit },
]);

let stored = 0;
receivers.set("stored", () => {
  stored++;
});
let began = performance.now();
for (let i = 0; i < STORES; i++) send("store", { payload: `https://plain.example.com/${i}` });
await until(() => stored === STORES, PATIENT);
const plain = STORES / ((performance.now() - began) / SECOND);

const topic = "audit";
const reported = new Reported(pages);
reported.start(topic);
receivers.set("results", ({ seo }) => {
  reported.result(seo as Result);
});
receivers.set("progress", ({ payload }) => reported.end(payload as Progress));
began = performance.now();
const payload = Array.from({ length: pages }, (_, i) => `https://audit.example.com/${i % 97}/${i}`).join("\n");
send("audit", { topic, payload });
await until(() => reported.open() === 0, PATIENT);
const audited = pages / ((performance.now() - began) / SECOND);

conclude(
  {
    pages,
    "pages per second": audited.toFixed(1),
    "plain stores per second": plain.toFixed(1),
    ratio: (audited / plain).toFixed(2),
  },
  {
    ...reported.problems(),
    "requested twice": moreThanOnce(await service.effects()),
    "too slow": audited / plain < LEAST_SPEED,
  },
);

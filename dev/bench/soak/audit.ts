import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Progress } from "../../../src/audit/progress.js";
import { nodeRed } from "../../nodered.js";
import { driver, drivers, type Message, receivers } from "../driver.js";
import { table } from "../markdown.js";
import { boot, memory } from "../runtime.js";
import type { Seen } from "../scaling/service.js";

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
const userDir = mkdtempSync(join(tmpdir(), "seo-soak-"));
const service = fork(new URL("../scaling/service.js", import.meta.url), { execArgv: [] });
service.send({ latency: LATENCY });
const [{ url, apiKey }] = (await once(service, "message")) as [{ url: string; apiKey: string }];
const settings = { concurrency: CONCURRENCY, queue: STORES, reconcile: "300", credentials: { apiKey } };
const audit = { existing: "create", existingType: "str", share: CONCURRENCY, wires: [["results"], ["progress"]] };
await boot(userDir, [
  { id: "service", type: "seo-service", baseUrl: url, ...settings },
  { id: "store", type: "seo-report-store", service: "service", output: "body", wires: [["stored"]] },
  { id: "audit", type: "seo-report-audit", service: "service", ...audit },
  driver("to-store", "store"),
  driver("to-audit", "audit"),
  ...["stored", "results", "progress"].map((id) => driver(id)),
] as Parameters<typeof boot>[1]);

const until = async (holds: () => boolean) => {
  while (!holds()) await sleep(5);
};

let stored = 0;
receivers.set("stored", () => {
  stored++;
});
let began = performance.now();
for (let i = 0; i < STORES; i++) drivers.get("to-store")?.({ payload: `https://plain.example.com/${i}` } as Message);
await until(() => stored === STORES);
const plain = STORES / ((performance.now() - began) / SECOND);

const told = new Set<unknown>();
let last: Progress | undefined;
let repeated = 0;
receivers.set("results", ({ seo }) => {
  const { index } = seo as { index: number };
  if (told.has(index)) repeated++;
  told.add(index);
});
receivers.set("progress", ({ payload }) => {
  last = payload as Progress;
});
const idle = (await memory()).heapUsed;
began = performance.now();
const list = Array.from({ length: pages }, (_, i) => `https://audit.example.com/${i % 97}/${i}`).join("\n");
drivers.get("to-audit")?.({ payload: list } as unknown as Message);
await until(() => told.size > 0);
const waiting = ((await memory()).heapUsed - idle) / MB;
await until(() => last?.finished === true && told.size === pages);
const audited = pages / ((performance.now() - began) / SECOND);

service.send("seen");
const [{ duplicates }] = (await once(service, "message")) as [Seen];
console.log(`Node-RED ${nodeRed().version}, Node ${process.versions.node}\n`);
console.log(
  table(
    ["", ""],
    [
      ["pages", pages.toLocaleString("en-US")],
      ["told", told.size.toLocaleString("en-US")],
      ["told twice", String(repeated)],
      ["requested twice", String(duplicates)],
      ["pages per second", audited.toFixed(1)],
      ["plain stores per second", plain.toFixed(1)],
      ["ratio", (audited / plain).toFixed(2)],
      ["heap MB for waiting pages", waiting.toFixed(1)],
    ],
  ),
);
rmSync(userDir, { recursive: true });
const sound = duplicates + repeated === 0 && audited / plain >= LEAST_SPEED && waiting <= MOST_MEMORY;
if (!sound) console.error("\nThe soak test failed.");
process.exit(sound ? 0 : 1);

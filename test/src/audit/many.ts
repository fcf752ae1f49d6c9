import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createBench, createFake } from "./fake.js";

/** A process of its own that measures what many waiting pages cost. It needs `--expose-gc`. */
const [folder = "", text = "50000"] = process.argv.slice(2);
const count = Number(text);
const collect = () => {
  (globalThis as unknown as { gc(): void }).gc();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return (heapUsed + external + arrayBuffers) / 2 ** 20;
};
const delay = monitorEventLoopDelay({ resolution: 5 });

/** As a long text, because it is the smallest form of a list. */
let list = Array.from(
  { length: count },
  (_, index) => `https://www.example.org/shop/category-${index % 97}/product-${index}`,
).join("\n");

const service = createFake({ latency: 5000 });
const first = createBench(folder, service);
await first.audit.progress();
const idle = collect();
delay.enable();
let began = performance.now();
assert.equal(await first.add(list), count);
const added = performance.now() - began;
const longest = delay.max / 1e6;
list = "";
const memory = collect() - idle;
await first.audit.pause();
await first.audit.close();

const second = createBench(folder, service);
began = performance.now();
assert.equal((await second.audit.progress())[0]?.waiting, count);
const resumed = performance.now() - began;
await second.audit.close();

const size = statSync(join(folder, "node/1-default.jsonl")).size;
const rss = Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) / 1024;
rmSync(folder, { recursive: true });
console.log(JSON.stringify({ count, memory, added, resumed, longest, bytes: size / count, rss, idle }));
process.exit();

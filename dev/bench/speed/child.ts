import { mkdirSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { linkPackage } from "../../nodered.js";
import { drivers } from "../driver.js";
import { boot, memory, nodeRedRequire } from "../runtime.js";
import { contenders } from "./contenders.js";
import { measure, type Span } from "./measure.js";
import { PAGES, path, query } from "./page.js";

/** Runs in the measured process, which instance.ts starts; does one task at a time. */

/** The heap when it no longer changes. */
async function settledHeap(): Promise<number> {
  for (let last = Number.NaN; ; await setTimeout(500)) {
    const { heapUsed } = await memory();
    if (Math.abs(heapUsed - last) < 100_000) return heapUsed;
    last = heapUsed;
  }
}

/** Reads records and returns the time, their number, and the peak of the heap above its start. */
async function watched(read: () => Promise<number>) {
  const { heapUsed } = await memory();
  let peak = heapUsed;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().heapUsed);
  }, 10);
  const began = performance.now();
  const records = await read();
  clearInterval(watch);
  return { ms: performance.now() - began, records, heap: peak - heapUsed };
}

const PACKAGE = "@seo-reports/node-red";
const EMPTY = "an empty package" as const;
const registry = nodeRedRequire("@node-red/registry") as { addModule(name: string): Promise<unknown> };
const add = () => registry.addModule(PACKAGE);

/** Installs a package that has the same name, and nothing else. */
function installEmpty(userDir: string): void {
  const folder = join(userDir, "node_modules", PACKAGE);
  const manifest = { name: PACKAGE, version: "1.0.0", type: "module", "node-red": { nodes: { empty: "empty.js" } } };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "empty.js"), "export default () => {};");
  writeFileSync(join(folder, "empty.html"), "");
}

/** What can be loaded, by name. */
const libraries = {
  "the package": add,
  [EMPTY]: add,
  async "with the first message"() {
    await import("../../../src/client.js");
    await import("../../../src/schema.js");
  },
  async "the package, with the first message"() {
    await add();
    await libraries["with the first message"]();
  },
  async "undici and zod"() {
    await import("undici");
    await import("zod");
  },
  async "http request's libraries"() {
    const nodes = createRequire(nodeRedRequire.resolve("@node-red/nodes"));
    for (const name of ["got", "tough-cookie", "hpagent", "form-data", "mustache", "cookie", "hash-sum"])
      await import(nodes.resolve(name));
  },
};
export type Library = keyof typeof libraries;

const tasks = {
  boot: ({ userDir, flow }: { userDir: string; flow: object[] }) => boot(userDir, flow),

  async measure({ name, origin, inFlight, span }: { name: string; origin: string; inFlight: number; span: Span }) {
    const contender = contenders[name];
    if (!contender) throw new Error(`There is no contender ${name}.`);
    return measure(await contender.prepare(origin, inFlight), inFlight, span);
  },

  /** Measures with a profile by the inspector. */
  async profile(input: { name: string; origin: string; inFlight: number; span: Span }) {
    const session = new Session();
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: 200 });
    await session.post("Profiler.start");
    const figures = await tasks.measure(input);
    const { profile } = await session.post("Profiler.stop");
    return { figures, profile };
  },

  /** The heap per waiting message, besides the message itself, in bytes. */
  async queue({ id, count }: { id: string; count: number }) {
    const results: unknown[] = [];
    const send = (_msgid: string) => ({ _msgid, payload: { ...query }, received: (msg: unknown) => results.push(msg) });
    // The first message loads the client, and its response never comes.
    drivers.get(id)?.(send("first"));
    await setTimeout(1000);
    const messages = Array.from({ length: count }, (_, index) => send(`message ${index}`));
    const before = await settledHeap();
    for (const msg of messages) drivers.get(id)?.(msg);
    const after = await settledHeap();
    if (results.length > 0) throw new Error(`${results.length} messages did not wait.`);
    return (after - before) / messages.length;
  },

  /** Loads a library into a Node-RED without it; returns milliseconds, and bytes of the heap and of the process. */
  async load({ userDir, name }: { userDir: string; name: Library }) {
    await boot(userDir, [], { linked: false, nodesExcludes: ["21-httprequest.js"] });
    if (name === EMPTY) installEmpty(userDir);
    else linkPackage(userDir);
    const before = await memory();
    const began = performance.now();
    await libraries[name]();
    const ms = performance.now() - began;
    const after = await memory();
    return { ms, heap: after.heapUsed - before.heapUsed, rss: after.rss - before.rss };
  },

  /** Reads a list to its end. */
  pages: ({ id }: { id: string }) =>
    watched(
      () =>
        new Promise<number>((resolve) => {
          let records = 0;
          drivers.get(id)?.({
            received({ payload, parts }) {
              records += Array.isArray(payload) ? payload.length : 1;
              const { index, count } = (parts ?? { index: 0, count: 1 }) as { index: number; count?: number };
              if (index + 1 === count) resolve(records);
            },
          });
        }),
    ),

  /** Reads the same pages with undici alone, which parses and drops them. */
  barePages: ({ origin, connections }: { origin: string; connections: number }) =>
    watched(async () => {
      const { Pool } = await import("undici");
      const { origin: service, pathname } = new URL(origin);
      const pool = new Pool(service, { connections });
      let page = 0;
      let records = 0;
      const read = async () => {
        while (page < PAGES) {
          const { body } = await pool.request({ method: "GET", path: `${pathname}${path}?page=${++page}` });
          records += ((await body.json()) as { data: unknown[] }).data.length;
        }
      };
      await Promise.all(Array.from({ length: connections }, read));
      await pool.close();
      return records;
    }),
};
export type Tasks = typeof tasks;

process.on("message", ({ task, input }: { task: keyof Tasks; input: never }) => {
  tasks[task](input).then(
    (value: unknown) => process.send?.({ value }),
    (cause: unknown) => process.send?.({ error: String((cause as Error)?.stack ?? cause) }),
  );
});
process.on("disconnect", () => process.exit());

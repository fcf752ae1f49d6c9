import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { linkPackage } from "../../nodered.js";
import { drivers } from "../driver.js";
import { boot, type FlowNode, memory, nodeRedRequire } from "../runtime.js";
import { contenders } from "./contenders.js";
import { measure, type Span } from "./measure.js";
import { PAGES, path, query } from "./service.js";

/** Runs in the measured process, which instance.ts starts; does one task at a time. */

/** The heap when it no longer changes. */
async function settledHeap(): Promise<number> {
  for (let last = Number.NaN; ; await setTimeout(500)) {
    const { heapUsed } = await memory();
    if (Math.abs(heapUsed - last) < 100_000) return heapUsed;
    last = heapUsed;
  }
}

async function timed(work: () => Promise<unknown>): Promise<{ ms: number }> {
  const began = performance.now();
  await work();
  return { ms: performance.now() - began };
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
  async "undici and zod"() {
    await import("undici");
    await import("zod");
  },
};
export type Library = keyof typeof libraries;

const tasks = {
  boot: ({ flow }: { flow: FlowNode[] }) => boot(flow),

  async measure({ name, origin, inFlight, span }: { name: string; origin: string; inFlight: number; span: Span }) {
    const contender = contenders[name];
    if (!contender) throw new Error(`There is no contender ${name}.`);
    return measure(await contender.prepare(origin, inFlight), inFlight, span);
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

  /** Loads a library into a Node-RED without it. */
  async load({ name }: { name: Library }) {
    const userDir = await boot([], { linked: false, nodesExcludes: ["21-httprequest.js"] });
    if (name === EMPTY) installEmpty(userDir);
    else linkPackage(userDir);
    await memory();
    return timed(libraries[name]);
  },

  /** Reads a list to its end. */
  async pages({ id }: { id: string }) {
    await memory();
    return timed(() => new Promise((received) => drivers.get(id)?.({ received })));
  },

  /** Reads the same pages with undici alone, which parses and drops them. */
  async barePages({ origin, connections }: { origin: string; connections: number }) {
    await memory();
    return timed(async () => {
      const { Pool } = await import("undici");
      const { origin: service, pathname } = new URL(origin);
      const pool = new Pool(service, { connections });
      let page = 0;
      const read = async () => {
        while (page < PAGES) {
          const { body } = await pool.request({ method: "GET", path: `${pathname}${path}?page=${++page}` });
          await body.json();
        }
      };
      await Promise.all(Array.from({ length: connections }, read));
      await pool.close();
    });
  },
};
export type Tasks = typeof tasks;

process.on("message", ({ task, input }: { task: keyof Tasks; input: never }) => {
  tasks[task](input).then(
    (value: unknown) => process.send?.({ value }),
    (cause: unknown) => process.send?.({ error: String((cause as Error)?.stack ?? cause) }),
  );
});
process.on("disconnect", () => process.exit());

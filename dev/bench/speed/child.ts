import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { linkPackage } from "../../nodered.js";
import { type Message, send } from "../driver.js";
import { serve } from "../process.js";
import { boot, memory, nodeRedRequire } from "../runtime.js";
import { measure, median, type Send } from "./measure.js";
import { pin } from "./pin.js";
import { PAGES, query } from "./service.js";

/** The number of messages that wait while their memory is measured. */
const QUEUED = 20_000;
const CONCURRENCY = 4;
const PACKAGE = "@seo-reports/node-red";

const registry = nodeRedRequire("@node-red/registry") as { addModule(name: string): Promise<unknown> };
/** Not imported above, because it loads undici, whose time to load is measured. */
const getContenders = () => import("./contenders.js");
let sendOne: Send | undefined;

async function timed(work: () => Promise<unknown>): Promise<number> {
  await memory();
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** The heap when it no longer changes. */
async function settledHeap(): Promise<number> {
  for (let last = Number.NaN; ; await setTimeout(500)) {
    const { heapUsed } = await memory();
    if (Math.abs(heapUsed - last) < 100_000) return heapUsed;
    last = heapUsed;
  }
}

/** Installs a package that has the same name, and nothing else. */
function installEmpty(userDir: string): void {
  const folder = join(userDir, "node_modules", PACKAGE);
  const manifest = { name: PACKAGE, version: "1.0.0", type: "module", "node-red": { nodes: { empty: "empty.js" } } };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "empty.js"), "export default () => {};");
  writeFileSync(join(folder, "empty.html"), "");
}

/** How to install and load a library, by its name. */
const libraries = {
  "the package": { install: linkPackage, load: () => registry.addModule(PACKAGE) },
  "an empty package": { install: installEmpty, load: () => registry.addModule(PACKAGE) },
  "undici and zod": { install: () => {}, load: (): Promise<unknown> => import("undici").then(() => import("zod")) },
};
export type Library = keyof typeof libraries;

/** What a measured process does. */
const tasks = {
  /** Prepares a contender. */
  async prepare({ name, origin }: { name: string; origin: string }): Promise<void> {
    const { contenders, href } = await getContenders();
    const { flow, request } = contenders[name] ?? {};
    const caught = { id: "catch", type: "catch", scope: null, wires: [["received"]] };
    await boot([...(flow?.(origin) ?? []), caught]);
    const through: Send = (received) =>
      send("measured", { payload: query, received: ({ error, payload }) => received(error ?? payload) });
    sendOne = request ? (received) => void request(href(origin)).then(received, received) : through;
  },

  /** Measures the contender. */
  async measure({ count }: { count: number }) {
    const { IN_FLIGHT } = await getContenders();
    if (!sendOne) throw new Error("There is no contender.");
    return measure(sendOne, IN_FLIGHT, count);
  },

  /** The heap per waiting message, besides the message itself, in bytes. */
  async queue({ origin }: { origin: string }): Promise<number> {
    const { list } = await getContenders();
    await boot(list(`${origin}/held`, { concurrency: 1, queue: QUEUED }));
    const results: Message[] = [];
    const message = (_msgid: string) => ({
      _msgid,
      payload: { ...query },
      received: (msg: Message) => results.push(msg),
    });
    // The first message loads the client, and its response never comes.
    send("measured", message("first"));
    await setTimeout(1000);
    const messages = Array.from({ length: QUEUED }, (_, index) => message(`message ${index}`));
    const before = await settledHeap();
    for (const msg of messages) send("measured", msg);
    const after = await settledHeap();
    if (results.length > 0) throw new Error(`${results.length} messages did not wait.`);
    return (after - before) / messages.length;
  },

  /** The milliseconds to load a library into a Node-RED without it. */
  async load({ name }: { name: Library }): Promise<number> {
    const userDir = await boot([], { linked: false, nodesExcludes: ["21-httprequest.js"] });
    libraries[name].install(userDir);
    return timed(libraries[name].load);
  },

  /** The milliseconds to read a list of 1,000 pages, with the output `all`, and with undici.request. */
  async pages({ origin, rounds }: { origin: string; rounds: number }): Promise<{ ours: number; bare: number }> {
    const { BARE, contenders, href, list } = await getContenders();
    const slow = `${origin}/slow`;
    await boot(list(slow, { concurrency: CONCURRENCY }, { output: "all", limit: "" }));
    const [ours, bare]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      ours.push(await timed(() => new Promise((received) => send("measured", { received }))));
      let page = 0;
      const read = async () => {
        while (page < PAGES) await contenders[BARE]?.request?.(`${href(slow)}&page=${++page}`);
      };
      bare.push(await timed(() => Promise.all(Array.from({ length: CONCURRENCY }, read))));
    }
    return { ours: median(ours), bare: median(bare) };
  },
};
export type Tasks = typeof tasks;

pin(0);
serve(tasks);

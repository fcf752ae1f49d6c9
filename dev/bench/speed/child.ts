import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { linkPackage, nodeRedModule } from "../../nodered.js";
import { receivers, send } from "../driver.js";
import { boot, memory } from "../runtime.js";
import { measure, pin, sendAll } from "./measure.js";
import { PAGES, query } from "./service.js";

/** The number of messages that wait while their memory is measured. */
const QUEUED = 20_000;
/** Milliseconds until they all wait. */
const SETTLED = 2000;
const CONCURRENCY = 4;
const PACKAGE = "@seo-reports/node-red";

const [task = "", origin = "", name = ""] = process.argv.slice(2);
/** Not imported above, because it loads undici, whose time to load is measured. */
const getContenders = () => import("./contenders.js");

async function timed(work: () => Promise<unknown>): Promise<number> {
  await memory();
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Installs a package that has nothing but a name. */
function installEmpty(userDir: string): void {
  const folder = join(userDir, "node_modules/empty");
  const manifest = { name: "empty", version: "1.0.0", type: "module", "node-red": { nodes: { empty: "empty.js" } } };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "empty.js"), "export default () => {};");
  writeFileSync(join(folder, "empty.html"), "");
}

const tasks = {
  /** Sends requests as a contender does. */
  async requests() {
    const { contenders, href } = await getContenders();
    const { flow, request } = contenders[name] ?? {};
    const caught = { id: "catch", type: "catch", scope: null, wires: [["received"]] };
    await boot([...(flow?.(origin) ?? []), caught]);
    receivers.set("received", ({ resolve, error, payload }) => (resolve as (body: unknown) => void)(error ?? payload));
    const through = () => new Promise((resolve) => send("measured", { payload: query, resolve }));
    return measure(request ? () => request(href(origin)) : through);
  },

  /** The heap per waiting message, besides the message itself, in bytes. */
  async queue() {
    const { list } = await getContenders();
    await boot(list(`${origin}/held`, { concurrency: 1, queue: QUEUED }));
    receivers.set("received", () => {
      throw new Error("A message did not wait.");
    });
    const message = (number: number) => ({ _msgid: `message ${number}`, payload: { ...query } });
    const heap = async () => {
      await sleep(SETTLED);
      return (await memory()).heapUsed;
    };
    // The first message loads the client, and its response never comes.
    send("measured", message(0));
    const messages = Array.from({ length: QUEUED }, (_, index) => message(index + 1));
    const before = await heap();
    for (const msg of messages) send("measured", msg);
    return ((await heap()) - before) / messages.length;
  },

  /** The time to load the package into Node-RED, besides that of any package, relative to undici and zod. */
  async load() {
    const { addModule } = nodeRedModule<{ addModule(name: string): Promise<unknown> }>("@node-red/registry");
    const userDir = await boot([], { linked: false, nodesExcludes: ["21-httprequest.js"] });
    installEmpty(userDir);
    linkPackage(userDir);
    const ours = await timed(() => addModule(PACKAGE));
    const any = await timed(() => addModule("empty"));
    return (ours - any) / (await timed(() => import("undici").then(() => import("zod"))));
  },

  /** The milliseconds to read a list of 1,000 pages, with the output `all`, and with undici.request; the first ones are a warm-up. */
  async pages() {
    const { BARE, contenders, href, list } = await getContenders();
    const slow = `${origin}/slow`;
    await boot(list(slow, { concurrency: CONCURRENCY }, { output: "all", limit: "" }));
    const readAll = () =>
      new Promise((resolve) => {
        receivers.set("received", resolve);
        send("measured", {});
      });
    const readBare = () => {
      let page = 0;
      const read = async () => contenders[BARE]?.request?.(`${href(slow)}&page=${++page}`);
      return sendAll(read, CONCURRENCY, PAGES);
    };
    await readAll();
    await readBare();
    return { ours: await timed(readAll), bare: await timed(readBare) };
  },
};
export type Tasks = typeof tasks;

/** Prints what one task measures. */
pin(0);
console.log(JSON.stringify(await tasks[task as keyof Tasks]()));
process.exit();

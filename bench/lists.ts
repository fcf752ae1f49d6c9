import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Node, NodeAPI } from "node-red";

/**
 * Measures lists: `node dist/bench/lists.js`. How long 1 000 pages take that are 20 ms each, and how much memory
 * 100 000 records need, as messages of their own and as one array. The service is a process of its own.
 */
const PAGES = 1000;
const PAGE = 100;
const DELAY = 20;
const MB = 2 ** 20;
const self = fileURLToPath(import.meta.url);

/** A report as the service lists it, with some of its checks. */
const record = (id: number) => ({
  id,
  url: `example.com/page/${id}`,
  project: "example.com",
  score: id % 101,
  result: "good",
  results: Object.fromEntries(
    ["title", "headings", "links", "images"].map((check) => [check, { passed: true, value: id }]),
  ),
  privacy: 0,
  password: false,
  created_at: "2026-01-01T00:00:00.000000Z",
});

/** The service. It answers with pages that were made before, so that it takes no longer than it says. */
function serve(): void {
  const bodies = Array.from({ length: PAGES }, (_, page) => {
    const data = Array.from({ length: PAGE }, (_, i) => record(page * PAGE + i + 1));
    const meta = { current_page: page + 1, last_page: PAGES, per_page: PAGE, total: PAGES * PAGE };
    return JSON.stringify({ data, links: {}, meta });
  });
  const server = createServer(({ url }, response) => {
    const page = Number(new URL(String(url), "http://localhost").searchParams.get("page") ?? 1);
    setTimeout(() => {
      response.writeHead(200, { "content-type": "application/json" }).end(bodies[page - 1]);
    }, DELAY);
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
  process.on("disconnect", () => process.exit());
}

/** What one list took; bytes and milliseconds. */
interface Took {
  records: number;
  wall: number;
  /** What this process computed, of that. */
  cpu: number;
  /** The most heap that was in use, with garbage, and the most that a collection left. */
  peak: number;
  live: number;
  /** What was in use before. */
  idle: number;
}

/** Reads one list in a Node-RED of its own. */
async function read(baseUrl: string, output: string, concurrency: string): Promise<Took> {
  // Loaded here: the service's process needs none of it.
  const { helper } = await import("../test/support/red.js");
  const { node, run, service } = await import("../test/support/flow.js");
  const took = { records: 0, wall: 0, cpu: 0, peak: 0, live: 0, idle: 0 };
  const heap = () => process.memoryUsage().heapUsed;
  const collected = () => {
    globalThis.gc?.();
    return heap();
  };
  let nextLook = 0;
  const counting = (RED: NodeAPI) =>
    RED.nodes.registerType("count", function (this: Node, config) {
      RED.nodes.createNode(this, config);
      this.on("input", ({ payload }, _send, done) => {
        took.records += Array.isArray(payload) ? payload.length : 1;
        if (took.records >= nextLook) {
          nextLook = took.records + 10_000;
          took.live = Math.max(took.live, collected());
        }
        done();
      });
    });
  const list = node("list", "seo-report-list", ["count"], { output, limit: "" });
  const flow = await run([service(baseUrl, { concurrency }), list, node("count", "count", [])], [counting]);
  // The helper's spies keep every message that is sent, and would be measured instead of the nodes.
  (helper as unknown as { _sandbox: { restore(): void } })._sandbox.restore();
  Reflect.deleteProperty(Object(helper.getNode("list")), "send");
  took.idle = collected();
  const watch = setInterval(() => {
    took.peak = Math.max(took.peak, heap());
  }, 2);
  const [began, before] = [performance.now(), process.cpuUsage()];
  await flow.send("list");
  took.wall = performance.now() - began;
  const { user, system } = process.cpuUsage(before);
  took.cpu = (user + system) / 1000;
  clearInterval(watch);
  return took;
}

/** Runs this file as another process, and resolves with what it tells first. */
async function start(...args: (string | number)[]) {
  const child = fork(self, args.map(String), { execArgv: ["--expose-gc"] });
  const [told] = await once(child, "message");
  return { child, told: told as unknown };
}

const cases = [
  ["pages", 1],
  ["pages", 4],
  ["pages", 16],
  ["records", 4],
  ["all", 4],
] as const;

async function main(): Promise<void> {
  const { child: server, told: port } = await start("serve");
  console.log(`${PAGES} pages of ${PAGE} records, ${DELAY} ms each; Node ${process.version}\n`);
  console.log("output   at a time  wall s    cpu s  ideal s  peak heap  live heap  idle heap (MB)");
  for (const [output, concurrency] of cases) {
    const { child, told } = await start("read", `http://127.0.0.1:${port}`, output, concurrency);
    const { records, wall, cpu, peak, live, idle } = told as Took;
    child.kill();
    if (records !== PAGES * PAGE) throw new Error(`${records} records came.`);
    const ideal = (PAGES / concurrency) * DELAY;
    const seconds = [wall, cpu, ideal].map((ms) => (ms / 1000).toFixed(2).padStart(8));
    const megabytes = [peak, live, idle].map((bytes) => (bytes / MB).toFixed(0).padStart(10));
    console.log(output.padEnd(8), String(concurrency).padStart(9), ...seconds, ...megabytes);
  }
  server.kill();
}

const [role, baseUrl = "", output = "", concurrency = ""] = process.argv.slice(2);
if (role === "serve") serve();
else if (role === "read") process.send?.(await read(baseUrl, output, concurrency));
else await main();

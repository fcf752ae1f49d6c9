import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { linkPackage, nodeRed, root } from "../../dev/nodered.js";
import { startRelay } from "../../test/support/broker.js";
import type { FlowNode } from "../../test/support/red.js";
import { figure, fillIn, table } from "../markdown.js";
import { type Cluster, NODES, type Run, type Setup, startCluster } from "./cluster.js";

/**
 * `npm run bench:scaling` runs the twelfth example with one, two and four Node-REDs and a real Mosquitto, and writes its
 * results to docs/scaling.md. With `-- --quick` it does less and only prints them.
 */
const quick = process.argv.includes("--quick");
const SECOND = 1000;
const BUSY = { jobs: quick ? 16 : 200, latency: 200 };
const WARM = quick ? 1 : 16;
const LIMITED = { jobs: quick ? 16 : 90, rateLimit: 60 };
const RISKY = { jobs: quick ? 16 : 40, latency: 150, inFlight: 16, overdue: quick ? 3 : 6 };

type Row = (string | number)[];

async function withRun<T>(cluster: Cluster, setup: Setup, work: (run: Run) => Promise<T>): Promise<T> {
  const run = await cluster.deploy(setup);
  try {
    return await work(run);
  } finally {
    run.stop();
  }
}

/** How many seconds all jobs take. */
async function timed(run: Run, jobs: number): Promise<number> {
  const began = performance.now();
  await run.press(NODES.start);
  await run.untilResults(jobs);
  return (performance.now() - began) / SECOND;
}

/** Stores per second if only the machines limit them. */
function busy(cluster: Cluster, machines: number, concurrency: number, jobs = BUSY.jobs): Promise<Row> {
  const { latency } = BUSY;
  const setup = { jobs, service: { latency }, client: { concurrency: String(concurrency) }, tab: { IN_FLIGHT: 48 } };
  return withRun(cluster, setup, async (run) => {
    const rate = jobs / (await timed(run, jobs));
    return [String(machines), String(concurrency), (machines * concurrency * SECOND) / latency, rate];
  });
}

/** How long the jobs take if the service limits them, and how often it had to reject a request. */
function limited(cluster: Cluster, machines: number, rate: string): Promise<Row> {
  const { jobs, rateLimit } = LIMITED;
  return withRun(cluster, { jobs, service: { rateLimit }, client: { rate } }, async (run) => {
    const seconds = await timed(run, jobs);
    const { rateLimited } = await run.seen();
    return [String(machines), rate || "blank", seconds, String(rateLimited), String(await run.failed())];
  });
}

/** QoS and whether the session is persistent. Such a session gets its share of the jobs until it expires, so it is last. */
const deliveries = [
  ["0", false],
  ["1", false],
  ["2", false],
  ["1", true],
] as const;
type Delivery = (typeof deliveries)[number];

const change =
  ([qos, persistent]: Delivery) =>
  (node: FlowNode, machine: string) => {
    if (NODES.jobs.includes(node.name ?? "")) node.qos = qos;
    const session = { cleansession: false, clientid: `${machine}-${qos}`, sessionExpiry: "600" };
    if (persistent && node.type === "mqtt-broker") Object.assign(node, session);
  };

/** What becomes of the jobs if `harm` is done meanwhile. */
function risky(
  cluster: Cluster,
  delivery: Delivery,
  harm: (run: Run) => Promise<void>,
  setup: Partial<Setup> = {},
): Promise<Row> {
  const { jobs, latency, inFlight, overdue } = RISKY;
  const tab = { IN_FLIGHT: inFlight, OVERDUE_MINUTES: overdue / 60 };
  return withRun(cluster, { jobs, service: { latency }, tab, change: change(delivery), ...setup }, async (run) => {
    await harm(run);
    while ((await run.results()).length < jobs) {
      await sleep(overdue * SECOND);
      await run.press(NODES.tick);
      await sleep(4 * latency);
    }
    // Late results have come by then.
    await sleep(SECOND);
    const { lists, duplicates } = await run.seen();
    const [qos, persistent] = delivery;
    return [
      `${qos}, ${persistent ? "persistent" : "clean"}`,
      String(lists),
      String(await run.failed()),
      String(duplicates),
    ];
  });
}

/** `kill -9` of the last machine in the middle; it restarts when the others have taken some of its jobs. */
const die = (cluster: Cluster, delivery: Delivery): Promise<Row> =>
  risky(cluster, delivery, async ({ press, untilResults }) => {
    await press(NODES.start);
    await untilResults(RISKY.jobs / 4);
    cluster.kill();
    await sleep(RISKY.overdue * SECOND);
    await press(NODES.tick);
    await sleep(4 * RISKY.latency);
    await cluster.restart();
  });

/** The first machine loses its connection when the broker has its jobs, but before the acknowledgment arrives. */
async function part(cluster: Cluster, delivery: Delivery): Promise<Row> {
  const relay = await startRelay(cluster.broker);
  const harm = async ({ press }: Run) => {
    relay.deafen();
    await press(NODES.start);
    await sleep(2 * RISKY.latency);
    relay.cut();
  };
  return risky(cluster, delivery, harm, { broker: relay.url }).finally(relay.stop);
}

const folder = mkdtempSync(join(tmpdir(), "seo-scaling-"));
const clusters: Cluster[] = [];
const began = performance.now();
const log = (row: Row): Row => {
  console.error(`${((performance.now() - began) / SECOND).toFixed(0)} s: ${row.map(figure).join(", ")}`);
  return row;
};

async function start(name: string, machines: number): Promise<Cluster> {
  const cluster = await startCluster(folder, name, machines);
  clusters.push(cluster);
  log([`started ${name}`]);
  return cluster;
}

try {
  linkPackage(folder);
  const one = await start("one", 1);
  const two = await start("two", 2);
  const four = await start("four", 4);
  const blank = await start("blank", 2);
  // Loads the modules that the first message loads.
  for (const cluster of clusters) await busy(cluster, 1, 4, WARM);
  const rates: Row[] = [];
  for (const [cluster, machines, concurrency] of [
    [one, 1, 4],
    [two, 2, 4],
    [four, 4, 4],
    [one, 1, 16],
  ] as const)
    rates.push(log(await busy(cluster, machines, concurrency)));
  // Together, because most of it is waiting.
  const limits = await Promise.all([
    limited(one, 1, "60"),
    limited(two, 2, "30"),
    limited(four, 4, "15"),
    limited(blank, 2, ""),
  ]);
  const parted: Row[] = [];
  const died: Row[] = [];
  for (const delivery of deliveries.slice(0, quick ? 1 : undefined)) {
    parted.push(log(await part(two, delivery)));
    died.push(log(await die(two, delivery)));
  }
  const harmed = ["QoS, session", "handed out again", "failed", "created twice"];
  const found = [
    `${new Date().toISOString().slice(0, 10)}, Node-RED ${nodeRed().version}, Node ${process.versions.node}, ${cpus().length} x ${cpus()[0]?.model}.`,
    `${BUSY.jobs} jobs; the service has no limit and takes ${BUSY.latency} ms per request:`,
    table(["machines", "_Concurrency_ of each", "stores/s at most", "stores/s measured"], rates),
    `${LIMITED.jobs} jobs; the service allows ${LIMITED.rateLimit} requests per minute:`,
    table(["machines", "_Rate_ of each", "seconds", "rate limited (429)", "failed"], limits),
    `${RISKY.jobs} jobs on two machines, one of which dies:`,
    table(harmed, died),
    `${RISKY.jobs} jobs on two machines; the connection of the one that hands out jobs breaks:`,
    table(harmed, parted),
  ].join("\n\n");
  console.log(found);
  if (!quick) fillIn(join(root, "docs/scaling.md"), found);
} finally {
  for (const cluster of clusters) await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}

import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { linkPackage, root } from "../dev/nodered.js";
import { startRelay } from "../test/support/broker.js";
import type { FlowNode } from "../test/support/red.js";
import { type Cluster, startCluster } from "./cluster.js";
import { nodeRedVersion } from "./runtime.js";
import { fillIn, table } from "./tables.js";

/**
 * `npm run bench:scaling`: the twelfth example with one, two and four Node-REDs and a real Mosquitto, which says in
 * docs/scaling.md what it found.
 */
const SECOND = 1000;
const BUSY = { jobs: 200, latency: 200 };
const WARM = 16;
const LIMITED = { jobs: 90, rateLimit: 60 };
const RISKY = { jobs: 40, latency: 150, inFlight: 16, overdue: 6 };

type Row = (string | number)[];
type Rows = Record<"busy" | "limited" | "died" | "parted", Row[]>;

/** Stores a second, when nothing but the machines limits them. */
async function busy(cluster: Cluster, machines: number, concurrency: number, jobs: number): Promise<Row> {
  const { latency } = BUSY;
  const client = { concurrency: String(concurrency) };
  const run = await cluster.start({ jobs, service: { latency }, client, tab: { IN_FLIGHT: 48 } });
  const began = performance.now();
  await run.press("submit URLs");
  await run.came(jobs);
  const seconds = (performance.now() - began) / SECOND;
  run.stop();
  return [String(machines), String(concurrency), (machines * concurrency * SECOND) / latency, jobs / seconds];
}

/** How long the jobs take when the service limits them, and how often it had to say so. */
async function limited(cluster: Cluster, machines: number, rate: string): Promise<Row> {
  const { jobs, rateLimit } = LIMITED;
  const run = await cluster.start({ jobs, service: { rateLimit }, client: { rate } });
  const began = performance.now();
  await run.press("submit URLs");
  await run.came(jobs);
  const seconds = (performance.now() - began) / SECOND;
  const { refused } = await run.asked();
  const failed = (await run.results()).filter(({ value }) => value.error).length;
  run.stop();
  return [String(machines), rate || "blank", seconds, String(refused), String(failed)];
}

/** The example's jobs by another quality of service, and sessions that outlive a connection. */
const delivery = (qos: string, lasting: boolean) => (node: FlowNode, machine: string) => {
  if (node.name === "a job" || node.name === "jobs") node.qos = qos;
  const session = { cleansession: false, clientid: `${machine}-${qos}`, sessionExpiry: "600" };
  if (lasting && node.type === "mqtt-broker") Object.assign(node, session);
};

/** The lasting session comes last: it takes its share of the jobs until it expires. */
const deliveries = [
  ["0", false],
  ["1", false],
  ["2", false],
  ["1", true],
] as const;
const named = (qos: string, lasting: boolean) => `${qos}, ${lasting ? "lasting" : "clean"}`;

type Change = ReturnType<typeof delivery>;
type Run = Awaited<ReturnType<Cluster["start"]>>;

/** What becomes of the jobs when `harm` is done while they are on their way. */
async function risky(
  cluster: Cluster,
  change: Change,
  harm: (run: Run) => Promise<void>,
  broker?: string,
): Promise<Row> {
  const { jobs, latency, inFlight, overdue } = RISKY;
  const tab = { IN_FLIGHT: inFlight, OVERDUE_MINUTES: overdue / 60 };
  const run = await cluster.start({ jobs, service: { latency }, tab, change, ...(broker && { broker }) });
  await harm(run);
  while ((await run.results()).length < jobs) {
    await sleep(overdue * SECOND);
    await run.press("every minute");
    await sleep(4 * latency);
  }
  // Whatever would come late has come by then.
  await sleep(SECOND);
  const { lists, doubled } = await run.asked();
  const failed = (await run.results()).filter(({ value }) => value.error).length;
  run.stop();
  return [String(lists), String(failed), String(doubled)];
}

/** `kill -9` of the last machine in the middle; it comes back when the others have taken some of its jobs. */
const die = (cluster: Cluster, change: Change): Promise<Row> =>
  risky(cluster, change, async ({ press, came }) => {
    await press("submit URLs");
    await came(RISKY.jobs / 4);
    cluster.kill();
    await sleep(RISKY.overdue * SECOND);
    await press("every minute");
    await sleep(4 * RISKY.latency);
    await cluster.restart();
  });

/** The broker has taken the jobs, but the machine that hands them out loses its connection before it hears of it. */
async function part(cluster: Cluster, change: Change): Promise<Row> {
  const relay = await startRelay(cluster.broker.url);
  const harm = async ({ press }: Run) => {
    relay.deafen();
    await press("submit URLs");
    await sleep(2 * RISKY.latency);
    relay.cut();
  };
  const row = await risky(cluster, change, harm, relay.url);
  relay.stop();
  return row;
}

const harmed = (text: string, found: Row[]) =>
  `${text}\n\n${table(["QoS, session", "handed out again", "failed", "made twice"], found)}`;

/** What was found, in Markdown. */
const report = ({ busy, limited, died, parted }: Rows) =>
  [
    `${new Date().toISOString().slice(0, 10)}, Node-RED ${nodeRedVersion}, Node ${process.versions.node}, ${cpus().length} x ${cpus()[0]?.model}.`,
    `${BUSY.jobs} jobs; the service takes all that comes, and ${BUSY.latency} ms for each:`,
    table(["machines", "_Concurrency_ of each", "stores/s at most", "stores/s measured"], busy),
    `${LIMITED.jobs} jobs; the service takes ${LIMITED.rateLimit} requests a minute:`,
    table(["machines", "_Rate_ of each", "seconds", "refused with 429", "failed"], limited),
    harmed(`${RISKY.jobs} jobs on two machines, of which one dies:`, died),
    harmed(`${RISKY.jobs} jobs on two machines; the connection of the one that hands out breaks:`, parted),
  ].join("\n\n");

const folder = mkdtempSync(join(tmpdir(), "seo-scaling-"));
const clusters: Cluster[] = [];
const rows: Rows = { busy: [], limited: [], died: [], parted: [] };

const began = performance.now();
const tell = (row: Row): Row => {
  console.error(`${((performance.now() - began) / SECOND).toFixed(0)} s: ${row.join(", ")}`);
  return row;
};

async function start(name: string, machines: number): Promise<Cluster> {
  const cluster = await startCluster(folder, name, machines);
  clusters.push(cluster);
  tell([`started ${name}`]);
  return cluster;
}

try {
  linkPackage(folder);
  const [one, two, four, blank] = [
    await start("one", 1),
    await start("two", 2),
    await start("four", 4),
    await start("blank", 2),
  ];
  // The modules that the first message loads are loaded.
  for (const cluster of clusters) await busy(cluster, 1, 4, WARM);
  for (const [cluster, machines, concurrency] of [
    [one, 1, 4],
    [two, 2, 4],
    [four, 4, 4],
    [one, 1, 16],
  ] as const)
    rows.busy.push(tell(await busy(cluster, machines, concurrency, BUSY.jobs)));
  // A minute or more of waiting, which need not be waited for four times.
  rows.limited = await Promise.all([
    limited(one, 1, "60"),
    limited(two, 2, "30"),
    limited(four, 4, "15"),
    limited(blank, 2, ""),
  ]);
  for (const [qos, lasting] of deliveries) {
    rows.parted.push(tell([named(qos, lasting), ...(await part(two, delivery(qos, lasting)))]));
    rows.died.push(tell([named(qos, lasting), ...(await die(two, delivery(qos, lasting)))]));
  }
  const found = report(rows);
  console.log(found);
  fillIn(join(root, "docs/scaling.md"), found);
} finally {
  for (const cluster of clusters) await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}

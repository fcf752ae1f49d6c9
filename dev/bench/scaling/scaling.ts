import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Group, type Machine, startGroup } from "../../../test/support/machines.js";
import { type Engine, startServer } from "../../../test/support/servers.js";
import { root } from "../../nodered.js";
import { figure, fillIn, table, versions } from "../markdown.js";
import { startService } from "../runtime.js";

/**
 * `npm run bench:scaling` has one instance work on a batch in files, in Redis and in PostgreSQL, ends the lead of two instances,
 * and writes its results to docs/scaling.md. With `-- --quick` it does less and only prints them.
 */
const quick = process.argv.includes("--quick");
const SECOND = 1000;
const PATIENCE = 180 * SECOND;
const MACHINES = 2;
const BUSY = { pages: quick ? 24 : 180, latency: 200 };
/** The list does not end before the last takeover. */
const ENDED = { pages: 2000, latency: 500, times: quick ? 1 : 5 };
/** What an instance has sent before it was killed is received by then, in milliseconds. */
const SETTLED = 50;

type Row = (string | number)[];

const began = performance.now();
const log = (row: Row): Row => {
  console.error(`${((performance.now() - began) / SECOND).toFixed(0)} s: ${row.map(figure).join(", ")}`);
  return row;
};

type Service = Awaited<ReturnType<typeof startService>>;
type Load = { pages: number; latency: number; settings?: Record<string, string> };

/** Deploys to `machines` instances, for a new service. */
async function withService<T>(
  group: Group,
  machines: number,
  { pages, latency, settings = {} }: Load,
  work: (service: Service) => Promise<T>,
): Promise<T> {
  const service = await startService({ latency });
  const urls = Array.from({ length: pages }, (_, index) => `https://example.com/${index}`);
  await group.deploy({ service, pages: urls, settings }, machines);
  try {
    return await work(service);
  } finally {
    service.stop();
  }
}

/** Pages per second of one machine if only that limits them. */
function busy(group: Group, engine: Engine | "files", { pages, latency } = BUSY): Promise<Row> {
  return withService(group, 1, { pages, latency }, async () => {
    const start = performance.now();
    await group.machines[0]?.red().inject("start");
    await group.finished(pages, PATIENCE);
    const rate = (pages * SECOND) / (performance.now() - start);
    // An audit uses one request less than the service's concurrency, which is 4.
    return [engine, (3 * SECOND) / latency, rate];
  });
}

const ends: [name: string, end: (lead: Machine) => Promise<unknown>][] = [
  [
    "`kill -9`",
    (lead) => {
      lead.kill("SIGKILL");
      return sleep(SETTLED);
    },
  ],
  ["clean stop", (lead) => lead.stop()],
];

/** Seconds from the end of the lead to the next request of the other machine. */
function takenOver(group: Group, engine: Engine): Promise<Row[]> {
  const { pages, latency, times } = ENDED;
  // A request that was noted, but not sent, is sent again after this.
  const settings = { reconcile: "20" };
  return withService(group, MACHINES, { pages, latency, settings }, async (service) => {
    await group.machines[0]?.red().inject("start");
    const rows: Row[] = [];
    for (const [name, end] of ends) {
      const seconds: number[] = [];
      while (seconds.length < times) {
        const lead = group.machines[await group.leader(PATIENCE)] as Machine;
        await sleep(2 * SECOND * Math.random());
        const began = Date.now();
        await end(lead);
        const ended = Date.now();
        await group.leader(PATIENCE);
        const { requests } = await service.seen();
        seconds.push(((requests.find((time) => time > ended) ?? Number.NaN) - began) / SECOND);
        await lead.start();
      }
      const { effects } = await service.seen();
      const duplicates = Object.values(effects).filter((often) => often > 1).length;
      if (duplicates > 0) throw new Error(`${engine}, ${name}: ${duplicates} duplicates`);
      rows.push(log([`${engine}, ${name}`, Math.min(...seconds), Math.max(...seconds)]));
    }
    return rows;
  });
}

const stops: (() => Promise<void>)[] = [];
async function start(engine?: Engine): Promise<Group> {
  const server = engine && (await startServer(engine));
  if (engine && !server) throw new Error(`${engine} is not installed.`);
  if (server) stops.push(server.close);
  const group = await startGroup(engine ? MACHINES : 1, server);
  stops.unshift(group.stop);
  // Loads the modules that the first message loads.
  await busy(group, engine ?? "files", { pages: 8, latency: 10 });
  log([`started ${engine ?? "files"}`]);
  return group;
}

try {
  const files = await start();
  const redis = await start("Redis");
  const postgres = await start("PostgreSQL");
  const shared = [
    ["Redis", redis],
    ["PostgreSQL", postgres],
  ] as const;
  const rates = [log(await busy(files, "files"))];
  for (const [engine, group] of shared) rates.push(log(await busy(group, engine)));
  // Side by side, because most of it is waiting.
  const takeovers = await Promise.all(shared.map(([engine, group]) => takenOver(group, engine)));

  const tables: [sentence: string, head: string[], rows: Row[]][] = [
    [`Pages per second on one machine, ${BUSY.latency} ms each:`, ["Batch in", "Limit", "Measured"], rates],
    [
      "Seconds from the end of the lead to the next request, without duplicates:",
      ["End of the lead", "Least", "Most"],
      takeovers.flat(),
    ],
  ];
  const date = new Date().toISOString().slice(0, 10);
  const machine = `${date}, ${versions()}, ${cpus().length} x ${cpus()[0]?.model}.`;
  const text = [machine, ...tables.map(([sentence, head, rows]) => `${sentence}\n\n${table(head, rows)}`)].join("\n\n");
  console.log(text);
  if (!quick) fillIn(join(root, "docs/scaling.md"), text);
} finally {
  for (const stop of stops) await stop();
}

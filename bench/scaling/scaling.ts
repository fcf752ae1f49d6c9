import { fork } from "node:child_process";
import { once } from "node:events";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeRed, root } from "../../dev/nodered.js";
import { type Group, type Round, startGroup } from "../../test/support/machines.js";
import { type Engine, type Server, startServer } from "../../test/support/servers.js";
import { figure, fillIn, table } from "../markdown.js";
import type { Seen } from "./service.js";

/**
 * `npm run bench:scaling` has one, two and four instances work on one batch in Redis and in PostgreSQL, and one instance
 * on a batch in files, and writes its results to docs/scaling.md. With `-- --quick` it does less and only prints them.
 */
const quick = process.argv.includes("--quick");
const SECOND = 1000;
const PATIENCE = 180 * SECOND;
const MACHINES = 4;
const BUSY = { pages: quick ? 24 : 180, latency: 200 };
const LIMITED = { pages: quick ? 10 : 40, rate: 120 };
const KILLED = { pages: quick ? 24 : 40, latency: 500 };

type Row = (string | number)[];

const began = performance.now();
const log = (row: Row): Row => {
  console.error(`${((performance.now() - began) / SECOND).toFixed(0)} s: ${row.map(figure).join(", ")}`);
  return row;
};

async function startService(options: { latency?: number; rateLimit?: number }) {
  const child = fork(new URL("service.js", import.meta.url), { execArgv: [] });
  child.send(options);
  const [address] = (await once(child, "message")) as [{ url: string; apiKey: string }];
  return {
    ...address,
    async seen(): Promise<Seen> {
      child.send("seen");
      return ((await once(child, "message")) as [Seen])[0];
    },
    stop: () => child.disconnect(),
  };
}

type Service = Awaited<ReturnType<typeof startService>>;
type Options = Parameters<typeof startService>[0];

/** Deploys to `machines` instances, for a new service. */
async function withService<T>(
  group: Group,
  machines: number,
  { pages, settings = {} }: { pages: number; settings?: Round["settings"] },
  options: Options,
  work: (service: Service) => Promise<T>,
): Promise<T> {
  const service = await startService(options);
  const urls = Array.from({ length: pages }, (_, index) => `https://example.com/${index}`);
  await group.deploy({ service, pages: urls, settings }, machines);
  try {
    return await work(service);
  } finally {
    service.stop();
  }
}

/** Seconds from the list to the final progress. */
async function timed(group: Group, pages: number): Promise<number> {
  const start = performance.now();
  await group.machines[0]?.red().inject("start");
  await group.finished(pages, PATIENCE);
  return (performance.now() - start) / SECOND;
}

/** Pages per second if only the machines limit them. */
function busy(group: Group, engine: Engine | "files", machines: number, { pages, latency } = BUSY): Promise<Row> {
  return withService(group, machines, { pages }, { latency }, async () => {
    const rate = pages / (await timed(group, pages));
    // An audit uses one request less than the service's concurrency, which is 4.
    return [engine, String(machines), (machines * 3 * SECOND) / latency, rate];
  });
}

/** How long the pages take with a rate limit for all machines, and how often the service had to reject a request. */
function limited(group: Group, engine: Engine | "files", machines: number): Promise<Row> {
  const { pages, rate } = LIMITED;
  return withService(
    group,
    machines,
    { pages, settings: { rate: String(rate) } },
    { rateLimit: rate },
    async (service) => {
      const seconds = await timed(group, pages);
      return [engine, String(machines), seconds, String((await service.seen()).rateLimited)];
    },
  );
}

/** `kill -9` of the second of two machines: seconds until another one looks for its pages, and until all are reported. */
function killed(group: Group, engine: Engine): Promise<Row> {
  const { pages, latency } = KILLED;
  // A request that was noted, but not sent, is sent again after this.
  const settings = { reconcile: "20" };
  return withService(group, 2, { pages, settings }, { latency }, async (service) => {
    const [first, second] = group.machines;
    await first?.red().inject("start");
    while ((second?.results().length ?? 0) < 3) await sleep(20);
    await sleep(latency / 2);
    const killedAt = Date.now();
    second?.kill("SIGKILL");
    await group.finished(pages, PATIENCE);
    const { lists, duplicates } = await service.seen();
    const looked = lists.find((time) => time > killedAt) ?? Number.NaN;
    const inSeconds = (time: number) => (time - killedAt) / SECOND;
    return [engine, inSeconds(looked), inSeconds(Date.now()), String(duplicates)];
  });
}

const groups: Group[] = [];
const servers: Server[] = [];
async function start(engine?: Engine): Promise<Group> {
  const server = engine && (await startServer(engine));
  if (engine && !server) throw new Error(`${engine} is not installed.`);
  if (server) servers.push(server);
  const group = await startGroup(engine ? MACHINES : 1, server);
  groups.push(group);
  // Loads the modules that the first message loads.
  await busy(group, engine ?? "files", group.machines.length, { pages: 8, latency: 10 });
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
  const rates = [log(await busy(files, "files", 1))];
  for (const [engine, group] of shared)
    for (const machines of [1, 2, MACHINES]) rates.push(log(await busy(group, engine, machines)));
  // Side by side, because most of it is waiting.
  const limits = await Promise.all([
    limited(files, "files", 1).then(log),
    ...shared.map(([engine, group]) => limited(group, engine, MACHINES).then(log)),
  ]);
  const kills = await Promise.all(shared.map(([engine, group]) => killed(group, engine).then(log)));

  const tables: [sentence: string, head: string[], rows: Row[]][] = [
    [
      `${BUSY.pages} pages, ${BUSY.latency} ms each, no rate limit:`,
      ["Batch in", "Machines", "Pages per second, limit", "Measured"],
      rates,
    ],
    [
      `${LIMITED.pages} pages, rate limit of ${LIMITED.rate} requests per minute for all machines together:`,
      ["Batch in", "Machines", "Seconds", "429 responses"],
      limits,
    ],
    [
      `${KILLED.pages} pages on two machines, one of which is killed:`,
      ["Batch in", "Seconds to the next request for its pages", "Seconds to the end", "Duplicates"],
      kills,
    ],
  ];
  const date = new Date().toISOString().slice(0, 10);
  const machine = `${date}, Node-RED ${nodeRed().version}, Node ${process.versions.node}, ${cpus().length} x ${cpus()[0]?.model}.`;
  const text = [machine, ...tables.map(([sentence, head, rows]) => `${sentence}\n\n${table(head, rows)}`)].join("\n\n");
  console.log(text);
  if (!quick) fillIn(join(root, "docs/scaling.md"), text);
} finally {
  await Promise.all(groups.map((group) => group.stop()));
  await Promise.all(servers.map((server) => server.close()));
}

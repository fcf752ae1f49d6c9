import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../../sandbox/server.js";
import { type Group, startGroup } from "../../../test/support/machines.js";
import { type Engine, engines, type Server, startServer } from "../../../test/support/servers.js";
import { figure, table, versions } from "../markdown.js";

/**
 * `npm run soak -- machines [runs]`: so many audits by three instances on each engine. Instances are killed, stopped and deployed
 * at random, and instances, their network and the server fail. Half of that is for the instance that leads.
 */
const runs = Number(process.argv[3] ?? 20);
const SECOND = 1000;
const MACHINES = 3;
const PAGES = 150;
const LATENCY = 400;
const MOST_FAULTS = 4;
const PATIENCE = 180 * SECOND;
/** Longer than any instance is frozen: what was noted, but not sent, is sent again only after this. Seconds. */
const RECONCILE = "45";
const LONGEST = 20 * SECOND;

const random = (most: number) => Math.floor(Math.random() * most);

type Fault = (group: Group, index: number, server: Server) => Promise<void>;

const kill: Fault = async ({ machines }, index) => {
  machines[index]?.kill("SIGKILL");
  await sleep(random(4 * SECOND));
  await machines[index]?.start();
};
const faults: Record<string, Fault> = {
  kill,
  "kill at once again": async (...at) => {
    await kill(...at);
    await kill(...at);
  },
  "kill two": async (group, index, server) => {
    await Promise.all([kill(group, index, server), kill(group, (index + 1) % MACHINES, server)]);
  },
  stop: async ({ machines }, index) => {
    await machines[index]?.stop();
    await sleep(random(4 * SECOND));
    await machines[index]?.start();
  },
  deploy: (group, index) => group.redeploy(index),
  freeze: async ({ machines }, index) => {
    machines[index]?.kill("SIGSTOP");
    await sleep(random(LONGEST));
    machines[index]?.kill("SIGCONT");
  },
  "cut network": async ({ relays }, index) => {
    relays[index]?.cut();
    await sleep(random(LONGEST));
    relays[index]?.mend();
  },
  "restart server": async (_, __, server) => {
    await server.stop(random(2) === 0 ? "SIGKILL" : "SIGINT");
    await sleep(random(5 * SECOND));
    await server.start();
  },
};

/** The counts of a run, and its problems, which have to be 0. */
interface Outcome {
  counts: Record<string, number>;
  problems: Record<string, number>;
}

/** Each page of a run that regenerates has a report before. */
async function runOnce(engine: Engine, run: number, group: Group, server: Server): Promise<Outcome> {
  const existing = run % 2 ? "create" : "regenerate";
  const sandbox = await startSandbox({ reports: 0, latency: LATENCY });
  const pages = Array.from({ length: PAGES }, (_, index) => `https://example.com/${index}`);
  if (existing === "regenerate") for (const url of pages) sandbox.reports.store({ url });
  const began = performance.now();
  const done: string[] = [];
  try {
    await group.deploy({ service: sandbox, pages, existing, settings: { reconcile: RECONCILE } });
    await group.machines[random(MACHINES)]?.red().inject("start");
    // A list that was not saved yet is lost with its machine.
    await group.until(() => group.machines.some((machine) => machine.progress().length > 0), PATIENCE);
    let hasEnded = false;
    const end = group
      .finished(PAGES, PATIENCE)
      .catch((error) => console.error(String(error)))
      .finally(() => {
        hasEnded = true;
      });
    const most = 1 + random(MOST_FAULTS);
    await sleep(SECOND);
    while (!hasEnded && done.length < most) {
      await sleep(random(3 * SECOND));
      const [name, fault] = Object.entries(faults)[random(Object.keys(faults).length)] ?? ["kill", kill];
      const other = random(MACHINES);
      const index = random(2) === 0 ? other : await group.leader(2 * SECOND).catch(() => other);
      done.push(name);
      await fault(group, index, server);
    }
    await end;
    // What comes late comes now.
    await sleep(2 * SECOND);
  } finally {
    await sandbox.close();
  }
  const effects = sandbox.reports
    .list({})
    .flatMap(({ url, generation }) => Array<string>(generation + (existing === "create" ? 1 : 0)).fill(url));
  const results = group.results();
  const first = results.flatMap(({ index, repeated }) => (repeated ? [] : [index]));
  const ends = group.machines.flatMap((machine) => machine.progress()).filter(({ finished }) => finished);
  const problems = {
    Missing: PAGES - new Set(results.map(({ index }) => index)).size,
    "Requested twice": effects.length - new Set(effects).size,
    Uncertain: new Set(results.flatMap(({ outcome, index }) => (outcome === "uncertain" ? [index] : []))).size,
    "Reported twice": first.length - new Set(first).size,
    "Without an end": Number(ends.length === 0),
    "End reported twice": Number(ends.filter((end) => !end.repeated).length > 1),
  };
  const seconds = figure((performance.now() - began) / SECOND);
  console.log(`${engine} ${run}, ${existing}, ${seconds} s: ${done.join(", ")}: ${JSON.stringify(problems)}`);
  return { counts: { Runs: 1, Faults: done.length, Pages: PAGES }, problems };
}

async function runAll(engine: Engine): Promise<Outcome[]> {
  const server = await startServer(engine);
  if (!server) throw new Error(`${engine} is not installed.`);
  const group = await startGroup(MACHINES, server);
  const outcomes: Outcome[] = [];
  try {
    while (outcomes.length < runs) outcomes.push(await runOnce(engine, outcomes.length + 1, group, server));
    return outcomes;
  } finally {
    await group.stop();
    await server.close();
  }
}

const all = await Promise.all(engines.map(runAll));
const columns = all.map((outcomes) => {
  const sums: Record<string, number> = {};
  for (const { counts, problems } of outcomes)
    for (const [name, count] of Object.entries({ ...counts, ...problems })) sums[name] = (sums[name] ?? 0) + count;
  return sums;
});
const rows = columns.map((sums, index) => [String(engines[index]), ...Object.values(sums).map(String)]);
console.log(`\n${versions()}\n\n${table(["", ...Object.keys(columns[0] ?? {})], rows)}`);
const isSound = ({ problems }: Outcome) => Object.values(problems).every((count) => count === 0);
process.exit(all.flat().every(isSound) ? 0 : 1);

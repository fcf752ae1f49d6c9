import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../../sandbox/server.js";
import { type Group, startGroup } from "../../../test/support/machines.js";
import { type Engine, engines, type Server, startServer } from "../../../test/support/servers.js";
import { add, type Counts, countEffects, moreThanOnce } from "../counts.js";
import { conclude, Reported } from "./results.js";

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

const reported = new Reported(PAGES);
const problems: Counts = { "requested twice": 0, uncertain: 0 };
const counts: Counts = {};

/** Each page of a run that regenerates has a report before. */
async function runOnce(engine: Engine, run: number, group: Group, server: Server): Promise<void> {
  const existing = run % 2 ? "create" : "regenerate";
  const sandbox = await startSandbox({ reports: 0, latency: LATENCY });
  const pages = Array.from({ length: PAGES }, (_, index) => `https://example.com/${index}`);
  if (existing === "regenerate") for (const url of pages) sandbox.reports.store({ url });
  const effects = countEffects(sandbox.reports);
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
  const name = `${engine} ${run}, ${existing}`;
  reported.start(name);
  for (const result of group.results()) {
    reported.result({ ...result, batch: name });
    if (result.outcome === "uncertain") add(problems, "uncertain");
  }
  for (const machine of group.machines)
    for (const progress of machine.progress()) reported.end({ ...progress, batch: name });
  add(problems, "requested twice", moreThanOnce(effects()));
  add(counts, `runs on ${engine}`);
  add(counts, `failures on ${engine}`, done.length);
  const all = JSON.stringify({ ...reported.problems(), ...problems });
  console.error(`${name}: ${done.join(", ")}. Up to now: ${all}`);
}

async function runAll(engine: Engine): Promise<void> {
  const server = await startServer(engine);
  if (!server) throw new Error(`${engine} is not installed.`);
  const group = await startGroup(MACHINES, server);
  try {
    for (let run = 1; run <= runs; run++) await runOnce(engine, run, group, server);
  } finally {
    await group.stop();
    await server.close();
  }
}

await Promise.all(engines.map(runAll));
conclude(counts, { ...reported.problems(), ...problems });

import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../../sandbox/server.js";
import { type Group, startGroup } from "../../../test/support/machines.js";
import { type Engine, engines, type Server, startServer } from "../../../test/support/servers.js";
import { nodeRed } from "../../nodered.js";
import { figure, table } from "../markdown.js";

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
/** Killing is as frequent as all others together. */
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

/** Finds the instance that leads: that which sent most results since the last call. Undefined if there was none. */
function watchLead({ machines }: Group): () => number | undefined {
  let before = machines.map(() => 0);
  return () => {
    const counts = machines.map((machine) => machine.results().length);
    const sent = counts.map((count, index) => count - (before[index] ?? 0));
    before = counts;
    const most = Math.max(...sent);
    return most > 0 ? sent.indexOf(most) : undefined;
  };
}

interface Outcome {
  seconds: number;
  faults: string[];
  missing: number;
  /** Pages that were requested more than once. */
  twice: number;
  /** Pages of which it is not known whether they were requested. */
  uncertain: number;
  /** Results of a page beyond the first that do not say so. */
  repeated: number;
  ends: number;
  /** One that is not the first does not say so. */
  endsTwice: boolean;
}

/** Each page of a run that regenerates has a report before. */
async function runOnce(group: Group, server: Server, existing: "create" | "regenerate"): Promise<Outcome> {
  const sandbox = await startSandbox({ reports: 0, latency: LATENCY });
  const pages = Array.from({ length: PAGES }, (_, index) => `https://example.com/${index}`);
  if (existing === "regenerate") for (const url of pages) sandbox.reports.store({ url });
  const began = performance.now();
  const done: string[] = [];
  try {
    await group.deploy({ service: sandbox, pages, existing, settings: { reconcile: RECONCILE } });
    const lead = watchLead(group);
    await group.machines[random(MACHINES)]?.red().inject("start");
    // A list that was not saved yet is lost with its machine.
    await group.until(() => group.machines.some((machine) => machine.progress().length > 0), PATIENCE);
    let hasEnded = false;
    const end = group.finished(PAGES, PATIENCE).finally(() => {
      hasEnded = true;
    });
    end.catch(() => {});
    const most = 1 + random(MOST_FAULTS);
    await sleep(SECOND);
    while (!hasEnded && done.length < most) {
      await sleep(random(3 * SECOND));
      const [name, fault] = Object.entries(faults)[random(Object.keys(faults).length)] ?? ["kill", kill];
      const index = random(2) === 0 ? random(MACHINES) : (lead() ?? random(MACHINES));
      done.push(name);
      await fault(group, index, server);
    }
    await end.catch((error) => console.error(String(error)));
    // What comes late comes now.
    await sleep(2 * SECOND);
    const effects = sandbox.reports
      .list({})
      .flatMap(({ url, generation }) => Array<string>(generation + (existing === "create" ? 1 : 0)).fill(url));
    const results = group.results();
    const ends = group.machines.flatMap((machine) => machine.progress()).filter(({ finished }) => finished);
    const counts = new Map<number, number>();
    for (const { index, repeated } of results) counts.set(index, (counts.get(index) ?? 0) + (repeated ? 0 : 1));
    return {
      seconds: (performance.now() - began) / SECOND,
      faults: done,
      missing: PAGES - counts.size,
      twice: effects.length - new Set(effects).size,
      uncertain: new Set(results.flatMap(({ outcome, index }) => (outcome === "uncertain" ? [index] : []))).size,
      repeated: [...counts.values()].filter((count) => count > 1).length,
      ends: ends.length,
      endsTwice: ends.filter((end) => !end.repeated).length > 1,
    };
  } finally {
    await sandbox.close();
  }
}

const isSound = ({ missing, twice, uncertain, repeated, ends, endsTwice }: Outcome) =>
  missing + twice + uncertain + repeated === 0 && ends > 0 && !endsTwice;

async function runAll(engine: Engine): Promise<Outcome[]> {
  const server = await startServer(engine);
  if (!server) throw new Error(`${engine} is not installed.`);
  const group = await startGroup(MACHINES, server);
  const outcomes: Outcome[] = [];
  try {
    for (let run = 1; run <= runs; run++) {
      const existing = run % 2 ? "create" : "regenerate";
      const outcome = await runOnce(group, server, existing);
      outcomes.push(outcome);
      const { seconds, faults, ...rest } = outcome;
      const verdict = isSound(outcome) ? "sound" : `NOT SOUND ${JSON.stringify(rest)}`;
      console.log(`${engine} ${run}, ${existing}: ${verdict}, ${figure(seconds)} s: ${faults.join(", ")}`);
    }
  } finally {
    await group.stop();
    await server.close();
  }
  return outcomes;
}

const all = await Promise.all(engines.map(runAll));
const sum = (outcomes: Outcome[], of: (outcome: Outcome) => number) =>
  String(outcomes.reduce((total, one) => total + of(one), 0));
const columns: [head: string, of: (outcome: Outcome) => number][] = [
  ["Runs", () => 1],
  ["Faults", ({ faults }) => faults.length],
  ["Pages", () => PAGES],
  ["Missing", ({ missing }) => missing],
  ["Requested twice", ({ twice }) => twice],
  ["Uncertain", ({ uncertain }) => uncertain],
  ["Reported twice", ({ repeated }) => repeated],
  ["Without an end", ({ ends }) => Number(ends === 0)],
  ["End reported twice", ({ endsTwice }) => Number(endsTwice)],
];
const rows = all.map((outcomes, index) => [String(engines[index]), ...columns.map(([, of]) => sum(outcomes, of))]);
console.log(`\nNode-RED ${nodeRed().version}, Node ${process.versions.node}\n`);
console.log(table(["", ...columns.map(([head]) => head)], rows));
process.exit(all.flat().every(isSound) ? 0 : 1);

import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../../../src/client.js";
import { startGroup } from "../../../test/support/machines.js";
import { add, type Counts } from "../counts.js";
import { startService } from "../runtime.js";
import { conclude, Ledger, Reported } from "./results.js";

/**
 * `npm run soak -- kills [kills [pages]]`: an audit in files, by a Node-RED that is killed so often, each time within a few
 * seconds of its start. The service fails and loses responses, and has a report of every other page before.
 */
const kills = Number(process.argv[3] ?? 70);
const count = Number(process.argv[4] ?? 3000);
const SECOND = 1000;
/** The longest life of a process. Most are shorter than `RECONCILE`, so that several look for one request. */
const LIFE = 9 * SECOND;
const RECONCILE = "6";
/** Requests a minute, so that the list outlasts the kills. */
const RATE = "1200";
const PATIENCE = 600 * SECOND;

const pages = Array.from({ length: count }, (_, index) => `kills.example.com/${index}`);
const service = await startService({ fail: 4 });
const client = createClient({ baseUrl: service.url, apiKey: service.apiKey, concurrency: "32", reconcile: RECONCILE });
const odd = pages.filter((_, index) => index % 2 === 1);
await Promise.allSettled(odd.map((url) => client.call("seo-report-store", { url })));
await client.close();
await service.effects();

const group = await startGroup(1);
const [machine] = group.machines;
if (!machine) throw new Error("No instance was started.");
await group.deploy({ service, pages, existing: "regenerate", settings: { reconcile: RECONCILE, rate: RATE } });
await machine.red().inject("start");
await group.until(() => machine.progress().length > 0, PATIENCE);
const hasEnded = () => machine.progress().some(({ finished }) => finished);
let killed = 0;
for (; killed < kills && !hasEnded(); killed++) {
  await sleep(randomInt(LIFE));
  machine.kill("SIGKILL");
  await machine.start();
  if (killed % 10 === 9) console.error(`${killed + 1} kills, ${machine.results().length} results`);
}
await group.finished(count, PATIENCE);
// What comes late comes now.
await sleep(2 * SECOND);

const batch = "shared";
const reported = new Reported(count);
const ledger = new Ledger();
const outcomes = new Map<number, string>();
const events: Counts = {};
let contradictions = 0;
reported.start(batch);
for (const result of machine.results()) {
  const { index, outcome, repeated } = result;
  add(events, repeated ? "repeated" : outcome);
  if (reported.result(result)) ledger.audited({ ...result, record: null });
  else if (outcomes.get(index) !== outcome) contradictions++;
  outcomes.set(index, outcome);
}
for (const progress of machine.progress()) reported.end(progress);
ledger.settle(await service.effects());
await group.stop();
conclude(
  { pages: count, kills: killed, ...events },
  {
    ...reported.problems(),
    ...ledger.problems(),
    "results that contradict an earlier one": contradictions,
    uncertain: events.uncertain ?? 0,
    "killed too seldom": killed < kills,
  },
);

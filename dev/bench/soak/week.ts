import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { startSandbox } from "../../../sandbox/server.js";
import type { Result } from "../../../src/audit/options.js";
import type { Progress } from "../../../src/audit/progress.js";
import { receivers } from "../driver.js";
import { boot, restart, serviceNode } from "../runtime.js";
import { conclude, hasGrown, heap, Reported } from "./results.js";

/**
 * `npm run soak -- week [weeks]`: hourly report changes, and an audit each Monday at 3:00, on a clock of its own. Each day at
 * 3:02, amid the audit, Node-RED stops and starts.
 */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
const WEEK = 7 * DAY;
const RESTART = 182 * MINUTE;
const FIRST_MONDAY = Date.UTC(2026, 0, 5, 3);
const INTERVAL = 60 * MINUTE;
/** The wait for a run is longer by a random part of up to a minute, and a run or a restart can take seconds. */
const LATEST = INTERVAL + MINUTE + 5 * SECOND;
const PAGES = 60;
/** Of 60 pages, three at a time. */
const AUDIT = 15 * MINUTE;
const weeks = Number(process.argv[3] ?? 4);

process.env.TZ = "UTC";
const began = Date.UTC(2026, 0, 1);
mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: began });
performance.now = () => Date.now() - began;
syncBuiltinESMExports();

/** Passes time, second by second, until `promise` is settled. A second passes once files and requests need nothing else. */
async function passUntil<T>(promise: Promise<T>): Promise<T> {
  let pending = true;
  const settled = () => {
    pending = false;
  };
  for (promise.then(settled, settled); ; mock.timers.tick(SECOND)) {
    for (let turns = 0; turns < 6; turns++) {
      await turn();
      if (process.getActiveResourcesInfo().some((name) => /Req|Connect|Write/.test(name))) turns = 0;
    }
    if (!pending) return promise;
  }
}

/** When the changes node ran. Each run reports the page that was created after the run before. */
const runs: number[] = [];
const changed: string[] = [];
const pageOf = (run: number) => `changes.example.com/${run}`;
/** The results of the audits, whose batches have the numbers of their weeks, and when they ended. */
const reported = new Reported(PAGES);
for (let week = 0; week < weeks; week++) reported.start(String(week));
const ends: number[] = [];
const failures: unknown[] = [];
receivers.set("ran", () => {
  sandbox.reports.store({ url: `https://${pageOf(runs.length)}` });
  runs.push(Date.now());
});
receivers.set("changed", ({ payload }) => changed.push((payload as { url: string }).url));
receivers.set("results", ({ seo }) => {
  const { outcome } = seo as Result;
  reported.result({ ...(seo as Result), batch: String(ends.length) });
  if (outcome !== (ends.length === 0 ? "created" : "regenerated")) failures.push(outcome);
});
receivers.set("progress", ({ payload }) => {
  const progress = payload as Progress;
  reported.end({ ...progress, batch: String(ends.length) });
  if (progress.finished && !progress.repeated) ends.push(Date.now());
});
receivers.set("caught", ({ error }) => failures.push(error));

const sandbox = await startSandbox({ reports: 0, latency: ({ method }) => (method === "GET" ? 0 : 20 * SECOND) });
const payload = JSON.stringify(Array.from({ length: PAGES }, (_, page) => `https://audit.example.com/${page}`));
const changes = { project: "changes.example.com", projectType: "str", changes: "all", interval: INTERVAL / MINUTE };
const weekly = { props: [{ p: "payload" }], payload, payloadType: "json", crontab: "0 3 * * 1" };
const flow = [
  serviceNode(sandbox, { reconcile: 300 }),
  { id: "changes", type: "seo-report-changes", ...changes, wires: [["changed"]] },
  { id: "weekly", type: "inject", ...weekly, wires: [["audit"]] },
  { id: "audit", type: "seo-report-audit", wires: [["results"], ["progress"]] },
  { id: "complete", type: "complete", scope: ["changes"], wires: [["ran"]] },
  { id: "catch", type: "catch", scope: null, wires: [["caught"]] },
];
const contextStorage = { default: { module: "localfilesystem" } };
await passUntil(boot(flow, { contextStorage }));

const heaps: number[] = [];
for (let time = began + RESTART; time < began + weeks * WEEK; time += DAY) {
  await passUntil(sleep(time - Date.now()));
  await passUntil(restart());
  if ((time - began) % WEEK < WEEK - DAY) continue;
  heaps.push(await passUntil(heap()));
  console.error(`week ${heaps.length}: ${runs.length} runs, ${ends.length} audits, ${heaps.at(-1)} MB`);
}
await passUntil(sleep(began + weeks * WEEK - Date.now()));

const waits = runs.map((at, run) => at - (runs[run - 1] ?? began));
const isOnTime = (end: number, week: number) =>
  end > FIRST_MONDAY + week * WEEK && end < FIRST_MONDAY + week * WEEK + AUDIT;
const minutes = waits.slice(1).map((wait) => wait / MINUTE);
for (const failure of failures.slice(0, 3)) console.error(String(failure));
conclude(
  {
    weeks,
    runs: runs.length,
    "minutes between runs": `${Math.min(...minutes).toFixed(1)} to ${Math.max(...minutes).toFixed(1)}`,
    audits: ends.length,
    restarts: 7 * weeks,
    "heap MB after each week": heaps.join(" "),
  },
  {
    "runs that were early, late or missing": waits.slice(1).filter((wait) => wait < INTERVAL || wait > LATEST).length,
    "changes not reported, or not once": runs.slice(1).filter((_, run) => changed[run] !== pageOf(run)).length,
    "audits missing or late": weeks - ends.filter(isOnTime).length,
    ...reported.problems(),
    failures: failures.length,
    "heap has grown": hasGrown(heaps),
  },
);

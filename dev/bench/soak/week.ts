import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { startSandbox } from "../../../sandbox/server.js";
import type { Result } from "../../../src/audit/options.js";
import type { Progress } from "../../../src/audit/progress.js";
import { driver, receivers } from "../driver.js";
import { conclude } from "../markdown.js";
import { boot, memory, restart } from "../runtime.js";

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
const GROWTH = 1.2;
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
const reported: string[] = [];
const pageOf = (run: number) => `changes.example.com/${run}`;
/** By audit, how often each row was reported without `repeated`, and when it ended. */
const audits: Map<number, number>[] = [];
const ends: number[] = [];
const failures: unknown[] = [];
receivers.set("ran", () => {
  sandbox.reports.store({ url: `https://${pageOf(runs.length)}` });
  runs.push(Date.now());
});
receivers.set("changed", ({ payload }) => reported.push((payload as { url: string }).url));
receivers.set("results", ({ seo }) => {
  const { index, repeated, outcome } = seo as Result;
  audits[ends.length] ??= new Map();
  const rows = audits[ends.length] as Map<number, number>;
  rows.set(index, (rows.get(index) ?? 0) + Number(!repeated));
  if (outcome !== (ends.length === 0 ? "created" : "regenerated")) failures.push(outcome);
});
receivers.set("progress", ({ payload }) => {
  const { finished, repeated } = payload as Progress;
  if (finished && !repeated) ends.push(Date.now());
});
receivers.set("caught", ({ error }) => failures.push(error));

const sandbox = await startSandbox({ reports: 0, latency: ({ method }) => (method === "GET" ? 0 : 20 * SECOND) });
const payload = JSON.stringify(Array.from({ length: PAGES }, (_, page) => `https://audit.example.com/${page}`));
const settings = { baseUrl: sandbox.url, reconcile: 300, credentials: { apiKey: sandbox.apiKey } };
const changes = { project: "changes.example.com", projectType: "str", changes: "all", interval: INTERVAL / MINUTE };
const weekly = { props: [{ p: "payload" }], payload, payloadType: "json", crontab: "0 3 * * 1" };
const flow = [
  { id: "service", type: "seo-service", ...settings },
  { id: "changes", type: "seo-report-changes", service: "service", ...changes, wires: [["changed"]] },
  { id: "weekly", type: "inject", ...weekly, wires: [["audit"]] },
  { id: "audit", type: "seo-report-audit", service: "service", wires: [["results"], ["progress"]] },
  { id: "complete", type: "complete", scope: ["changes"], wires: [["ran"]] },
  { id: "catch", type: "catch", scope: null, wires: [["caught"]] },
  ...["changed", "ran", "results", "progress", "caught"].map((id) => driver(id)),
];
const contextStorage = { default: { module: "localfilesystem" } };
await passUntil(boot(flow, { contextStorage }));

const heaps: number[] = [];
for (let time = began + RESTART; time < began + weeks * WEEK; time += DAY) {
  await passUntil(sleep(time - Date.now()));
  await passUntil(restart());
  if ((time - began) % WEEK < WEEK - DAY) continue;
  heaps.push((await passUntil(memory())).heapUsed / 2 ** 20);
  console.error(`week ${heaps.length}: ${runs.length} runs, ${ends.length} audits, ${heaps.at(-1)?.toFixed(1)} MB`);
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
    "heap MB after each week": heaps.map((each) => each.toFixed(1)).join(" "),
  },
  {
    "runs that were early, late or missing": waits.slice(1).filter((wait) => wait < INTERVAL || wait > LATEST).length,
    "changes not reported, or not once": runs.slice(1).filter((_, run) => reported[run] !== pageOf(run)).length,
    "audits missing or late": weeks - ends.filter(isOnTime).length,
    "audits that did not report each row once": audits.filter(
      (rows) => rows.size !== PAGES || [...rows.values()].some((often) => often > 1),
    ).length,
    failures: failures.length,
    "heaps that grew": Number((heaps.at(-1) ?? 0) > (heaps[0] ?? 0) * GROWTH),
  },
);

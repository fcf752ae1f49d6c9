import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { serve } from "./process.js";

/** `latency` in milliseconds. `fail`: the percentage of requests with the faults of the sandbox, and random latencies instead. */
interface Options {
  latency?: number;
  fail?: number;
}

/** By page, how often something happened to it. */
export type Counts = Record<string, number>;

/** The project `created` keeps only its newest reports, so that lists stay short. */
const KEPT = 2000;
/** Requests until the others are removed, which takes as long as a hundred requests. */
const OFTEN = 100;
/** The share of responses that come after the client's timeout of 2 s. */
const LATE = 0.005;

let sandbox: Sandbox;
/** When requests were received: milliseconds since 1970. */
const requests: number[] = [];
const removed: Counts = {};

/** Counts how often reports were created or regenerated. */
function count(into: Counts, reports: ReturnType<Sandbox["reports"]["list"]>): Counts {
  for (const { url, generation } of reports) into[url] = (into[url] ?? 0) + generation + 1;
  return into;
}

function removeOld(): void {
  const old = sandbox.reports.list({ project: "created.example.com" }).slice(KEPT);
  count(removed, old);
  for (const { id } of old) sandbox.reports.remove(id);
}

/** The sandbox in its own process. */
const tasks = {
  async start({ latency = 0, fail = 0 }: Options) {
    const respond = () => {
      requests.push(Date.now());
      if (fail === 0) return latency;
      if (requests.length % OFTEN === 0) removeOld();
      return Math.random() < LATE ? 3000 : 50 * Math.random();
    };
    sandbox = await startSandbox({ reports: 0, fail, latency: respond });
    return { url: sandbox.url, apiKey: sandbox.apiKey };
  },
  seen: (_: object) => ({ effects: count({ ...removed }, sandbox.reports.list({})), requests }),
};
export type Tasks = typeof tasks;

serve(tasks);

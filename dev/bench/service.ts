import { startSandbox } from "../../sandbox/server.js";
import { countEffects } from "./counts.js";

/** `latency` in milliseconds. `fail`: the percentage of requests with the faults of the sandbox, and random latencies instead. */
export interface Options {
  latency?: number;
  fail?: number;
}

/** The project `created` keeps only its newest reports, so that lists stay short. */
const KEPT = 2000;
/** Requests until the others are removed. A list that becomes shorter while it is read proves nothing about a lost response. */
const OFTEN = 2000;
/** The share of responses that come after the client's timeout of 2 s. */
const LATE = 0.005;

/** The sandbox in a process of its own. It responds to any message with its effects since the last one. */
const { latency = 0, fail = 0 } = JSON.parse(process.argv[2] ?? "{}") as Options;
let requests = 0;

const { url, apiKey, reports } = await startSandbox({ reports: 0, fail, latency: respond });
const effects = countEffects(reports);

function respond(): number {
  if (fail === 0) return latency;
  if (++requests % OFTEN === 0)
    for (const { id } of reports.list({ project: "created.example.com" }).slice(KEPT)) reports.remove(id);
  return Math.random() < LATE ? 3000 : 50 * Math.random();
}

process.on("disconnect", () => process.exit());
process.on("message", () => process.send?.(effects()));
process.send?.({ url, apiKey });

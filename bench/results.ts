import type { Loading, Reading } from "./costs.js";
import type { Row } from "./requests.js";

/** What one run found out. */
export interface Run {
  nodeRed: string;
  node: string;
  machine: string;
  server: string;
  date: string;
  requests: Row[];
  /** Bytes. */
  queued: number;
  loading: Loading[];
  pages: Reading[];
}

/** A target of the project: what it says, what was measured, and the most or least that it may be. */
export interface Target {
  name: string;
  value: number;
  most?: number;
  least?: number;
}

const OURS = "seo-report-list";
export const CORE = "http request, keep-alive";
export const BARE = "undici.request";
const PAGE_MS = 20;

export const find = ({ requests }: Run, contender: string, inFlight: number): Row => {
  const row = requests.find((one) => one.contender === contender && one.inFlight === inFlight);
  if (!row) throw new Error(`${contender} was not measured with ${inFlight} in flight.`);
  return row;
};

/** The targets, at 32 messages in flight where nothing else is said. */
export function targets(run: Run, loads: number[], concurrency: number): Target[] {
  const [ours, core, bare] = [OURS, CORE, BARE].map((name) => find(run, name, 32)) as [Row, Row, Row];
  const loading = (name: Loading["name"]) => run.loading.find((one) => one.name === name)?.ms ?? Number.NaN;
  const pages = run.pages.find(({ name }) => name === "all");
  return [
    { name: "requests a second, times those of http request with keep-alive", value: ours.rate / core.rate, least: 5 },
    {
      name: "processor time per request, times that of http request with keep-alive",
      value: ours.cpu / core.cpu,
      most: 0.2,
    },
    { name: "processor time per request, times that of undici.request", value: ours.cpu / bare.cpu, most: 1.5 },
    ...loads.map((inFlight) => ({
      name: `99th percentile of the latency with ${inFlight} in flight, times that of http request with keep-alive`,
      value: find(run, OURS, inFlight).p99 / find(run, CORE, inFlight).p99,
      most: 1,
    })),
    { name: "heap for each waiting message, in KiB", value: run.queued / 1024, most: 1 },
    {
      name: "time to load at Node-RED's start, times that of undici and zod",
      value: loading("at the start") / loading("undici and zod"),
      most: 0.6,
    },
    {
      name: "time for 1,000 pages of 20 ms, times pages / concurrency x 20 ms",
      value: (pages?.ms ?? Number.NaN) / ((1000 / concurrency) * PAGE_MS),
      most: 1.15,
    },
  ];
}

export const isMet = ({ value, most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY }: Target) =>
  value <= most && value >= least;

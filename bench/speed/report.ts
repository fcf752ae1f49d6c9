import { table } from "../markdown.js";
import { BARE, CORE, contenders, loads, OURS } from "./contenders.js";
import { CONCURRENCY, type Loading, QUEUED, type Reading, type Row } from "./measurements.js";

/** The result of one run. */
export interface Run {
  nodeRed: string;
  node: string;
  machine: string;
  server: string;
  date: string;
  requests: Row[];
  /** Bytes per waiting message. */
  queued: number;
  loading: Loading[];
  pages: Reading[];
}

/** A target of the project, with the least or the most that is allowed. */
type Target = { name: string; value: number; least?: number; most?: number };

const MIB = 2 ** 20;
const PAGE_MS = 20;

export function find({ requests }: Run, contender: string, inFlight: number): Row {
  const row = requests.find((one) => one.contender === contender && one.inFlight === inFlight);
  if (!row) throw new Error(`${contender} was not measured with ${inFlight} in flight.`);
  return row;
}

/** The targets, with 32 messages in flight unless they say otherwise. */
function targets(run: Run): Target[] {
  const [ours, core, bare] = [OURS, CORE, BARE].map((name) => find(run, name, 32)) as [Row, Row, Row];
  const loading = (name: Loading["name"]) => run.loading.find((one) => one.name === name)?.ms ?? Number.NaN;
  const pages = run.pages.find(({ name }) => name === "all")?.ms ?? Number.NaN;
  return [
    { name: "requests/s, relative to core", value: ours.rate / core.rate, least: 5 },
    { name: "processor time per request, relative to core", value: ours.cpu / core.cpu, most: 0.2 },
    { name: `processor time per request, relative to ${BARE}`, value: ours.cpu / bare.cpu, most: 1.5 },
    ...loads.map((inFlight) => ({
      name: `99th percentile of the latency with ${inFlight} in flight, relative to core`,
      value: find(run, OURS, inFlight).p99 / find(run, CORE, inFlight).p99,
      most: 1,
    })),
    { name: "heap per waiting message, in KiB", value: run.queued / 1024, most: 1 },
    {
      name: "load time at Node-RED's start, relative to undici and zod",
      value: loading("at the start") / loading("undici and zod"),
      most: 0.6,
    },
    {
      name: "time for 1,000 pages of 20 ms, relative to pages / concurrency x 20 ms",
      value: pages / ((1000 / CONCURRENCY) * PAGE_MS),
      most: 1.15,
    },
  ];
}

function verdict({ name, value, least, most }: Target): string[] {
  const met = value >= (least ?? -Infinity) && value <= (most ?? Infinity);
  const allowed = least === undefined ? `at most ${most}` : `at least ${least}`;
  return [name, value.toFixed(2), allowed, met ? "met" : "**not met**"];
}

const requests = (run: Run, inFlight: number) =>
  table(
    [`${inFlight} in flight`, "requests/s", "x core", "CPU µs/request", "x core", "x undici", "median ms", "p99 ms"],
    Object.keys(contenders).map((name) => {
      const { rate, cpu, median, p99 } = find(run, name, inFlight);
      const core = find(run, CORE, inFlight);
      return [name, rate, rate / core.rate, cpu, cpu / core.cpu, cpu / find(run, BARE, inFlight).cpu, median, p99];
    }),
  );

/** One run, in Markdown. */
export const report = (run: Run): string =>
  [
    `### Node-RED ${run.nodeRed}, Node ${run.node}`,
    `${run.date}, ${run.machine}, against ${run.server}. "core" is \`http request\` with keep-alive.`,
    ...loads.map((inFlight) => requests(run, inFlight)),
    table(
      ["loading", "ms", "heap MiB", "process MiB"],
      run.loading.map(({ name, ms, heap, rss }) => [name, ms, heap / MIB, rss / MIB]),
    ),
    table(
      [`1,000 pages of 20 ms, ${CONCURRENCY} in flight`, "s", "records", "peak heap MiB"],
      run.pages.map(({ name, ms, records, heap }) => [name, ms / 1000, records.toLocaleString("en-US"), heap / MIB]),
    ),
    `Heap per message with ${QUEUED} waiting, besides the message itself: ${Math.round(run.queued)} bytes.`,
    table(["target", "measured", "allowed", ""], targets(run).map(verdict)),
  ].join("\n\n");

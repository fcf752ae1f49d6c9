import { figure, table } from "../markdown.js";
import { BARE, CORE, contenders, FLOOR, loads, OURS, PASS, RECONCILE } from "./contenders.js";
import { CONCURRENCY, type Loading, type Measured, QUEUED, type Reading, type Row } from "./measurements.js";
import type { Times } from "./owners.js";

/** The result of one run. */
export interface Run {
  nodeRed: string;
  node: string;
  machine: string;
  server: string;
  date: string;
  requests: Row[];
  /** By contender: microseconds of a request by cause. */
  causes: Record<string, Times>;
  /** Bytes per waiting message. */
  queued: number;
  loading: Loading[];
  pages: Reading[];
}

/** A target of the project, with the least or the most that is allowed. */
type Target = { name: string; value: number; least?: number; most?: number };

const MIB = 2 ** 20;

export function find({ requests }: Run, contender: string, inFlight: number): Row {
  const row = requests.find((one) => one.contender === contender && one.inFlight === inFlight);
  if (!row) throw new Error(`${contender} was not measured with ${inFlight} in flight.`);
  return row;
}

/** The figures of a contender as multiples of another's, in the same rounds. */
function compare(run: Run, contender: string, other: string, inFlight = 32): Measured {
  const relative = find(run, contender, inFlight).relative[other];
  if (!relative) throw new Error(`${contender} was not compared with ${other}.`);
  return relative;
}

const readingOf = ({ pages }: Run, name: string) => pages.find((one) => one.name === name)?.ms ?? Number.NaN;

/** The targets, with 32 messages in flight unless they say otherwise. */
function targets(run: Run): Target[] {
  const loading = (name: Loading["name"]) => run.loading.find((one) => one.name === name)?.ms ?? Number.NaN;
  return [
    { name: "processor time, relative to the floor", value: compare(run, OURS, FLOOR).cpu, most: 1.25 },
    { name: "requests/s, relative to the floor", value: compare(run, OURS, FLOOR).rate, least: 0.8 },
    {
      name: "processor time with reconcile, relative to without",
      value: compare(run, RECONCILE, OURS).cpu,
      most: 1.02,
    },
    {
      name: "99th percentile of the latency, relative to core",
      value: Math.max(...loads.map((inFlight) => compare(run, OURS, CORE, inFlight).p99)),
      most: 1,
    },
    { name: "heap per waiting message, in KiB", value: run.queued / 1024, most: 0.5 },
    {
      name: "load time, relative to undici and zod",
      value: (loading("the package") - loading("an empty package")) / loading("undici and zod"),
      most: 0.2,
    },
    {
      name: `time for 1,000 pages, relative to ${BARE}`,
      value: readingOf(run, "all") / readingOf(run, BARE),
      most: 1.03,
    },
  ];
}

const isMet = ({ value, least = -Infinity, most = Infinity }: Target) => value >= least && value <= most;

/** The targets, with the figure of each run; bold: not met. In Markdown. */
export const verdicts = (runs: Run[]): string =>
  table(
    ["Target", "Allowed", ...runs.map(({ node }) => `Node ${node.split(".")[0]}`)],
    (runs[0] ? targets(runs[0]) : []).map(({ name, least, most }, row) => [
      name,
      least === undefined ? `at most ${most}` : `at least ${least}`,
      ...runs.map((run) => {
        const target = targets(run)[row] as Target;
        const figure = target.value.toFixed(2);
        return isMet(target) ? figure : `**${figure}**`;
      }),
    ]),
  );

const percent = (share: number) => `${Math.round(share * 100)}%`;

const requests = (run: Run, inFlight: number) =>
  table(
    [
      `${inFlight} in flight`,
      "requests/s",
      "CPU µs/request",
      "spread",
      "x floor",
      "x core",
      "median ms",
      "p99 ms",
      "server busy",
    ],
    Object.keys(contenders).map((name) => {
      const { rate, cpu, spread, median, p99, server } = find(run, name, inFlight);
      const times = (other: string) => compare(run, name, other, inFlight).cpu;
      return [name, rate, cpu, percent(spread), times(FLOOR), times(CORE), median, p99, percent(server)];
    }),
  );

/** What a request costs beyond the floor, in Markdown. */
function causes({ causes }: Run): string {
  const { [OURS]: ours = {}, [FLOOR]: floor = {} } = causes;
  const sum = (times: Times) => Object.values(times).reduce((total, time) => total + time, 0);
  const rows = Object.entries(ours).map(([name, time]) => [name, time, floor[name] ?? 0, time - (floor[name] ?? 0)]);
  return table(
    ["CPU µs/request, profiled", OURS, FLOOR, "beyond"],
    [...rows, ["total", sum(ours), sum(floor), sum(ours) - sum(floor)]],
  );
}

/** What users gain, in four lines of Markdown: a list with the figures of each run. */
export function gains(runs: Run[]): string {
  const each = (value: (run: Run) => string) =>
    runs.map((run) => `${value(run)} (Node ${run.node.split(".")[0]})`).join(", ");
  const times = (run: Run, name: "rate" | "cpu") => compare(run, OURS, CORE)[name];
  return [
    `- **Throughput**, 32 requests in flight, compared with \`http request\`: ${each((run) => `${figure(times(run, "rate"))} times`)}.`,
    `- **Processor time** per request: \`http request\` needs ${each((run) => figure(1 / times(run, "cpu")))} times as much.`,
    `- **Long lists**: 1,000 pages of 20 ms take ${each((run) => `${figure(readingOf(run, "all") / 1000)} s`)}.`,
    `- **Memory**: each waiting message needs ${each((run) => `${Math.round(run.queued)} bytes`)}.`,
  ].join("\n");
}

/** One run, in Markdown. */
export const report = (run: Run): string =>
  [
    `### Node-RED ${run.nodeRed}, Node ${run.node}`,
    `${run.date}, ${run.machine}, against ${run.server}. "core" is \`http request\` with keep-alive. The driver and Node-RED
alone, "${PASS}", are part of all figures but the last two.`,
    ...loads.map((inFlight) => requests(run, inFlight)),
    causes(run),
    table(
      ["loading", "ms", "heap MiB", "process MiB"],
      run.loading.map(({ name, ms, heap, rss }) => [name, ms, heap / MIB, rss / MIB]),
    ),
    table(
      [`1,000 pages of 20 ms, ${CONCURRENCY} in flight`, "s", "records", "peak heap MiB"],
      run.pages.map(({ name, ms, records, heap }) => [name, ms / 1000, records.toLocaleString("en-US"), heap / MIB]),
    ),
    `Heap per message with ${QUEUED.toLocaleString("en-US")} waiting, besides the message itself: ${Math.round(run.queued)} bytes.`,
    verdicts([run]),
  ].join("\n\n");

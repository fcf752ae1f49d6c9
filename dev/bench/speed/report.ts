import { figure, table } from "../markdown.js";
import type { Library } from "./child.js";
import { BARE, CORE, FLOOR, loads, OURS, RECONCILE } from "./contenders.js";
import type { Figures } from "./measure.js";
import type { Row, Times } from "./measurements.js";

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
  loading: Times<Library>;
  pages: Times;
}

/** A target of the project, with the least or the most that is allowed. */
type Target = { name: string; value: number; least?: number; most?: number };

export function find({ requests }: Run, contender: string, inFlight: number): Row {
  const row = requests.find((one) => one.contender === contender && one.inFlight === inFlight);
  if (!row) throw new Error(`${contender} was not measured with ${inFlight} in flight.`);
  return row;
}

/** The figures of a contender as multiples of another's, in the same rounds. */
function compare(run: Run, contender: string, other: string, inFlight = 32): Figures {
  const relative = find(run, contender, inFlight).relative[other];
  if (!relative) throw new Error(`${contender} was not compared with ${other}.`);
  return relative;
}

/** The targets, with 32 messages in flight unless they say otherwise. */
function targets(run: Run): Target[] {
  const { loading, pages } = run;
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
      value: (loading["the package"] - loading["an empty package"]) / loading["undici and zod"],
      most: 0.2,
    },
    {
      name: `time for 1,000 pages, relative to ${BARE}`,
      value: (pages.all ?? Number.NaN) / (pages[BARE] ?? Number.NaN),
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

/** What users gain, in four lines of Markdown: a list with the figures of each run. */
export function gains(runs: Run[]): string {
  const each = (value: (run: Run) => string) =>
    runs.map((run) => `${value(run)} (Node ${run.node.split(".")[0]})`).join(", ");
  const times = (run: Run, name: "rate" | "cpu") => compare(run, OURS, CORE)[name];
  return [
    `- **Throughput**, 32 requests in flight, compared with \`http request\`: ${each((run) => `${figure(times(run, "rate"))} times`)}.`,
    `- **Processor time** per request: \`http request\` needs ${each((run) => figure(1 / times(run, "cpu")))} times as much.`,
    `- **Long lists**: 1,000 pages of 20 ms take ${each((run) => `${figure((run.pages.all ?? Number.NaN) / 1000)} s`)}.`,
    `- **Memory**: each waiting message needs ${each((run) => `${Math.round(run.queued)} bytes`)}.`,
  ].join("\n");
}

/** One run, in Markdown. */
export const report = (run: Run): string =>
  [
    `### Node-RED ${run.nodeRed}, Node ${run.node}`,
    `${run.date}, ${run.machine}, against ${run.server}.`,
    gains([run]),
    verdicts([run]),
  ].join("\n\n");

import { table } from "../../markdown.js";
import { BARE, CORE, contenders, FLOOR, OURS, RECONCILE } from "./contenders.js";
import { type Figures, median } from "./measure.js";

/** What one round has measured. */
export interface Round {
  /** By contender. */
  requests: Record<string, Figures>;
  /** Bytes per waiting message. */
  queued: number;
  /** Relative to undici and zod. */
  load: number;
  /** Milliseconds. */
  pages: { ours: number; bare: number };
}

/** What the document shows of one run. */
export interface Run {
  node: string;
  nodeRed: string;
  machine: string;
  server: string;
  date: string;
  /** By the names below, the median. */
  figures: Record<string, number>;
}

const absolute =
  (of: keyof Figures, contender: string) =>
  ({ requests }: Round) =>
    requests[contender]?.[of] ?? Number.NaN;
/** Relative to another one of the same round, because a machine is not equally fast all the time. */
const relative = (of: keyof Figures, contender: string, other: string) => (round: Round) =>
  absolute(of, contender)(round) / absolute(of, other)(round);

const names = Object.keys(contenders);
/** The figures, with the least or the most that is allowed. */
const figures: { name: string; least?: number; most?: number; value(round: Round): number }[] = [
  { name: `requests/s, relative to _${CORE}_`, value: relative("rate", OURS, CORE) },
  { name: `processor time, relative to _${CORE}_`, value: relative("cpu", OURS, CORE) },
  { name: "requests/s, relative to the floor", least: 0.8, value: relative("rate", OURS, FLOOR) },
  { name: "processor time, relative to the floor", most: 1.25, value: relative("cpu", OURS, FLOOR) },
  { name: "processor time with reconcile, relative to without", most: 1.02, value: relative("cpu", RECONCILE, OURS) },
  { name: `99th percentile of the latency, relative to _${CORE}_`, most: 1, value: relative("p99", OURS, CORE) },
  { name: "heap per waiting message, in bytes", most: 512, value: ({ queued }) => queued },
  { name: "load time, relative to undici and zod", most: 0.2, value: ({ load }) => load },
  { name: "seconds for 1,000 pages of 20 ms", value: ({ pages }) => pages.ours / 1000 },
  { name: `the same, relative to _${BARE}_`, most: 1.03, value: ({ pages }) => pages.ours / pages.bare },
  ...names.map((name) => ({ name: `requests/s, _${name}_`, value: absolute("rate", name) })),
  ...names.map((name) => ({ name: `processor time per request in µs, _${name}_`, value: absolute("cpu", name) })),
];

/** The medians of all rounds. */
export const summarize = (rounds: Round[]): Run["figures"] =>
  Object.fromEntries(figures.map(({ name, value }) => [name, median(rounds.map(value))]));

/** The figures of all runs in Markdown; bold: more or less than allowed. */
export const report = (runs: Run[]): string =>
  table(
    ["32 in flight", "Allowed", ...runs.map(({ node, nodeRed }) => `Node ${node.split(".")[0]}, Node-RED ${nodeRed}`)],
    figures.map(({ name, least, most }) => {
      const allowed = least ? `at least ${least}` : most ? `at most ${most}` : "";
      const isMet = (value: number) => value >= (least ?? -Infinity) && value <= (most ?? Infinity);
      const values = runs.map((run) => run.figures[name] ?? Number.NaN);
      return [name, allowed, ...values.map((value) => (isMet(value) ? value : `**${value.toFixed(2)}**`))];
    }),
  );

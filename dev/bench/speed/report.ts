import { table } from "../../markdown.js";
import type { Library } from "./child.js";
import { BARE, CORE, FLOOR, OURS, RECONCILE } from "./contenders.js";
import { type Figures, median } from "./measure.js";

export interface Measured {
  /** By contender, the figures of each round. */
  requests: Record<string, Figures[]>;
  /** Bytes per waiting message. */
  queued: number;
  /** Milliseconds. */
  loading: Record<Library, number>;
  pages: { ours: number; bare: number };
}

/** What the document shows of one run. */
export interface Run {
  node: string;
  nodeRed: string;
  machine: string;
  server: string;
  date: string;
  /** By contender, the median. */
  rate: Record<string, number>;
  cpu: Record<string, number>;
  /** By the names below. */
  figures: Record<string, number>;
}

/** The median of figures relative to others of the same rounds, because a machine is not equally fast all the time. */
const relative = (of: keyof Figures, contender: string, other: string) => (measured: Measured) =>
  median(
    measured.requests[contender]?.map((one, round) => one[of] / (measured.requests[other]?.[round]?.[of] ?? 0)) ?? [],
  );

/** The figures, with the least or the most that is allowed. */
const figures: { name: string; least?: number; most?: number; value(measured: Measured): number }[] = [
  { name: `requests/s, relative to _${CORE}_`, value: relative("rate", OURS, CORE) },
  { name: `processor time, relative to _${CORE}_`, value: relative("cpu", OURS, CORE) },
  { name: "requests/s, relative to the floor", least: 0.8, value: relative("rate", OURS, FLOOR) },
  { name: "processor time, relative to the floor", most: 1.25, value: relative("cpu", OURS, FLOOR) },
  { name: "processor time with reconcile, relative to without", most: 1.02, value: relative("cpu", RECONCILE, OURS) },
  { name: `99th percentile of the latency, relative to _${CORE}_`, most: 1, value: relative("p99", OURS, CORE) },
  { name: "heap per waiting message, in bytes", most: 512, value: ({ queued }) => queued },
  {
    name: "load time, relative to undici and zod",
    most: 0.2,
    value: ({ loading }) => (loading["the package"] - loading["an empty package"]) / loading["undici and zod"],
  },
  { name: "seconds for 1,000 pages of 20 ms", value: ({ pages }) => pages.ours / 1000 },
  { name: `the same, relative to _${BARE}_`, most: 1.03, value: ({ pages }) => pages.ours / pages.bare },
];

/** What a run keeps of its measurements. */
export function summarize(measured: Measured): Pick<Run, "rate" | "cpu" | "figures"> {
  const medians = (of: keyof Figures) =>
    Object.fromEntries(
      Object.entries(measured.requests).map(([name, all]) => [name, median(all.map((one) => one[of]))]),
    );
  return {
    rate: medians("rate"),
    cpu: medians("cpu"),
    figures: Object.fromEntries(figures.map(({ name, value }) => [name, value(measured)])),
  };
}

/** The figures of all runs in Markdown; bold: more or less than allowed. */
export const report = (runs: Run[]): string =>
  table(
    ["32 in flight", "Allowed", ...runs.map(({ node }) => `Node ${node.split(".")[0]}`)],
    figures.map(({ name, least, most }) => {
      const allowed = least ? `at least ${least}` : most ? `at most ${most}` : "";
      const isMet = (value: number) => value >= (least ?? -Infinity) && value <= (most ?? Infinity);
      const values = runs.map((run) => run.figures[name] ?? Number.NaN);
      return [name, allowed, ...values.map((value) => (isMet(value) ? value : `**${value.toFixed(2)}**`))];
    }),
  );

import { readFileSync, writeFileSync } from "node:fs";
import { contenders, loads } from "./contenders.js";
import { CONCURRENCY, QUEUED } from "./costs.js";
import { BARE, CORE, find, isMet, type Run, targets } from "./results.js";

const MIB = 2 ** 20;

/** Three significant digits. */
const figure = (value: number) => {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits).replace(/\B(?=(\d{3})+$)/g, digits === 0 ? "," : "");
};

/** Writes what was found into a document, between its marks. */
export function fillIn(file: string, found: string): void {
  const [begin, end] = ["<!-- bench: begin -->", "<!-- bench: end -->"];
  const [head, rest = ""] = readFileSync(file, "utf8").split(begin);
  const [, tail = ""] = rest.split(end);
  writeFileSync(file, `${head}${begin}\n\n${found}\n\n${end}${tail}`);
}

/** A table in Markdown; the first column is text. */
export const table = (head: string[], rows: (string | number)[][]) =>
  [head, head.map((_, column) => (column === 0 ? "---" : "---:")), ...rows]
    .map((cells) => `| ${cells.map((cell) => (typeof cell === "number" ? figure(cell) : cell)).join(" | ")} |`)
    .join("\n");

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
      [`1,000 pages of 20 ms, ${CONCURRENCY} at a time`, "s", "records", "peak heap MiB"],
      run.pages.map(({ name, ms, records, heap }) => [name, ms / 1000, records.toLocaleString("en-US"), heap / MIB]),
    ),
    `Heap for each of ${QUEUED.toLocaleString("en-US")} waiting messages, beyond the message itself: ${Math.round(run.queued)} bytes.`,
    table(
      ["target", "measured", "allowed", ""],
      targets(run, loads, CONCURRENCY).map((target) => [
        target.name,
        target.value.toFixed(2),
        target.least === undefined ? `at most ${target.most}` : `at least ${target.least}`,
        isMet(target) ? "met" : "**not met**",
      ]),
    ),
  ].join("\n\n");

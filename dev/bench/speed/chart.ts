import { contenders } from "./contenders.js";
import { IN_FLIGHT } from "./measure.js";
import type { Run } from "./report.js";

const WIDTH = 760;
const LABEL = 180;
const BAR = 14;
const GAP = 12;
const HEAD = 34;
const NAMES = Object.keys(contenders);

/** One color per run, dark enough for a white page and light enough for a black one. */
const COLORS = ["#2b8a5f", "#5b7fd6", "#b7791f"];
const PANELS = {
  rate: "Requests per second (more is better)",
  cpu: "Processor time per request in µs (less is better)",
};

const text = (x: number, y: number, content: string, attributes = "") =>
  `<text x="${x}" y="${y}" fill="#7a828c" ${attributes}>${content}</text>`;
const box = (x: number, y: number, width: number, height: number, run: number) =>
  `<rect x="${x}" y="${y}" width="${width.toFixed(1)}" height="${height}" fill="${COLORS[run]}" />`;

function panel(title: string, figure: "rate" | "cpu", runs: Run[], top: number): string[] {
  const rows = NAMES.map((name) => ({ name, values: runs.map((run) => run[figure][name] ?? 0) }));
  const scale = (WIDTH - LABEL - 70) / Math.max(...rows.flatMap(({ values }) => values));
  const bars = rows.flatMap(({ name, values }, row) => {
    const y = top + HEAD + row * (BAR * runs.length + GAP);
    const weight = row === 0 ? ' font-weight="bold"' : "";
    return [
      text(LABEL - 10, y + (BAR * runs.length) / 2 + 4, name, `text-anchor="end"${weight}`),
      ...values.flatMap((value, run) => [
        box(LABEL, y + run * BAR, value * scale, BAR - 2, run),
        text(LABEL + value * scale + 6, y + run * BAR + BAR - 4, Math.round(value).toLocaleString("en-US")),
      ]),
    ];
  });
  return [text(0, top + 18, title, 'font-weight="bold" font-size="14"'), ...bars];
}

/** Bars for all contenders that send requests, and for all runs, with 32 messages in flight, in SVG. */
export function chart(runs: Run[]): string {
  const step = HEAD + NAMES.length * (BAR * runs.length + GAP) + 10;
  const height = 2 * step + 24;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`,
    `<title>Requests per second and processor time per request with ${IN_FLIGHT} messages in flight</title>`,
    ...panel(PANELS.rate, "rate", runs, 0),
    ...panel(PANELS.cpu, "cpu", runs, step),
    ...runs.flatMap(({ nodeRed, node }, run) => [
      box(run * 260, height - 18, 12, 12, run),
      text(run * 260 + 18, height - 8, `Node-RED ${nodeRed}, Node ${node}`),
    ]),
    "</svg>\n",
  ].join("\n");
}

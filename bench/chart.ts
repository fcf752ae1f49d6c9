import { contenders } from "./contenders.js";
import { find, type Run } from "./results.js";

const IN_FLIGHT = 32;
const WIDTH = 760;
const LABEL = 180;
const BAR = 14;
const GAP = 12;
const PANEL_HEAD = 34;

/** One colour for each run, dark enough for a white page and light enough for a black one. */
const COLORS = ["#2b8a5f", "#5b7fd6"];
const TEXT = "#7a828c";

const text = (x: number, y: number, content: string, attributes = "") =>
  `<text x="${x}" y="${y}" fill="${TEXT}" ${attributes}>${content}</text>`;

interface Panel {
  title: string;
  value(run: Run, contender: string): number;
}

const panels: Panel[] = [
  { title: "Requests a second (more is better)", value: (run, name) => find(run, name, IN_FLIGHT).rate },
  {
    title: "Processor time per request, in microseconds (less is better)",
    value: (run, name) => find(run, name, IN_FLIGHT).cpu,
  },
];

function draw({ title, value }: Panel, runs: Run[], top: number): string {
  const names = Object.keys(contenders);
  const most = Math.max(...names.flatMap((name) => runs.map((run) => value(run, name))));
  const scale = (WIDTH - LABEL - 70) / most;
  const bars = names.flatMap((name, row) => {
    const y = top + PANEL_HEAD + row * (BAR * runs.length + GAP);
    return [
      text(
        LABEL - 10,
        y + (BAR * runs.length) / 2 + 4,
        name,
        `text-anchor="end"${row === 0 ? ' font-weight="bold"' : ""}`,
      ),
      ...runs.flatMap((run, index) => {
        const width = value(run, name) * scale;
        return [
          `<rect x="${LABEL}" y="${y + index * BAR}" width="${width.toFixed(1)}" height="${BAR - 2}" fill="${COLORS[index]}" />`,
          text(LABEL + width + 6, y + index * BAR + BAR - 4, value(run, name).toFixed(0)),
        ];
      }),
    ];
  });
  return [text(0, top + 18, title, 'font-weight="bold" font-size="14"'), ...bars].join("\n");
}

/** Bars of all contenders with 32 messages in flight, for each run, readable on white and on black. */
export function chart(runs: Run[]): string {
  const panel = PANEL_HEAD + Object.keys(contenders).length * (BAR * runs.length + GAP) + 10;
  const height = panels.length * panel + 24;
  const legend = runs.map(
    ({ nodeRed, node }, index) =>
      `<rect x="${LABEL + index * 230}" y="${height - 18}" width="12" height="12" fill="${COLORS[index]}" />` +
      text(LABEL + index * 230 + 18, height - 8, `Node-RED ${nodeRed}, Node ${node}`),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`,
    `<title>Requests a second and processor time per request, ${IN_FLIGHT} messages in flight</title>`,
    ...panels.map((one, index) => draw(one, runs, index * panel)),
    ...legend,
    "</svg>",
    "",
  ].join("\n");
}

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { needChromium } from "../support/chromium.js";
import type { Editor } from "../support/driver.js";
import { drive, type Instance, readExamples } from "../support/examples.js";
import { type Server, startServer } from "../support/servers.js";
import { startWorkbench, type Workbench } from "../support/workbench.js";

type EditorNode = ReturnType<Editor["nodes"]["node"]>;
declare const RED: Editor & {
  nodes: { filterLinks(filter: object): { source: EditorNode; target: EditorNode }[] };
  workspaces: { show(id: string): void };
};

/** Without a chat, an AI or a spreadsheet, an example shows what it would send. */
const env = { SLACK_WEBHOOK_URL: "", AI_API_KEY: "", SHEETS_URL: "", REPORT_PASSWORD: "example" };
/** Buttons that only prepare what another one shows: the number of the example, and the button. */
const SILENT = ["18 every day", "18 send", "20 send"];
/** Nodes that are red at the end, by the number of the example: its last button causes an error. */
const FAILED: Record<string, string[]> = { "10": ["red: store report"] };
/** Milliseconds in which a status is drawn, and between two looks at the audits. */
const DRAWN = 500;

/** What is wrong in the drawing of the open flow, and the nodes that are red. Runs in the browser: it must not use outer variables. */
function inspect() {
  /** Pixels. */
  const WIDTH = 900;
  const NODE = "rect.red-ui-flow-node";
  const OUTLINE = ".red-ui-flow-group-outline";
  const LABEL = ".red-ui-flow-node-label-text, .red-ui-flow-group-label-text";
  const chart = document.querySelector("#red-ui-workspace-chart > svg") ?? document.body;
  const boxOf = (part: Element | null | undefined) => part?.getBoundingClientRect() ?? new DOMRect();
  const drawn = (selector: string) =>
    [...chart.querySelectorAll(selector)]
      .filter((part) => boxOf(part).width > 0)
      .map((part) => {
        const owner = part.closest(".red-ui-flow-node-group, .red-ui-flow-group");
        return { box: boxOf(part), owner, node: RED.nodes.node(owner?.id ?? "") };
      });
  type Drawn = ReturnType<typeof drawn>;
  const isIn = (a: DOMRect, b: DOMRect) =>
    a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
  const overlap = (a: DOMRect, b: DOMRect) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;

  const nodes = drawn(NODE);
  const parts = [...nodes, ...drawn(`.red-ui-flow-node-button, .red-ui-flow-node-status-label, ${LABEL}`)];
  const { x, y } = boxOf(chart);
  const page = new DOMRect(x, y, WIDTH, Number.MAX_SAFE_INTEGER);
  const faults: Record<string, Drawn> = {
    cut: drawn(LABEL).filter(({ box, owner }) => !isIn(box, boxOf(owner?.querySelector(`${NODE}, ${OUTLINE}`)))),
    overlap: parts.filter((one) => parts.some(({ owner, box }) => owner !== one.owner && overlap(box, one.box))),
    "outside its group": parts.filter(
      ({ node, box }) => node?.g && !isIn(box, boxOf(document.getElementById(String(node.g)))),
    ),
    "outside the page": [...nodes, ...drawn(OUTLINE)].filter(({ box }) => !isIn(box, page)),
    "leads back": nodes.filter(({ node }) =>
      RED.nodes.filterLinks({ source: node }).some(({ target }) => node.x + node.w / 2 > target.x - target.w / 2),
    ),
    red: drawn("[class*=-status-dot-red], [class*=-status-ring-red]"),
  };
  return Object.entries(faults).flatMap(([fault, found]) =>
    found.map(({ owner }) => `${fault}: ${owner?.querySelector(LABEL)?.textContent}`),
  );
}

describe("Each example in the editor, at the first click", () => {
  const examples = readExamples("examples");
  let redis: Server | undefined;
  let bench: Workbench;
  let red: Instance;
  let sandbox: Sandbox | undefined;

  /** Waits until no audit works. Otherwise its next results would count for another button, and be cleared before they are looked for. */
  async function settle(): Promise<void> {
    for (;;) {
      const { text } = await bench.ask("seo-report-audit/batches", "writer");
      if ((JSON.parse(text) as { finished: boolean }[]).every(({ finished }) => finished)) return;
      await sleep(DRAWN);
    }
  }

  before(async function () {
    const chromium = needChromium() ?? this.skip();
    redis = await startServer("Redis");
    bench = await startWorkbench(chromium, { all: true, env: { ...env, SEO_QUEUE_URL: redis?.url ?? "" } });
    red = drive(bench);
    await bench.editor.page.evaluate(() => RED.sidebar.show("debug"));
    const known = new Set<string>();
    for (const [, nodes] of examples) {
      await bench.editor.import(nodes.filter(({ id }) => !known.has(id)));
      for (const { id } of nodes) known.add(id);
    }
    // The editor would not deploy them.
    const invalid = await bench.editor.page.evaluate(() =>
      RED.nodes
        .filterNodes({})
        .filter(({ valid, type }) => !valid || type === "unknown")
        .map(({ id }) => id),
    );
    const all = examples.flatMap(([title, nodes]) => nodes.map(({ id, name }) => ({ id, says: `${title}: ${name}` })));
    const wrong = all.filter(({ id }) => invalid.includes(id)).map(({ says }) => says);
    assert.deepEqual(wrong, []);
    await bench.deploy();
    await red.outputs();
    await bench.sandbox.close();
  });
  beforeEach(async () => {
    sandbox = await startSandbox({ port: bench.sandbox.port });
  });
  afterEach(() => sandbox?.close());
  after(async () => {
    await bench?.stop();
    await redis?.close();
  });

  for (const [title, nodes] of examples) {
    it(`shows a result, and neither an error nor a cut text: ${title}`, async () => {
      const { page, complaints } = bench.editor;
      const number = title.slice(0, 2);
      await page.evaluate((id) => RED.workspaces.show(id), nodes[0]?.id ?? "");
      for (const { id, type, name = "" } of nodes) {
        if (type !== "inject" && type !== "ui-button") continue;
        const isSilent = SILENT.includes(`${number} ${name}`);
        await settle();
        await red.outputs(() => true);
        await page.evaluate(() => RED.actions.invoke("core:clear-debug-messages"));
        if (type === "inject") await page.locator(`[id="${id}"] .red-ui-flow-node-button-button`).click();
        else await bench.ask(`inject/${id}`, "writer", {});
        const outputs = await red.outputs(({ received, shown }) => received > 0 && (shown.length > 0 || isSilent));
        assert.ok(Object.keys(outputs).length > 0 || isSilent, `${name} shows nothing`);
        for (const [output, values] of Object.entries(outputs)) {
          assert.doesNotMatch(output, /^(error|not (sent|written)|no sitemap)/, `${name}: ${JSON.stringify(values)}`);
          for (const value of values)
            assert.ok(!Array.isArray(value) || value.length > 0, `${name}: ${output} shows an empty array`);
          if (nodes.some((node) => node.type === "debug" && node.name === output))
            await page.locator(".red-ui-debug-msg-name", { hasText: output }).first().waitFor({ timeout: 30_000 });
        }
      }
      await settle();
      await sleep(DRAWN);
      assert.deepEqual(await page.evaluate(inspect), FAILED[number] ?? []);
      const notifications = page.locator(".red-ui-notification-error, .red-ui-notification-warning");
      assert.deepEqual(await notifications.allTextContents(), []);
      assert.deepEqual([...complaints, ...bench.log.filter((line) => /\[error\]|Uncaught/.test(line))], []);
    });
  }
});

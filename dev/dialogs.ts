import { join } from "node:path";
import { build } from "../nodes/editor/forms.js";
import { startSandbox } from "../sandbox/server.js";
import { nodeTypes } from "../src/operations.js";
import { needChromium } from "../test/support/chromium.js";
import type { Driver, Editor } from "../test/support/driver.js";
import { startWorkbench } from "../test/support/workbench.js";
import { bounds } from "./bounds.js";
import { pictureOf, themes } from "./documents.js";
import { nodeRed, root } from "./nodered.js";

/**
 * `node dist/dev/dialogs.js`: takes a picture of every edit dialog and of a workspace with statuses, in the light and the
 * dark theme, for docs/dialogs.md. Only Node-RED 5 has the dark theme.
 */
declare const RED: Editor;
declare const driver: Driver;

const SERVICE = "pictured-service";
const BUSY = "pictured-busy-service";
const QUEUE = "pictured-queue";
const out = join(root, "docs/pictures");
const { types } = build();

/** One node for each status that a user can see; each gets a message at the start. */
const states: Record<string, Record<string, unknown>> = {
  "seo-report-list": { output: "all" },
  "seo-report-show": { reportId: "404404", reportIdType: "str" },
  "seo-report-store": { url: "https://example.com/slow", urlType: "str" },
  "seo-project-list": { service: BUSY },
};
const busy = await startSandbox({ rateLimit: 1 });
const workspace = [
  { id: "flow", type: "tab", label: "Statuses" },
  { id: SERVICE, type: "seo-service", name: "", baseUrl: "${SEO_BASE_URL}", reconcile: "300" },
  { id: BUSY, type: "seo-service", name: "", baseUrl: busy.url },
  { id: QUEUE, type: "seo-queue", name: "", prefix: "seo-reports", tls: "" },
  ...Object.entries(states).flatMap(([type, more], row) => {
    const place = { z: "flow", y: 60 + 60 * row };
    const when = { repeat: more.service ? "0.5" : "", crontab: "", once: true, onceDelay: 1 };
    const start = {
      type: "inject",
      name: "start",
      props: [{ p: "payload" }],
      payload: "",
      payloadType: "date",
      ...when,
    };
    return [
      { ...place, ...start, id: `start-${row}`, x: 100, wires: [[`state-${row}`]] },
      { ...place, id: `state-${row}`, type, service: SERVICE, x: 400, ...more, wires: [[]] },
    ];
  }),
];

/** A node as it is dragged from the palette. */
function fresh(type: string): Record<string, string> {
  const fields = Object.entries(types[type]?.rows ?? {}).flatMap(([name, { value, source }]) => [
    [name, value],
    ...(source ? [[`${name}Type`, source]] : []),
  ]);
  return { id: type, type, ...Object.fromEntries(fields) };
}

if (!nodeRed().version.startsWith("5."))
  throw new Error("The dark theme needs Node-RED 5, which needs Node 22.9 or newer: npx -p node@24 npm run pictures");
const chromium = needChromium();
if (!chromium) process.exit(1);
const bench = await startWorkbench(chromium, {
  flows: workspace,
  credentials: Object.fromEntries([SERVICE, BUSY].map((id) => [id, { apiKey: "${SEO_API_KEY}" }])),
  service: { latency: ({ method }) => (method === "POST" ? 600_000 : 0) },
  scale: 1.25,
});
try {
  const { editor, sandbox } = bench;
  const { page } = editor;
  type Clip = { x: number; y: number; width: number; height: number };
  const shoot = async (name: string, clip: Clip) => {
    for (const theme of themes) {
      await page.evaluate((dark) => document.documentElement.classList.toggle("nr-theme-dark", dark), theme === "dark");
      await page.screenshot({ path: join(out, pictureOf(name, theme)), clip });
    }
    await page.evaluate(() => document.documentElement.classList.remove("nr-theme-dark"));
  };
  /** Takes a picture of the top dialog, cut off below its form. */
  const dialog = async (name: string) => {
    const tray = page.locator(".red-ui-tray-wrapper").last();
    await page.mouse.move(0, 0);
    const [whole, form] = await Promise.all([tray.boundingBox(), tray.locator(".seo-form").boundingBox()]);
    if (!whole || !form) throw new Error(`${name} is not open.`);
    const height = Math.min(form.y + form.height + 20, whole.y + whole.height) - whole.y;
    await shoot(name, { ...whole, height });
    console.log(name);
  };

  /** Shows the advanced settings, which the dialog may have opened by itself. */
  const unfold = () =>
    page.locator(".seo-form details").evaluateAll((all) => all.map((one) => one.setAttribute("open", "")));

  await page
    .locator(".red-ui-flow-node-status-label")
    .nth(Object.keys(states).length - 1)
    .waitFor();
  await page.getByText(/waiting \d+ s/).waitFor();
  await shoot("statuses", await bounds(page));

  await page.evaluate(
    ([service, all]) => {
      const z = RED.workspaces.active();
      RED.nodes.import(all.map((node, i) => ({ ...node, service, z, x: 500, y: 60 * i + 60, wires: [[]] })));
      RED.editor.editConfig("", "seo-service", service);
    },
    [SERVICE, Object.keys(nodeTypes).map(fresh)] as const,
  );
  await page.locator("#node-config-input-apiKey").fill("${SEO_API_KEY}");
  await page.locator("#node-config-input-baseUrl").fill(sandbox.url);
  await page.locator(".seo-test").click();
  await page.locator("output.seo-good").waitFor();
  await dialog("seo-service");
  await unfold();
  await dialog("seo-service-advanced");
  await page.evaluate(() => driver.close("cancel"));
  await page.evaluate((queue) => RED.editor.editConfig("", "seo-queue", queue), QUEUE);
  await page.locator("#node-config-input-url").fill("redis://localhost:6379");
  // The dialog checks a field when it is left.
  await page.keyboard.press("Tab");
  await unfold();
  await dialog("seo-queue");
  await page.evaluate(() => driver.close("cancel"));
  for (const type of Object.keys(nodeTypes)) {
    await page.evaluate((id) => driver.open(id), type);
    await unfold();
    await dialog(type);
    await page.evaluate(() => driver.close("cancel"));
  }
} finally {
  await Promise.all([bench.stop(), busy.close()]);
}

import { join } from "node:path";
import { needChromium } from "../test/support/chromium.js";
import { startWorkbench } from "../test/support/workbench.js";
import { root } from "./nodered.js";

/** `node dist/dev/audits.js`: takes the README's picture of the tab of audits, while an audit of the sandbox runs. */
declare const RED: { sidebar: { show(id: string): void }; actions: { invoke(name: string, value?: boolean): void } };

const AUDIT = "seo-report-audit";
const place = (id: string, type: string, y: number, more: object) => ({ id, type, z: "tab", x: 400, y, ...more });
const list = (id: string, urls: string[], to: string, topic: string) =>
  place(id, "inject", 100, {
    x: 150,
    props: [{ p: "payload" }, { p: "topic", vt: "str" }],
    payload: JSON.stringify(urls),
    payloadType: "json",
    topic,
    once: true,
    wires: [[to]],
  });
const audit = (id: string, y: number, name: string) =>
  place(id, AUDIT, y, { service: "service", name, existing: "create", wires: [[], []] });
const pages = Array.from({ length: 3000 }, (_, i) => (i % 60 === 7 ? `example com/${i}` : `https://example.com/${i}`));
const flows = [
  { id: "tab", type: "tab", label: "" },
  { id: "service", type: "seo-service", name: "", baseUrl: "${SEO_BASE_URL}", concurrency: "16", retries: "0" },
  audit("weekly", 100, "Weekly audit"),
  list("all", pages, "weekly", "example.com"),
];

const chromium = needChromium();
if (!chromium) process.exit(1);
const credentials = { service: { apiKey: "${SEO_API_KEY}" } };
const bench = await startWorkbench(chromium, { flows, credentials, service: { latency: 60 }, scale: 2 });
try {
  const { page } = bench.editor;
  await page.evaluate(() => RED.sidebar.show("seo-audits"));
  const card = page.locator(".seo-audits section").first();
  await card.filter({ hasText: /2,\d\d\d of 3,000/ }).waitFor();
  await card.locator("summary").click();
  await card.locator("li").first().waitFor();
  const box = await page.locator(".seo-audits").boundingBox();
  if (!box) throw new Error("The tab is hidden.");
  const clip = { x: box.x, y: box.y, width: box.width, height: Math.min(box.height, 300) };
  await page.screenshot({ path: join(root, "docs/pictures/audits.png"), clip });
} finally {
  await bench.stop();
}

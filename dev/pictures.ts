import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { startSandbox } from "../sandbox/server.js";
import { launch, needChromium } from "../test/support/chromium.js";
import type { Editor } from "../test/support/driver.js";
import { startServer } from "../test/support/servers.js";
import { installStandIns } from "../test/support/standins.js";
import { linkPackage, root, startNodeRed } from "./nodered.js";

/**
 * `node dist/dev/pictures.js [name...]`: imports every example from the menu of a real editor, deploys it, and takes a
 * picture of its flow for examples/README.md.
 */
const PACKAGE = "@seo-reports/node-red";
const MARGIN = 20;
const out = join(root, "docs/pictures");
const wanted = process.argv.slice(2);
const titles = readdirSync(join(root, "examples"))
  .filter((file) => file.endsWith(".json"))
  .map((file) => file.replace(/\.json$/, ""))
  .filter((title) => wanted.length === 0 || wanted.some((part) => title.startsWith(part)));

declare const RED: Editor;

/** Imports an example by the menu, as a user would. */
async function importExample(page: Page, title: string): Promise<void> {
  await page.evaluate(() => RED.actions.invoke("core:show-import-dialog"));
  const dialog = page.locator("#red-ui-clipboard-dialog");
  await dialog.getByRole("link", { name: "Examples" }).click();
  const entry = (label: string) => dialog.locator(".red-ui-treeList-label").filter({ hasText: label }).last();
  await entry(PACKAGE).click();
  await entry(title).click();
  await page.locator("#red-ui-clipboard-dialog-ok").click();
  const copy = page.getByRole("button", { name: "Import copy" });
  if (
    await copy.waitFor({ timeout: 1500 }).then(
      () => true,
      () => false,
    )
  )
    await copy.click();
  await page.waitForFunction(() => RED.nodes.dirty());
}

async function deploy(page: Page): Promise<void> {
  await page.locator("#red-ui-header-button-deploy").click();
  await page.waitForFunction(() => !RED.nodes.dirty());
  await page.getByText("Successfully deployed").waitFor();
}

/** The area of the open flow, with a margin. */
const bounds = (page: Page) =>
  page.evaluate((margin) => {
    const parts = document.querySelectorAll(
      ".red-ui-flow-node-group, .red-ui-flow-group-outline, .red-ui-flow-link-line",
    );
    const boxes = [...parts].map((part) => part.getBoundingClientRect()).filter(({ width }) => width > 0);
    const chart = document.querySelector("#red-ui-workspace-chart")?.getBoundingClientRect() ?? { left: 0, top: 0 };
    const x = Math.max(chart.left, Math.min(...boxes.map(({ left }) => left)) - margin);
    const y = Math.max(chart.top, Math.min(...boxes.map(({ top }) => top)) - margin);
    const width = Math.max(...boxes.map(({ right }) => right)) + margin - x;
    const height = Math.max(...boxes.map(({ bottom }) => bottom)) + margin - y;
    return { x, y, width, height };
  }, MARGIN);

const chromium = needChromium();
if (!chromium) process.exit(1);
const userDir = mkdtempSync(join(tmpdir(), "seo-pictures-"));
linkPackage(userDir);
installStandIns(userDir);
mkdirSync(out, { recursive: true });
const sandbox = await startSandbox();
const redis = await startServer("Redis");
const nodeRed = await startNodeRed(userDir, {
  env: {
    SEO_BASE_URL: sandbox.url,
    SEO_API_KEY: sandbox.apiKey,
    SLACK_WEBHOOK_URL: sandbox.url,
    SEO_QUEUE_URL: redis?.url ?? "",
  },
});
const browser = await launch(chromium);
try {
  const page = await browser.newPage({
    viewport: { width: 2200, height: 1200 },
    deviceScaleFactor: 1.25,
    colorScheme: "light",
  });
  page.setDefaultTimeout(120_000);
  await page.goto(nodeRed.url, { waitUntil: "domcontentloaded" });
  await page.waitForFunction(() => typeof RED !== "undefined" && RED.workspaces?.active() !== undefined);
  await page.locator("#red-ui-header-button-deploy").waitFor();
  for (const action of ["core:toggle-sidebar", "core:toggle-palette", "core:toggle-status", "core:toggle-show-grid"]) {
    await page.evaluate((name) => RED.actions.invoke(name, false), action);
  }
  for (const title of titles) {
    await importExample(page, title);
    await page
      .locator(".red-ui-workspace .red-ui-tab-label, #red-ui-workspace-tabs .red-ui-tab-label")
      .filter({ hasText: title.replace(/^\d+ - /, "SEO: ") })
      .click();
    await deploy(page);
    await page.evaluate(() => RED.actions.invoke("core:select-none"));
    await page
      .locator(".notification, .red-ui-notification")
      .first()
      .waitFor({ state: "detached" })
      .catch(() => {});
    await page.screenshot({ path: join(out, `${title.split(" ")[0]}.png`), clip: await bounds(page) });
    console.log(title);
  }
} finally {
  await browser.close();
  await Promise.all([nodeRed.stop(), sandbox.close()]);
  await redis?.close();
  rmSync(userDir, { recursive: true, force: true });
}

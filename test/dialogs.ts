import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { freePort, installPackage, root, startNodeRed } from "../sandbox/nodered.js";
import { startSandbox } from "../sandbox/server.js";
import { changes, operations } from "../src/operations.js";

/** `node dist/test/dialogs.js`: takes a picture of every dialog for the README, and of the service's with a test that succeeds. */
const out = join(root, "docs/pictures");
const SERVICE = "pictured-service";
const types = Object.keys({ ...operations, "seo-report-changes": changes });

interface Editor {
  nodes: { import(nodes: object[]): void; node(id: string): object };
  editor: { edit(node: object): void; editConfig(name: string, type: string, id: string): void };
}
declare const RED: Editor;

const userDir = mkdtempSync(join(tmpdir(), "seo-pictures-"));
await installPackage(userDir);
const sandbox = await startSandbox();
const nodeRed = await startNodeRed(userDir, { port: await freePort(18_950) });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, deviceScaleFactor: 1.25 });
  page.setDefaultTimeout(120_000);
  const tray = page.locator(".red-ui-tray").last();
  const shoot = async (name: string) => {
    await page.waitForTimeout(1000);
    const content = await tray.locator(".red-ui-tray-body").boundingBox();
    const end = await tray.locator(".seo-form").boundingBox();
    const whole = await tray.boundingBox();
    if (!content || !end || !whole) throw new Error(`${name} is not open.`);
    const height = Math.min(end.y + end.height + 30, whole.y + whole.height) - whole.y;
    await page.screenshot({ path: join(out, `${name}.png`), clip: { ...whole, height } });
  };
  const close = () => tray.locator("#node-dialog-cancel, #node-config-dialog-cancel").first().click();

  await page.goto(nodeRed.url, { waitUntil: "domcontentloaded" });
  await page.locator("#red-ui-header-button-deploy").waitFor();
  await page.waitForTimeout(3000);
  await page.evaluate(
    ([service, url, all]) => {
      const nodes = all.map((type, i) => ({ id: type, type, service, x: 200, y: 60 * i + 60, wires: [[]] }));
      RED.nodes.import([{ id: service, type: "seo-service", name: "", baseUrl: url }, ...nodes]);
      RED.editor.editConfig("", "seo-service", service);
    },
    [SERVICE, sandbox.url, types] as [string, string, string[]],
  );
  await page.locator("#node-config-input-apiKey").fill(sandbox.apiKey);
  await page.locator(".seo-test").click();
  await page.locator("output.seo-good").waitFor();
  await shoot("seo-service");
  await close();
  for (const type of types) {
    await page.waitForTimeout(700);
    await page.evaluate((id) => RED.editor.edit(RED.nodes.node(id)), type);
    const more = tray.locator("details summary");
    await page.locator("#node-input-service").waitFor();
    if (await more.count()) await more.click();
    await shoot(type);
    await close();
  }
} finally {
  await browser.close();
  await Promise.all([nodeRed.stop(), sandbox.close()]);
  rmSync(userDir, { recursive: true, force: true });
}

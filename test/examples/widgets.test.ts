import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { linkPackage, type Running, startNodeRed } from "../../dev/nodered.js";
import { resultOf } from "../../sandbox/pages.js";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { launch, needChromium } from "../support/chromium.js";
import { holdAfter, readExamples } from "../support/examples.js";
import { cutTexts } from "../support/texts.js";

const DASHBOARD = "@flowfuse/node-red-dashboard@1";
const SIZES = { desktop: { width: 1200, height: 900 }, phone: { width: 390, height: 844 } };

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  clone(): Box;
  applyTransform(matrix: number[]): void;
}
/** The part of a chart of Dashboard 2.0 (Apache ECharts) that shows what was drawn. */
interface Chart {
  getWidth(): number;
  getHeight(): number;
  getOption(): { series: { name: string; data: [unknown, number][] }[] };
  getZr(): {
    storage: {
      getDisplayList(
        update: boolean,
      ): { type: string; style: { text?: string }; transform: number[] | null; getBoundingRect(): Box }[];
    };
  };
}
/** Dashboard 2.0 publishes its charts once it has drawn one. */
declare const window: { uiCharts?: Record<string, { chart: Chart }> };

describe("example 09 with the real Dashboard 2.0", () => {
  const [, example = []] = readExamples("examples").find(([title]) => title.startsWith("09")) ?? [];
  const idOf = (name: string) => example.find((node) => node.name === name)?.id ?? assert.fail(name);
  const userDir = mkdtempSync(join(tmpdir(), "seo-widgets-"));
  const hold = holdAfter(1);
  let sandbox: Sandbox;
  let nodeRed: Running;
  let browser: Browser;
  let env: Record<string, string>;
  const pages: Page[] = [];

  before(async function () {
    const chromium = needChromium() ?? this.skip();
    writeFileSync(join(userDir, "package.json"), JSON.stringify({ name: "seo-widgets", private: true }));
    const quietly = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
    await promisify(execFile)("npm", ["install", "--prefix", userDir, ...quietly, DASHBOARD]);
    linkPackage(userDir);
    sandbox = await startSandbox({ latency: hold.latency });
    const flows = example.map((node) => (node.type === "seo-service" ? { ...node, retries: "0" } : node));
    writeFileSync(join(userDir, "flows.json"), JSON.stringify(flows));
    writeFileSync(
      join(userDir, "flows_cred.json"),
      JSON.stringify({ "seo-examples-service": { apiKey: sandbox.apiKey } }),
    );
    env = { SEO_BASE_URL: sandbox.url, SEO_API_KEY: sandbox.apiKey };
    [nodeRed, browser] = await Promise.all([startNodeRed(userDir, { env }), launch(chromium)]);
    for (const viewport of Object.values(SIZES)) {
      const page = await browser.newPage({ viewport });
      // The dashboard then publishes its charts.
      await page.addInitScript("window.Cypress = true");
      await page.goto(`${nodeRed.url}/dashboard/seo`);
      pages.push(page);
    }
  });
  after(async () => {
    await browser?.close();
    await nodeRed?.stop();
    await sandbox?.close();
    rmSync(userDir, { recursive: true, force: true });
  });

  const drawn = (page: Page, name: string) =>
    page.evaluate((id) => {
      const series = window.uiCharts?.[id]?.chart?.getOption().series ?? [];
      return series.flatMap((one) => one.data.map((point) => [one.name, ...point]));
    }, idOf(name));
  /** Waits until so many scores are drawn, of all pages or of one: they come a second after the list. */
  const scores = async (page: Page, count: number, name?: string) => {
    const found = async () => (await drawn(page, "scores")).filter(([one]) => (name ?? one) === one).length;
    while ((await found()) !== count) await sleep(50);
  };
  /** Texts of the charts that are not entirely on their canvas. */
  const cutInCharts = (page: Page) =>
    page.evaluate(() =>
      Object.values(window.uiCharts ?? {}).flatMap(({ chart }) =>
        chart
          .getZr()
          .storage.getDisplayList(true)
          .filter(({ style }) => style.text)
          .flatMap((element) => {
            const box = element.getBoundingRect().clone();
            if (element.transform) box.applyTransform(element.transform);
            const isIn =
              box.x >= 0 &&
              box.y >= 0 &&
              box.x + box.width <= chart.getWidth() &&
              box.y + box.height <= chart.getHeight();
            return isIn ? [] : [`${element.style.text} at ${box.x}, ${box.y}`];
          }),
      ),
    );
  /** Asserts, for the desktop and the phone, that no text is cut. */
  const legible = async () => {
    for (const page of pages) {
      assert.deepEqual(await cutInCharts(page), []);
      assert.deepEqual(await cutTexts(page), []);
    }
  };
  const label = (page: Page, text: string) => page.locator(".nrdb-ui-progress-wrapper").getByText(text).waitFor();
  /** Waits until no words are on the bar, which says nothing of an audit that is unknown. */
  const isBlank = (page: Page) =>
    page.waitForFunction(() => document.querySelector(".nrdb-ui-progress-wrapper")?.textContent === "");
  /** How many pages have each result, and the pages in the order of their reports, as the service returns them. */
  const reality = () => {
    const list = sandbox.reports.list({ sort_by: "generated_at" });
    const count = (result: string) => list.filter(({ score }) => resultOf(score) === result).length;
    return {
      results: ["good", "decent", "bad"].map((result) => [result, result, count(result)]),
      rows: list.slice(0, 10).map(({ url, score }) => [url, String(score)]),
    };
  };
  /** Waits until the page shows what the service returns. */
  const agrees = async (page: Page) => {
    const { rows, results } = reality();
    await page
      .locator("td", { hasText: rows[0]?.[0] ?? assert.fail() })
      .first()
      .waitFor();
    await page.waitForFunction(([url, score]) => {
      const cells = [...document.querySelectorAll("tbody td")].map((cell) => cell.textContent ?? "");
      return (
        cells.some((cell) => cell.endsWith(url ?? "")) && cells.slice(0, 5).some((cell) => cell.endsWith(score ?? ""))
      );
    }, rows[0] ?? []);
    assert.deepEqual(await drawn(page, "results"), results);
    const shown = await page
      .locator("tbody tr")
      .evaluateAll((all) =>
        all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent?.trim() ?? "")),
      );
    const scores = shown.map(([url, , score]) => [url, score]);
    if (page === pages[0]) assert.deepEqual(scores, rows);
  };

  it("draws bars for the results and scores, with the numbers of the service", async () => {
    for (const page of pages) {
      await agrees(page);
      await isBlank(page);
      await scores(page, 6);
    }
    await legible();
  });

  it("moves the progress of an audit that a button starts, and shows the new scores at its end", async () => {
    const [desktop = assert.fail()] = pages;
    await desktop.getByRole("button", { name: "Audit" }).click();
    for (const page of pages) await label(page, "1 of 3 pages: 33%");
    await legible();
    hold.release();
    for (const page of pages) {
      await label(page, "3 of 3 pages: 100%");
      await agrees(page);
      await scores(page, 2, "…/pricing");
    }
    await legible();
    const { port } = new URL(nodeRed.url);
    await nodeRed.stop();
    nodeRed = await startNodeRed(userDir, { env, port: Number(port) });
    for (const page of pages) await isBlank(page);
    await desktop.reload();
    await scores(desktop, 2, "…/pricing");
  });

  it("shows on every screen why an audit is paused", async () => {
    const [desktop = assert.fail()] = pages;
    await sandbox.close();
    await desktop.getByRole("button", { name: "Audit" }).click();
    for (const page of pages) {
      await label(page, "Paused: 0 of 3 pages: 0%");
      await page.locator(".nrdb-ui-text").getByText("ECONNREFUSED").first().waitFor();
      const close = page.getByRole("button", { name: "Close" });
      await close.click();
      await close.waitFor({ state: "detached" });
    }
    await legible();
    const errors = nodeRed.log.filter((line) => /\[error\]/.test(line) && !line.includes("ECONNREFUSED"));
    assert.deepEqual(errors, []);
  });
});

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { freePort } from "../../dev/nodered.js";
import type { Report } from "../../sandbox/reports.js";
import type { Sandbox } from "../../sandbox/server.js";
import { type Deployment, readExamples, setScene } from "../support/examples.js";
import { closeAfterEach } from "../support/opened.js";
import { startProgram } from "../support/program.js";

const PAGE = "https://example.com/";

describe("the examples of version 1, unchanged", () => {
  const { up, standIn, chat, deploy, press, page, file, red } = setScene();
  const examples = readExamples("test/fixtures/v1");
  const open = closeAfterEach();
  let sandbox: Sandbox;
  const start = (number: number, more: Partial<Deployment> = {}) =>
    deploy(examples[number - 1]?.[1] ?? [], sandbox.url, more);

  const runs: ((this: Mocha.Context) => Promise<void>)[] = [
    async () => {
      await start(1);
      for (const button of ["store a page", "list all", "show it", "make it private", "delete it"]) {
        assert.deepEqual(Object.keys(await press(button)), ["answer"], button);
      }
    },
    async () => {
      const { url, texts } = await chat();
      await start(2, { env: { SLACK_WEBHOOK_URL: url } });
      assert.deepEqual(await press("Mondays at 7:00"), { sent: [200] });
      const bad = sandbox.reports.list({ result: "bad" });
      const [text] = texts();
      assert.ok(text?.startsWith(`${bad.length} reports are bad:\n• `), text);
    },
    async () => {
      await start(3, { tab: { REPORTS_CSV: file("reports.csv") } });
      assert.deepEqual(await press("every day at 6:00"), { written: [file("reports.csv")] });
      const csv = readFileSync(file("reports.csv"), "utf8");
      assert.equal(csv.split("\r\n").length, 1 + 12 + 1);
      assert.equal((await page("seo-reports.csv")).text, csv);
    },
    async () => {
      writeFileSync(file("urls.csv"), `url,privacy\n${PAGE},\nno url,\n`);
      await start(4, { tab: { URLS_CSV: file("urls.csv"), RESULTS_CSV: file("results.csv") } });
      assert.deepEqual(await press("start"), { written: [file("results.csv")] });
      const [, first, second] = readFileSync(file("results.csv"), "utf8").split("\r\n");
      assert.match(first ?? "", /^https:\/\/example\.com\/,13,\d+,$/);
      assert.match(second ?? "", /^no url,,,.*422/);
    },
    async () => {
      const sitemap = await standIn(() => ({ body: `<urlset><url><loc>${PAGE}</loc></url></urlset>` }));
      await start(5, { tab: { SITEMAP: sitemap.url } });
      const summary = { sitemap: sitemap.url, listed: 1, wanted: 1, stored: 1, failures: [] };
      assert.deepEqual(await press("store the site"), { summary: [summary] });
    },
    async () => {
      await start(6, { tab: { MINIMUM: 1, TIME_LIMIT: 30 } });
      const headers = { "content-type": "application/json" };
      const { status, text } = await page("seo-gate", { method: "POST", headers, body: `{"url":"${PAGE}"}` });
      assert.deepEqual([status, JSON.parse(text).passed], [200, true]);
    },
    async () => {
      const { url, texts } = await chat();
      await start(7, { env: { SLACK_WEBHOOK_URL: url } });
      const report = sandbox.reports.get(1) as Report;
      report.score = 85;
      await press("every 15 minutes");
      report.score = 60;
      await press("every 15 minutes");
      assert.deepEqual(texts(), [`${report.url} got worse: it was good 85, it is decent 60.`]);
    },
    async () => {
      await start(8);
      assert.match((await page("seo-board")).text, /<p>12 of 12 reports\.<\/p>/);
    },
    async () => {
      await start(9);
      assert.deepEqual(Object.keys(await press("every 5 minutes")), ["results", "score of each day", "newest reports"]);
    },
    async () => {
      await start(10);
      assert.deepEqual(Object.keys(await press("store a page")), ["stored"]);
    },
    async () => {
      await start(11, { tab: { PROJECT: "example.com", DAYS: 0, APPROVAL_MINUTES: 30 } });
      const [old = []] = (await press("1. show what is old"))["for approval"] as object[][];
      const [deleted] = (await press("2. delete these")).deleted as { error: string }[][];
      const errors = deleted?.map(({ error }) => error);
      assert.deepEqual(errors, Array(old.length).fill(""));
      await press("make private");
      assert.deepEqual(Object.keys(await press("1. show the project")), ["for approval"]);
    },
    async function () {
      const port = await freePort();
      const hint = "There is no Mosquitto, so the flow that needs a broker is not tested.";
      await open((await startProgram(["mosquitto", "-p", String(port)], port, hint)) ?? this.skip());
      await start(12, { env: { MQTT_URL: `mqtt://127.0.0.1:${port}` } });
      await red().logged("Connected to broker");
      await red().inject("put in URLs");
      const { result = [] } = await red().outputs(({ shown }) => shown.length === 3);
      for (const one of result as { report?: number }[]) assert.ok(one.report, JSON.stringify(one));
    },
  ];

  for (const [index, [title]] of examples.entries()) {
    it(`runs ${title}`, async function () {
      sandbox = await up({ reports: 12, now: Date.now });
      await runs[index]?.call(this);
    });
  }
});

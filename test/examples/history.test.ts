import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { describeExample, json, only } from "../support/examples.js";

const BUTTON = "every day at 6:00";
const morning = (day: number) => `2026-11-${day}T06:00:00.000Z`;
const LATER = morning(13);

describeExample(
  "19 - Score history",
  ({ up, standIn, deploy, press, page: get, file, red, fitsPhone, unavailable }) => {
    const path = () => file("history.jsonl");
    beforeEach(() => rmSync(path(), { recursive: true, force: true }));

    const start = (url: string) => deploy(url, { tab: { HISTORY_FILE: path() } });
    const lines = () =>
      readFileSync(path(), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as { date: string; url: string; score: number });
    const scoresOf = (all: { url: string; score: number }[]) => all.map(({ url, score }) => [url, score]);
    /** Writes readings as earlier runs would have. */
    const write = (...readings: [date: string, url: string, score: number][]) =>
      appendFileSync(
        path(),
        readings.map(([date, url, score]) => `\n${JSON.stringify({ date, url, score })}`).join(""),
      );

    async function page(query = "") {
      const { status, text } = await get(`seo-history${query}`);
      const charts = [...text.matchAll(/<h2>(.*?)<\/h2>\n<p>(.*?)<\/p>\n<svg.*?aria-label="(.*?)".*?points="(.*?)"/g)];
      return { status, text, charts: charts.map(([, ...chart]) => chart) };
    }

    it("appends the newest score of each page, run after run", async () => {
      const { url, reports } = await up({ reports: 12 });
      const [first] = reports.list({ sort: "asc" });
      reports.store({ url: first?.url ?? "" });
      await start(url);
      assert.deepEqual(await press(BUTTON), { added: ["12 scores added"] });
      const newest = reports.list({ sort_by: "generated_at" }).filter(({ id }) => id !== first?.id);
      assert.deepEqual(scoresOf(lines()), scoresOf(newest));
      for (const { id } of newest) reports.update(id, { update: "1" });
      await press(BUTTON);
      const scores = lines().filter(({ url }) => url === first?.url);
      assert.equal(lines().length, 24);
      assert.equal(scores.at(-1)?.score, newest.find(({ url }) => url === first?.url)?.score);
      assert.ok(scores.every(({ date }) => Math.abs(Date.parse(date) - Date.now()) < 60_000));
    });

    it("draws a chart of each page, in the order of the URLs", async () => {
      write([morning(10), "example.com/b", 40], [morning(10), "example.com/a", 90]);
      write([morning(11), "example.com/b", 70], [LATER, "example.com/b", 60], [LATER, "example.com/c", 50]);
      await start("http://127.0.0.1:1");
      const { status, text, charts } = await page();
      assert.equal(status, 200);
      assert.deepEqual(charts, [
        ["example.com&#x2F;a", "<strong>90</strong> (0 since 2026-11-10)", "90", "30,20"],
        ["example.com&#x2F;b", "<strong>60</strong> (+20 since 2026-11-10)", "40, 70, 60", "30,70 217,40 590,50"],
        ["example.com&#x2F;c", "<strong>50</strong> (0 since 2026-11-13)", "50", "590,60"],
      ]);
      assert.match(text, /<p>3 of 3 pages\.<\/p>/);
    });

    it("shows the first 100 of the pages that contain the search text", async () => {
      write(...Array.from({ length: 150 }, (_, i) => [LATER, `example.com/${i}`, 50] as [string, string, number]));
      await start("http://127.0.0.1:1");
      assert.equal((await page()).charts.length, 100);
      const { charts, text } = await page("?search=com%2F14");
      assert.equal(charts.length, 11);
      assert.match(text, /value="com&#x2F;14"/);
      assert.equal((await page("?search=nowhere")).charts.length, 0);
    });

    it("skips a line that a crash cut short, and no other", async () => {
      write([LATER, "example.com/a", 50]);
      appendFileSync(path(), '\n{"date":"2026-11-1');
      await start((await up({ reports: 1 })).url);
      await press(BUTTON);
      assert.equal((await page()).charts.length, 2);
    });

    it("shows what the file contains as text only", async () => {
      const odd = '"><script>alert(1)</script>';
      const service = await standIn(() => json(200, { data: [{ id: 1, url: odd, score: 50 }] }));
      await start(service.url);
      await press(BUTTON);
      const { text, charts } = await page(`?search=${encodeURIComponent(odd)}`);
      assert.equal(charts.length, 1);
      assert.doesNotMatch(text, /"">/);
    });

    it("appends scores that older services return as the result, and no missing ones", async () => {
      const records = [
        { id: 1, url: "a.example", result: "71" },
        { id: 2, url: "b.example", score: null, result: null },
        { id: 3, url: "c.example", score: 0, result: "bad" },
        { id: 4, url: "d.example", result: "bad" },
      ];
      await start((await standIn(() => json(200, { data: records }))).url);
      assert.deepEqual(await press(BUTTON), { added: ["2 scores added"] });
      assert.deepEqual(scoresOf(lines()), [
        ["a.example", 71],
        ["c.example", 0],
      ]);
    });

    it("reports a file that can neither be read nor written", async () => {
      mkdirSync(path());
      await start((await up({ reports: 1 })).url);
      only(await press(BUTTON), "error", /^append: .*EISDIR/);
      const { status, text } = await page();
      assert.equal(status, 500);
      assert.match(text, /^The history cannot be read: .*EISDIR/);
      await red().outputs();
    });

    async function startWithLongUrl() {
      const long = `example.com/${"long".repeat(60)}`;
      write([morning(10), long, 40], [LATER, long, 90]);
      await start("http://127.0.0.1:1");
    }
    fitsPhone("seo-history", startWithLongUrl, async (tab) => {
      // The policy of the page lets its form search.
      await tab.getByRole("textbox").fill("nowhere");
      await tab.getByRole("button").click();
      await tab.waitForURL(/search=nowhere/);
    });

    unavailable(async (url, { says }) => {
      writeFileSync(path(), "as it was");
      await start(url);
      only(await press(BUTTON), "error", new RegExp(`^newest first: .*${says.source}`));
      assert.equal(existsSync(path()) && readFileSync(path(), "utf8"), "as it was");
    });
  },
);

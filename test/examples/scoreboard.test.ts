import assert from "node:assert/strict";
import { findChromium, launch } from "../support/chromium.js";
import { describeExample, json } from "../support/examples.js";

const word = (score: number) => (score >= 80 ? "good" : score >= 50 ? "decent" : "bad");
const day = (time: number) => new Date(time).toISOString().slice(0, 10);
const escaped = (text: string) =>
  text.replace(/[&/=]/g, (sign) => ({ "&": "&amp;", "/": "&#x2F;", "=": "&#x3D;" })[sign] ?? "");

describeExample("08 - Scoreboard", ({ up, standIn, deploy, red, quiet, unavailable }) => {
  async function board() {
    const answer = await fetch(`${red().url}/seo-board`);
    return {
      status: answer.status,
      policy: answer.headers.get("content-security-policy"),
      page: await answer.text(),
    };
  }
  const rows = (page: string) => [...page.matchAll(/<tr>(<td.*)<\/tr>/g)].map(([, row = ""]) => cells(row));
  const cells = (row: string) => [...row.matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell]) => cell ?? "");

  it("shows the results, and the newest report of each page", async () => {
    const { url, reports } = await up({ reports: 130 });
    await deploy(url);
    const { status, policy, page } = await board();
    assert.deepEqual([status, policy], [200, "default-src 'none'; style-src 'unsafe-inline'"]);
    assert.doesNotMatch(page, /<script|src=|href=|https?:/);
    const newest = reports.list({ sort_by: "generated_at" });
    assert.deepEqual(
      rows(page),
      newest
        .slice(0, 100)
        .map(({ url, project, score, generated_at }) => [
          escaped(url),
          String(score),
          word(score),
          "",
          day(generated_at),
          project,
        ]),
    );
    const counts = ["good", "decent", "bad"].map((name) => newest.filter(({ score }) => word(score) === name).length);
    assert.deepEqual(
      [...page.matchAll(/<dt>(\w+)<\/dt>.*?width: (\d+)%.*?>(\d+)<\/dd>/g)].map(([, ...row]) => row),
      ["good", "decent", "bad"].map((name, index) => {
        const count = counts[index] ?? 0;
        return [name, String(Math.round((count / 130) * 100)), String(count)];
      }),
    );
    assert.match(page, /<p>100 of 130 pages, from 130 of 130 reports\.<\/p>/);
    quiet();
  });

  it("joins the scores of one page only, oldest first", async () => {
    const { url, reports } = await up({ reports: 0 });
    for (const [page, score] of [
      ["a", 40],
      ["b", 90],
      ["a", 60],
      ["a", 80],
    ] as const) {
      Object.assign(reports.store({ url: `https://example.com/${page}` }), { score });
    }
    await deploy(url);
    const { page } = await board();
    const [a, b] = rows(page);
    assert.deepEqual([a?.[0], a?.[1], b?.[0], b?.[3]], [escaped("example.com/a"), "80", escaped("example.com/b"), ""]);
    assert.match(a?.[3] ?? "", /<title>40, 60, 80<\/title><polyline points="2,14 40,10 78,6"/);
    assert.match(page, /<p>2 of 2 pages, from 4 of 4 reports\.<\/p>/);
    quiet();
  });

  it("shows what a report contains as text only", async () => {
    const odd = { id: 1, url: "<script>alert(1)</script>", score: null };
    await deploy((await standIn(() => json(200, [odd]))).url);
    assert.deepEqual(rows((await board()).page), [["&lt;script&gt;alert(1)&lt;&#x2F;script&gt;", "", "", "", "", ""]]);
  });

  it("fits a phone", async function () {
    const chromium = findChromium();
    if (!chromium) this.skip();
    const { url, reports } = await up({ reports: 36 });
    for (const { url: page } of reports.list({})) reports.store({ url: page });
    await deploy(url);
    const browser = await launch(chromium);
    try {
      const page = await browser.newPage({ viewport: { width: 360, height: 740 } });
      await page.goto(`${red().url}/seo-board`);
      const [width, ...heights] = await page.evaluate(() => [
        document.documentElement.scrollWidth,
        ...[...document.querySelectorAll("tbody tr")].map((row) => row.getBoundingClientRect().height),
      ]);
      assert.equal(width, 360);
      assert.ok(Math.max(...heights) < 120, `a row is ${Math.max(...heights)} px high`);
    } finally {
      await browser.close();
    }
  });

  it("says that there are no reports", async () => {
    await deploy((await up({ reports: 0 })).url);
    const { status, page } = await board();
    assert.deepEqual([status, /There are no reports yet/.test(page), /<table/.test(page)], [200, true, false]);
    quiet();
  });

  unavailable(async (url, { says }) => {
    await deploy(url);
    const { status, page } = await board();
    assert.equal(status, 502);
    assert.match(page.replace(/&#x2F;/g, "/"), says);
  });
});

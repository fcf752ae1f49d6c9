import assert from "node:assert/strict";
import { resultOf } from "../../sandbox/pages.js";
import { describeExample, json } from "../support/examples.js";

const day = (time: number) => new Date(time).toISOString().slice(0, 10);
const escaped = (text: string) =>
  text.replace(/[&/=]/g, (sign) => ({ "&": "&amp;", "/": "&#x2F;", "=": "&#x3D;" })[sign] ?? "");

describeExample("08 - Scoreboard", ({ up, standIn, deploy, page, quiet, fitsPhone, unavailable }) => {
  const board = () => page("seo-board");
  const rows = (page: string) => [...page.matchAll(/<tr>(<td.*)<\/tr>/g)].map(([, row = ""]) => cells(row));
  const cells = (row: string) => [...row.matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell]) => cell ?? "");

  it("shows the results, and the newest report of each page", async () => {
    const { url, reports } = await up({ reports: 130 });
    await deploy(url);
    const { status, text } = await board();
    assert.equal(status, 200);
    const newest = reports.list({ sort_by: "generated_at" });
    const first = newest.slice(0, 100).map(({ url, project, score, generated_at }) => {
      return [escaped(url), String(score), resultOf(score), "", day(generated_at), project];
    });
    assert.deepEqual(rows(text), first);
    const countOf = (name: string) => newest.filter(({ score }) => resultOf(score) === name).length;
    const bars = [...text.matchAll(/<dt>(\w+)<\/dt>.*?width: (\d+)%.*?>(\d+)<\/dd>/g)].map(([, ...row]) => row);
    const counts = ["good", "decent", "bad"].map((name) => {
      return [name, String(Math.round((countOf(name) / 130) * 100)), String(countOf(name))];
    });
    assert.deepEqual(bars, counts);
    assert.match(text, /<p>100 of 130 pages, from 130 of 130 reports\.<\/p>/);
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
    const { text } = await board();
    const [a, b] = rows(text);
    assert.deepEqual([a?.[0], a?.[1], b?.[0], b?.[3]], [escaped("example.com/a"), "80", escaped("example.com/b"), ""]);
    assert.match(a?.[3] ?? "", /<title>40, 60, 80<\/title><polyline points="2,14 40,10 78,6"/);
    assert.match(text, /<p>2 of 2 pages, from 4 of 4 reports\.<\/p>/);
    quiet();
  });

  it("shows what a report contains as text only", async () => {
    const odd = { id: 1, url: "<script>alert(1)</script>", score: null };
    await deploy((await standIn(() => json(200, [odd]))).url);
    assert.deepEqual(rows((await board()).text), [["&lt;script&gt;alert(1)&lt;&#x2F;script&gt;", "", "", "", "", ""]]);
  });

  async function startWithTwoOfEach() {
    const { url, reports } = await up({ reports: 36 });
    for (const { url: page } of reports.list({})) reports.store({ url: page });
    await deploy(url);
  }
  fitsPhone("seo-board", startWithTwoOfEach, async (tab) => {
    const rows = tab.locator("tbody tr");
    const heights = await rows.evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height));
    assert.ok(Math.max(...heights) < 120, `a row is ${Math.max(...heights)} px high`);
  });

  it("says that there are no reports", async () => {
    await deploy((await up({ reports: 0 })).url);
    const { status, text } = await board();
    assert.deepEqual([status, /There are no reports yet/.test(text), /<table/.test(text)], [200, true, false]);
    quiet();
  });

  unavailable(async (url, { says }) => {
    await deploy(url);
    const { status, text } = await board();
    assert.equal(status, 502);
    assert.match(text.replace(/&#x2F;/g, "/"), says);
  });
});

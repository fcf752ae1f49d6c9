import assert from "node:assert/strict";
import type { Report } from "../../sandbox/reports.js";
import { describeExample, json } from "../support/examples.js";
import type { FlowNode } from "../support/red.js";

const DAY = 86_400_000;
const PAGES = ["https://example.com/", "https://one.example/", "https://two.example/", "https://three.example/"];
const HEADER = ["", ...PAGES.map((url) => url.replace(/^https:..|.$/g, ""))];

const pass = { passed: true, importance: "high", value: null };
const fail = { passed: false, importance: "high", value: null };

/** Sets PAGES in the properties of the flow. */
const list = (pages: unknown) => (node: FlowNode) => {
  if (node.type === "tab") node.env = [{ name: "PAGES", value: JSON.stringify(pages), type: "json" }];
};

describeExample(
  "17 - Compare with competitors",
  ({ up, standIn, deploy, press, page, red, fitsPhone, unavailable }) => {
    const start = (url: string, pages: unknown = PAGES) => deploy(url, { change: list(pages) });

    async function table() {
      const { status, text } = await page("seo-compare");
      const cells = (row: string) =>
        [...row.matchAll(/<t[hd].*?>(.*?)<\/t[hd]>/g)].map(([, cell = ""]) => cell.replace(/<[^>]*>/g, " ").trim());
      return { status, text, rows: [...text.matchAll(/<tr>(.*)<\/tr>/g)].map(([, row = ""]) => cells(row)) };
    }

    /** A service that creates a report with the results of each page, by host; without results, it returns 500. */
    const service = (results: Record<string, unknown>) =>
      standIn(({ method, body }) => {
        if (method === "GET") return json(200, { data: [] });
        const { hostname } = new URL(new URLSearchParams(body).get("url") ?? "");
        const checks = results[hostname];
        if (checks === undefined) return json(500, { message: `<b>${hostname}</b> did not respond.` });
        return json(201, { data: { id: 1, url: hostname, score: 70, results: checks } });
      });

    it("creates a report of each page once, and compares the pages side by side", async () => {
      const { url, reports } = await up({ reports: 0, now: Date.now });
      await start(url);
      const { status, rows } = await table();
      assert.equal(status, 200);
      const scores = HEADER.slice(1).map((page) => String(reports.list({ search: page })[0]?.score));
      assert.deepEqual(rows.slice(0, 2), [HEADER, ["score", ...scores]]);
      assert.equal(rows[2]?.[0], "failed checks");
      assert.ok(rows.length > 4 && rows.slice(3).every(([, ...cells]) => cells.every((cell) => /^[✓✗]/.test(cell))));
      for (const report of reports.list({})) (report as Report).generated_at -= 6 * DAY;
      await table();
      assert.equal(reports.list({}).length, 4);
      await red().outputs();
    });

    it("shows important checks, first those that only your page fails", async () => {
      const { url } = await service({
        "example.com": {
          title: fail,
          speed: pass,
          links: { ...fail, value: ["a", "b"] },
          favicon: { ...fail, importance: "low" },
        },
        "one.example": { title: fail, speed: fail, links: { ...pass, value: 24 }, note: "no check" },
        "two.example": { title: fail, speed: pass, links: fail },
        "three.example": { title: fail, robots: { ...pass, value: "x".repeat(200) } },
      });
      await start(url);
      assert.deepEqual((await table()).rows, [
        HEADER,
        ["score", "70", "70", "70", "70"],
        ["failed checks", "3", "2", "2", "1"],
        ["links", `✗  [&quot;a&quot;,&quot;b&quot;]`, "✓  24", "✗", "–"],
        ["title", "✗", "✗", "✗", "✗"],
        ["speed", "✓", "✗", "✓", "–"],
        ["robots", "–", "–", "–", `✓  ${"x".repeat(100)}`],
      ]);
    });

    it("shows why a page failed beside the others, as text only", async () => {
      const { url } = await service({
        "example.com": { title: { ...fail, value: "<script>alert(1)</script>" } },
        "one.example": { title: pass },
        "three.example": { "<img src=x>": pass },
      });
      await start(url);
      const { status, text, rows } = await table();
      assert.equal(status, 200);
      const [header, score, failed, title, odd] = rows;
      assert.equal(header?.[3], "https:&#x2F;&#x2F;two.example&#x2F;");
      assert.match(score?.[3] ?? "", /500: &lt;b&gt;two\.example&lt;&#x2F;b&gt; did not respond/);
      assert.deepEqual(failed, ["failed checks", "1", "0", "–", "0"]);
      assert.equal(title?.[1], "✗  &lt;script&gt;alert(1)&lt;&#x2F;script&gt;");
      assert.deepEqual(odd?.slice(0, 2), ["&lt;img src&#x3D;x&gt;", "–"]);
      assert.doesNotMatch(text, /<b>/);
    });

    it("returns 500 if no page is set", async () => {
      await start("http://127.0.0.1:1", []);
      const { status, text } = await table();
      assert.equal(status, 500);
      assert.match(text, /^The pages cannot be compared: .*Set PAGES in the properties of this flow/);
      const { error: [error] = [] } = await press("compare");
      assert.match(String(error), /^pages: .*Set PAGES/);
    });

    fitsPhone("seo-compare", async () => start((await up({ reports: 0 })).url));

    unavailable(async (url, { says }) => {
      await start(url);
      const { status, rows } = await table();
      assert.equal(status, 502);
      const [, ...errors] = rows[1] ?? [];
      assert.equal(errors.length, 4);
      for (const error of errors) assert.match(error.replace(/&#x2F;/g, "/"), says);
    });
  },
);

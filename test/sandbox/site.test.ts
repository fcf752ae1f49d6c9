import assert from "node:assert/strict";
import { load } from "cheerio";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";

describe("the sandbox's sample site", () => {
  let sandbox: Sandbox;
  let sitemap: string[];

  before(async () => {
    sandbox = await startSandbox({ fail: 100, rateLimit: 1, latency: 60_000 });
    const response = await fetch(`${sandbox.url}/sitemap.xml`);
    assert.deepEqual([response.status, response.headers.get("content-type")], [200, "application/xml"]);
    const $ = load(await response.text(), { xml: true });
    sitemap = $("urlset > url > loc")
      .toArray()
      .map((loc) => $(loc).text());
  });
  after(() => sandbox.close());

  it("has a sitemap of 12 pages of one site, of which most have a report", () => {
    assert.equal(sitemap.length, 12);
    assert.deepEqual([...new Set(sitemap.map((url) => new URL(url).origin))], ["https://shop.example.com"]);
    const reported = new Set(sandbox.reports.list({}).map(({ url }) => url));
    const known = sitemap.filter((url) => reported.has(url.replace("https://", "").replace(/\/$/, "")));
    assert.equal(known.length, 9);
  });

  it("serves these pages as HTML that links them all, without a key, a limit or errors", async () => {
    const paths = sitemap.map((url) => url.replace("https:/", "").replace(/\/$/, ""));
    for (const path of paths) {
      const response = await fetch(sandbox.url + path);
      assert.deepEqual([response.status, response.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
      const $ = load(await response.text());
      assert.match($("title").text(), /./);
      const links = $("a").toArray();
      const shown = links.map((link) => $(link).attr("href"));
      assert.deepEqual(shown, paths);
    }
    assert.deepEqual(sandbox.requests, []);
  });
});

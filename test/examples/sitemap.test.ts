import assert from "node:assert/strict";
import { describeExample } from "../support/examples.js";

const urls = (...pages: string[]) =>
  `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${pages.map((page) => `<url><loc> ${page} </loc></url>`).join("")}</urlset>`;

describeExample("05 - Sitemap", ({ up, standIn, deploy, press, quiet, unavailable }) => {
  const site = (pages: Record<string, string>) =>
    standIn(({ path }) =>
      pages[path] === undefined ? { status: 404, body: path === "/old" ? "Not found" : "" } : { body: pages[path] },
    );

  async function start(url: string, sitemap: string, tab = {}) {
    await deploy(url, { tab: { SITEMAP: sitemap, ...tab } });
    return press("start");
  }

  it("gives the chosen pages reports and sums up", async () => {
    const pages = ["a", "b/x", "a", "c?d=1&amp;e=2", "private/f", "z"].map((page) => `https://example.com/${page}`);
    const { url } = await site({ "/sitemap.xml": urls(...pages) });
    const { url: service, reports } = await up({ reports: 0 });
    const outputs = await start(service, `${url}/sitemap.xml`, { INCLUDE: "/[a-z]", EXCLUDE: "private", MOST: 3 });
    const summary = {
      sitemap: `${url}/sitemap.xml`,
      listed: 5,
      chosen: 4,
      created: 3,
      regenerated: 0,
      fresh: 0,
      failures: [],
    };
    assert.deepEqual(outputs, { summary: [summary] });
    assert.deepEqual(
      reports
        .list({})
        .map((report) => report.url)
        .sort(),
      ["example.com/a", "example.com/b/x", "example.com/c?d=1&e=2"],
    );
    quiet();
  });

  it("creates no second report of a page on the same day", async () => {
    const { url } = await site({ "/sitemap.xml": urls("https://example.com/a", "https://example.com/b") });
    const { url: service, reports } = await up({ reports: 0, now: Date.now });
    reports.store({ url: "https://example.com/a" });
    const { summary } = await start(service, `${url}/sitemap.xml`);
    const counts = { listed: 2, chosen: 2, created: 1, regenerated: 0, fresh: 1, failures: [] };
    assert.deepEqual(summary, [{ sitemap: `${url}/sitemap.xml`, ...counts }]);
    assert.equal(reports.list({}).length, 2);
    quiet();
  });

  it("follows an index to the sitemaps of its own site", async () => {
    const pages: Record<string, string> = {
      "/1.xml": urls("https://example.com/a"),
      "/2.xml": urls("https://example.com/b", "https://example.com/c"),
    };
    const { url } = await site(pages);
    const places = [`${url}/1.xml`, `${url}/2.xml`, "http://127.0.0.1:1/3.xml"];
    pages["/index.xml"] =
      `<sitemapindex>${places.map((loc) => `<sitemap><loc>${loc}</loc></sitemap>`).join("")}</sitemapindex>`;
    const { summary = [], ...rest } = await start((await up({ reports: 0 })).url, `${url}/index.xml`);
    const of = (name: string, count: number) => ({
      sitemap: url + name,
      listed: count,
      chosen: count,
      created: count,
      regenerated: 0,
      fresh: 0,
      failures: [],
    });
    assert.deepEqual(new Set(summary), new Set([of("/1.xml", 1), of("/2.xml", 2)]));
    assert.deepEqual(rest, {});
    quiet();
  });

  it("uses the sandbox's own sitemap if none is set, but never that of a real service", async () => {
    const { url, reports } = await up({ reports: 0 });
    const { summary: [summary] = [], ...rest } = await start(url, "");
    const { sitemap, created, failures } = summary as { sitemap: string; created: number; failures: unknown[] };
    assert.deepEqual([sitemap, failures, rest], [`${url}/sitemap.xml`, [], {}]);
    assert.ok(created > 0);
    assert.equal(reports.list({}).length, created);
    const error = "Set SITEMAP in the properties of this flow to the URL of a sitemap.";
    assert.deepEqual(await start("https://seo.example", ""), { error: [error] });
    quiet();
  });

  it("says that a sitemap is missing, invalid, unreachable or empty", async () => {
    const { url } = await site({ "/empty.xml": urls(), "/page": "<html></html>", "/text": "no < markup" });
    const { url: service, requests } = await up();
    assert.deepEqual(await start(service, "example"), { error: ["SITEMAP is not a URL: example"] });
    const unreadable = (path: string, why: string) => `The sitemap ${url}${path} cannot be read: ${why}.`;
    for (const path of ["/none.xml", "/old"])
      assert.deepEqual(await start(service, url + path), { error: [unreadable(path, "the server returned 404")] });
    for (const [place, cause] of [
      ["http://127.0.0.1:1/", /ECONNREFUSED/],
      [`${url}/text`, /Text|tag|markup/i],
    ] as const) {
      const { error: [text] = [] } = await start(service, place);
      assert.ok(String(text).startsWith(`The sitemap ${place} cannot be read: `), String(text));
      assert.match(String(text), cause);
    }
    assert.deepEqual(await start(service, `${url}/page`), {
      error: [unreadable("/page", "it lists neither pages nor sitemaps")],
    });
    const none = `None of the 0 pages in ${url}/empty.xml is chosen by INCLUDE and EXCLUDE.`;
    assert.deepEqual(await start(service, `${url}/empty.xml`), { error: [none] });
    assert.deepEqual(requests, []);
    quiet();
  });

  unavailable(async (service, { says }) => {
    const { url } = await site({ "/sitemap.xml": urls("https://example.com/a", "https://example.com/b") });
    const { summary: [summary] = [] } = await start(service, `${url}/sitemap.xml`);
    const { failures, ...counts } = summary as { failures: { url: string; error: string }[] };
    assert.deepEqual(counts, {
      sitemap: `${url}/sitemap.xml`,
      listed: 2,
      chosen: 2,
      created: 0,
      regenerated: 0,
      fresh: 0,
    });
    assert.deepEqual(
      failures.map(({ url }) => url),
      ["https://example.com/a", "https://example.com/b"],
    );
    for (const { error } of failures) assert.match(error, says);
  });
});

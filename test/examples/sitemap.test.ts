import assert from "node:assert/strict";
import { batchEnded, describeExample } from "../support/examples.js";

const urls = (...pages: string[]) =>
  `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${pages.map((page) => `<url><loc> ${page} </loc></url>`).join("")}</urlset>`;

describeExample("05 - Sitemap", ({ up, standIn, deploy, press, unavailable }) => {
  const site = (pages: Record<string, string>) =>
    standIn(({ path }) =>
      pages[path] === undefined ? { status: 404, body: path === "/old" ? "Not found" : "" } : { body: pages[path] },
    );

  async function start(url: string, sitemap: string, tab = {}, ready?: typeof batchEnded) {
    await deploy(url, { tab: { SITEMAP: sitemap, ...tab } });
    return press("start", ready);
  }

  /** The last progress of a batch, as far as it does not depend on time. */
  function lastOf(progress: unknown[] = [], batch?: string) {
    const all = progress as { batch: string; perMinute: number; secondsLeft?: number }[];
    const last = all.findLast((one) => !batch || one.batch === batch) ?? all[0];
    const { perMinute: _, secondsLeft: __, ...rest } = last ?? {};
    return rest;
  }

  const finished = (batch: string, counts: { created?: number; fresh?: number; failed?: number; invalid?: number }) => {
    const all = {
      created: 0,
      regenerated: 0,
      fresh: 0,
      failed: 0,
      uncertain: 0,
      ...{ invalid: 0, waiting: 0, reconciling: 0, dropped: 0 },
      ...counts,
    };
    const done = all.created + all.fresh + all.failed;
    return { batch, total: done, done, ...all, paused: false, finished: true };
  };

  it("gives the chosen pages reports, and shows each and the progress", async () => {
    const pages = ["a", "b/x", "a", "c?d=1&amp;e=2", "private/f", "z"].map((page) => `https://example.com/${page}`);
    const { url } = await site({ "/sitemap.xml": urls(...pages) });
    const { url: service, reports } = await up({ reports: 0 });
    const tab = { INCLUDE: "/[a-z]", EXCLUDE: "private", MOST: 3 };
    const { page = [], progress, ...rest } = await start(service, `${url}/sitemap.xml`, tab, batchEnded);
    assert.deepEqual([lastOf(progress), rest], [finished(`${url}/sitemap.xml`, { created: 3 }), {}]);
    for (const text of page) assert.match(String(text), /^created: https:\/\/example\.com\/\S+ \(\d+\)$/);
    assert.equal(page.length, 3);
    const created = reports.list({}).map((report) => report.url);
    assert.deepEqual(created.sort(), ["example.com/a", "example.com/b/x", "example.com/c?d=1&e=2"]);
  });

  it("shows a page that fails, and continues", async () => {
    const { url } = await site({ "/sitemap.xml": urls("https://example.com/a", "ftp://example.com/b") });
    const { page = [], progress } = await start((await up({ reports: 0 })).url, `${url}/sitemap.xml`, {}, batchEnded);
    assert.deepEqual(lastOf(progress), finished(`${url}/sitemap.xml`, { created: 1, failed: 1, invalid: 1 }));
    assert.match(page.join("\n"), /^failed: ftp:\/\/example\.com\/b: \S.*$/m);
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
    const both: typeof batchEnded = ({ shown }) =>
      shown.filter(({ name, value }) => name === "progress" && Object(value).finished).length === 2;
    const outputs = await start((await up({ reports: 0 })).url, `${url}/index.xml`, {}, both);
    for (const [name, created] of [
      ["/1.xml", 1],
      ["/2.xml", 2],
    ] as const)
      assert.deepEqual(lastOf(outputs.progress, url + name), finished(url + name, { created }));
    assert.deepEqual(Object.keys(outputs).sort(), ["page", "progress"]);
  });

  it("uses the sandbox's own sitemap if none is set, but never that of a real service", async () => {
    const { url, reports } = await up({ reports: 0 });
    const { page = [], progress, ...rest } = await start(url, "", {}, batchEnded);
    assert.ok(page.length > 0);
    assert.deepEqual(lastOf(progress), finished(`${url}/sitemap.xml`, { created: page.length }));
    assert.deepEqual(rest, {});
    assert.equal(reports.list({}).length, page.length);
    const error = "Set SITEMAP in the properties of this flow to the URL of a sitemap.";
    assert.deepEqual(await start("https://seo.example", ""), { error: [error] });
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
  });

  unavailable(async (service, { says }) => {
    const { url } = await site({ "/sitemap.xml": urls("https://example.com/a", "https://example.com/b") });
    const { error: [text] = [], progress = [] } = await start(service, `${url}/sitemap.xml`, {}, batchEnded);
    assert.match(String(text), says);
    const { waiting, paused } = progress.at(-1) as { waiting: number; paused: string };
    assert.equal(waiting, 2);
    assert.match(paused, says);
  });
});

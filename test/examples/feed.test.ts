import assert from "node:assert/strict";
import { describeExample, json, only } from "../support/examples.js";
import type { Seen } from "../support/standins.js";

const page = (name: string) => `https://example.com/${name}`;
const RSS = (...names: string[]) =>
  `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>News</title><link>https://example.com/</link><atom:link href="https://example.com/feed" rel="self"/>${names.map((name) => `<item><title>${name}</title><link><![CDATA[ ${page(name)} ]]></link></item>`).join("")}</channel></rss>`;
const FORMATS: Record<string, (...names: string[]) => string> = {
  "an RSS feed": RSS,
  "an RSS 1.0 feed": (...names) =>
    `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><channel rdf:about="x"><link>https://example.com/</link></channel>${names.map((name) => `<item rdf:about="${name}"><link>${page(name)}</link></item>`).join("")}</rdf:RDF>`,
  "an Atom feed": (...names) =>
    `<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://example.com/"/>${names.map((name) => `<entry><link rel="self" href="https://example.com/api"/><link rel="alternate" href="${page(name)}"/></entry>`).join("")}</feed>`,
  "an Atom feed without rel": (...names) =>
    `<feed xmlns="http://www.w3.org/2005/Atom">${names.map((name) => `<entry><link href="${page(name)}"/></entry>`).join("")}</feed>`,
  "a sitemap": (...names) =>
    `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${names.map((name) => `<url><loc>${page(name)}</loc></url>`).join("")}</urlset>`,
};

describeExample("16 - New pages from a feed", ({ up, standIn, deploy, press, unavailable }) => {
  /** A feed whose content the test changes. */
  async function feed(body: string) {
    const current = { body, status: 200 };
    const { url } = await standIn(() => current);
    return { url, current };
  }

  const results =
    (count: number) =>
    ({ shown }: Seen) =>
      shown.filter(({ name }) => name === "page").length >= count;
  const run = async (count: number) => (await press("every hour", results(count))).page?.map(String).sort();
  const nothing = async (url: string) =>
    assert.deepEqual(await press("every hour"), { "nothing new": [`There is no new page in ${url}.`] });

  for (const [name, write] of Object.entries(FORMATS))
    it(`audits the pages of ${name}, then only new ones`, async () => {
      const { url, current } = await feed(write("a", "b"));
      const { url: service, reports } = await up({ reports: 0 });
      await deploy(service, { tab: { FEED: url } });
      const first = String(await run(2));
      assert.match(first, /^created: https:\/\/example\.com\/a \(\d+\),created: https:\/\/example\.com\/b \(\d+\)$/);
      await nothing(url);
      current.body = write("c", "a", "b");
      assert.match(String(await run(1)), /^created: https:\/\/example\.com\/c \(\d+\)$/);
      assert.equal(reports.list({}).length, 3);
      await nothing(url);
    });

  it("audits at most MOST pages in one run, and the others in the next", async () => {
    const { url } = await feed(RSS("a", "b", "c", "d", "e"));
    await deploy((await up({ reports: 0 })).url, { tab: { FEED: url, MOST: 2 } });
    const seen = [await run(2), await run(2), await run(1)].map((pages) =>
      pages?.map((text) => /example\.com\/(\w)/.exec(text)?.[1]).join(""),
    );
    assert.deepEqual(seen, ["ab", "cd", "e"]);
    await nothing(url);
  });

  it("leaves out the pages of today after a click", async () => {
    const { url, current } = await feed(RSS("a", "b"));
    const { url: service, reports } = await up({ reports: 0 });
    await deploy(service, { tab: { FEED: url, MOST: 1 } });
    assert.deepEqual(await press("mark all as seen"), { marked: ["2 pages are marked as seen."] });
    await nothing(url);
    current.body = RSS("c", "a", "b");
    assert.match(String(await run(1)), /^created: https:\/\/example\.com\/c /);
    assert.equal(reports.list({}).length, 1);
  });

  it("audits a page that failed again in the next run", async () => {
    const { url } = await feed(RSS("a", "b"));
    const service = await standIn(({ method }) =>
      method === "GET" ? json(200, []) : json(422, { message: { url: ["It cannot be fetched."] } }),
    );
    await deploy(service.url, { tab: { FEED: url } });
    for (const _ of [1, 2])
      assert.match(String(await run(2)), /^failed: \S+\/a: .*It cannot be fetched.*,failed: \S+\/b: /);
  });

  it("ignores what is not the URL of a web page", async () => {
    const odd = ["javascript:alert(1)", "/relative", "", 'https://example.com/"x', "https://example.com/a b"];
    const { url } = await feed(
      `<rss><channel>${odd.map((link) => `<item><link>${link}</link></item>`).join("")}<item><title>no link</title></item></channel></rss>`,
    );
    await deploy((await up()).url, { tab: { FEED: url } });
    await nothing(url);
  });

  it("uses the sandbox's own sitemap if none is set, but never that of a real service", async () => {
    const { url } = await up({ reports: 36 });
    await deploy(url);
    const { page: shown = [] } = await press("every hour", results(12));
    assert.equal(shown.length, 12);
    await nothing(`${url}/sitemap.xml`);
    await deploy("https://seo.example");
    const error = "Set FEED in the properties of this flow to the URL of a feed or a sitemap.";
    assert.deepEqual(await press("every hour"), { error: [error] });
  });

  it("says that a feed is down, missing, malformed or something else", async () => {
    const { url: service, requests } = await up();
    const { url, current } = await feed("");
    const read = async (place: string) => {
      await deploy(service, { tab: { FEED: place } });
      const { error = [], ...rest } = await press("every hour");
      assert.deepEqual([error.length, rest], [1, {}]);
      return String(error[0]).replace(`The feed ${place} cannot be read: `, "");
    };
    assert.match(await read("http://127.0.0.1:1/"), /^.*ECONNREFUSED/);
    for (const body of ["<rss><channel>", "no markup", "<html></html>", "", '{"items":[]}']) {
      Object.assign(current, { body, status: 200 });
      assert.match(await read(url), /Unclosed|Non-whitespace|no feed and no sitemap/, body);
    }
    for (const body of [RSS("a"), "<html></html>", "Not < found"]) {
      Object.assign(current, { body, status: 503 });
      assert.equal(await read(url), "the server returned 503.", body);
    }
    assert.deepEqual(requests, []);
  });

  unavailable(async (service, { says }) => {
    const { url } = await feed(RSS("a", "b"));
    await deploy(service, { tab: { FEED: url } });
    only(await press("every hour", ({ shown }) => shown.length > 0), "error", says);
  });
});

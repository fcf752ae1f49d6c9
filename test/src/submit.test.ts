import assert from "node:assert/strict";
import fc from "fast-check";
import { parseAddress } from "../../sandbox/request.js";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { type Client, createClient } from "../../src/client.js";
import { SeoError } from "../../src/errors.js";
import { decide, type Existing, isNewer } from "../../src/existing.js";
import { submit } from "../../src/submit.js";
import { startAccount } from "../support/account.js";
import { closeAfterEach } from "../support/opened.js";

const STORE = "seo-report-store";
const DAY = 86_400_000;

type Id = number | string;

describe("The outcome of a page", () => {
  const now = Date.UTC(2026, 0, 31);
  const aged = (days: number) => ({ id: 1, generated_at: new Date(now - days * DAY).toISOString() });
  const rows: [existing: Existing, maxAge: number | undefined, age: number | undefined, decision: string][] = [
    ["create", undefined, 0, "created"],
    ["create", 7, 0, "created"],
    ["regenerate", undefined, undefined, "created"],
    ["regenerate", undefined, 0, "regenerated"],
    ["regenerate", 7, 7, "fresh"],
    ["regenerate", 7, 7.01, "regenerated"],
    ["return", undefined, undefined, "created"],
    ["return", undefined, 4000, "fresh"],
    ["return", 7, 7, "fresh"],
    ["return", 7, 7.01, "created"],
    ["return", 0, 0.01, "created"],
  ];
  for (const [existing, maxAge, age, decision] of rows)
    it(`is ${decision} if existing is ${existing}, maxAge is ${maxAge ?? "blank"} and ${age === undefined ? "there is no report" : `the report is ${age} days old`}`, () =>
      assert.equal(decide(existing, maxAge, age === undefined ? undefined : aged(age), now), decision));

  for (const date of [1_764_270_000, "27.11.26", null])
    it(`is regenerated, as another report could be a duplicate, if the date is ${date}`, () =>
      assert.equal(decide("return", 7, { id: 1, generated_at: date }, now), "regenerated"));

  it("follows from its newest report: by generated_at, else created_at, then by the highest ID", () => {
    const date = fc.constantFrom(null, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "no date");
    const record = fc.record({ id: fc.integer({ min: 1, max: 99 }), generated_at: date, created_at: date });
    fc.assert(
      fc.property(record, record, (a, b) => {
        if (a.id === b.id) return;
        assert.notEqual(isNewer(a, b), isNewer(b, a));
      }),
    );
    const same = { generated_at: null, created_at: "2026-01-01T00:00:00Z" };
    assert.ok(isNewer({ id: 10, ...same }, { id: 9, ...same }));
    const ids = fc.oneof(fc.integer({ min: 1, max: 999 }), fc.constantFrom("9a", "10a", "a9", "a10", "9", "10"));
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        const later = (id: Id, than: Id) => Number(isNewer({ id, ...same }, { id: than, ...same }));
        assert.equal(later(a, b) + later(b, a), String(a) === String(b) ? 0 : 1);
      }),
    );
    for (const [later, earlier] of ["a9 a10", "9a 10a", "9a 10", "a1 2"].map((ids) => ids.split(" ")))
      assert.ok(isNewer({ id: later, ...same }, { id: earlier, ...same }), `${later}, ${earlier}`);
    assert.ok(isNewer({ id: 1, ...same, generated_at: "2026-01-02T00:00:00Z" }, { id: 9, ...same }));
  });
});

describe("Submitting a page", () => {
  const opened = closeAfterEach();
  let sandbox: Sandbox;
  let client: Client;

  beforeEach(async () => {
    sandbox = await opened(startSandbox({ reports: 250 }));
    client = await opened(createClient({ baseUrl: sandbox.url, apiKey: sandbox.apiKey, concurrency: "8" }));
  });

  const sent = () => sandbox.requests.map(({ method }) => method).join(" ");
  const idOf = ({ body }: { body: unknown }) => (body as { data: { id: number } }).data.id;

  it("creates a report without a search if existing is create or absent", async () => {
    for (const how of [{}, { existing: "create" }])
      assert.equal((await submit(client, STORE, { url: "https://new.example.com/a", ...how })).outcome, "created");
    assert.equal(sent(), "POST POST");
  });

  it("creates a report if the page has none, and regenerates or returns it the next time", async () => {
    const url = "https://www.New.example.com/a?b=1#c";
    const first = await submit(client, STORE, { url, existing: "return" });
    const second = await submit(client, STORE, { url: "http://new.example.com/a?b=1", existing: "return" });
    const third = await submit(client, STORE, { url, existing: "regenerate" });
    const fourth = await submit(client, STORE, { url, existing: "regenerate", maxAge: "7" });
    const outcomes = [first, second, third, fourth].map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ["created", "fresh", "regenerated", "fresh"]);
    assert.equal(new Set([first, second, third, fourth].map(idOf)).size, 1);
    // The host has a capital letter, so the text as it was typed is searched for, too.
    assert.deepEqual([first.attempts, second.attempts], [3, 2]);
    assert.equal(sent(), "GET GET POST GET GET GET PUT GET GET");
  });

  it("sets the privacy of a report that it regenerates", async () => {
    const url = "https://new.example.com/private";
    await submit(client, STORE, { url });
    const { body } = await submit(client, STORE, { url, existing: "regenerate", privacy: "1" });
    assert.equal(Number((body as { data: { privacy: unknown } }).data.privacy), 1);
  });

  it("creates one report of a page that is submitted many times at once", async () => {
    const url = "https://new.example.com/twice";
    const all = await Promise.all(Array.from({ length: 12 }, () => submit(client, STORE, { url, existing: "return" })));
    assert.equal(new Set(all.map(idOf)).size, 1);
    assert.equal(all.filter(({ outcome }) => outcome === "created").length, 1);
  });

  for (const age of [60, ["120", "0"], ["0", "120"], ["0, 7"]])
    it(`creates nothing if a cache says which reports there are: Age ${age}`, async () => {
      const account = await opened(startAccount({ age }));
      const cached = await opened(createClient({ baseUrl: account.url, apiKey: "key" }));
      const url = "https://new.example.com/a";
      await assert.rejects(submit(cached, STORE, { url, existing: "return" }), {
        code: "SEO_RESPONSE",
        message: "The response comes from a cache.",
      });
      assert.equal(account.count("POST"), 0);
    });

  it("rejects what is no URL before it searches", async () => {
    await assert.rejects(submit(client, STORE, { url: "com", existing: "return" }), {
      code: "SEO_INPUT",
      message: 'url must be the address of a web page, such as https://example.org/page; it is "com".',
    });
    assert.equal(sent(), "");
  });

  it("creates nothing if the search fails, and counts its attempts", async () => {
    const other = await opened(createClient({ baseUrl: sandbox.url, apiKey: "wrong", retries: "0" }));
    const error = await submit(other, STORE, { url: "https://x.example.com", existing: "return" }).catch((one) => one);
    assert.deepEqual([error.code, error.details.attempts, sent()], ["SEO_UNAUTHORIZED", 1, "GET"]);
  });

  it("rejects as the request does, also with an error that is no SeoError", async () => {
    const cause = new RangeError("of somebody else");
    const broken = { ...client, request: () => Promise.reject(cause) };
    await assert.rejects(submit(broken, STORE, { url: "https://x.example.com", existing: "return" }), cause);
  });
});

describe("The search for the report of a page", () => {
  const NOW = "Sun, 01 Jan 2023 00:00:00 GMT";
  const url = "https://example.com/a";
  const report = (id: number, day: number, page = "example.com/a") => ({
    ...{ id, url: page, generated_at: `2022-12-${String(day).padStart(2, "0")}T00:00:00Z` },
  });

  interface Options {
    date?: string;
    showFails?: boolean;
    /** The age of a report that is shown. */
    age?: string;
    /** The pages in the order of their URLs. */
    byUrl?: object[][];
    /** The totals of these pages. */
    totals?: number[];
  }

  /** A client whose list has these pages. Each request takes 10 ms, of which it waits 2. */
  function open(newest: object[][], { date = NOW, showFails, age = "0", byUrl = newest, totals = [] }: Options = {}) {
    const sent: [type: string, input: Record<string, string>][] = [];
    const request: Client["request"] = async (type, input, { extra } = {}) => {
      sent.push([type, input]);
      if (type.endsWith("show") && showFails) throw new SeoError("SEO_NETWORK", "Lost.", { attempts: 3 });
      const page = Number(extra?.page ?? 1);
      const pages = input.sort_by === "url" ? byUrl : newest;
      const { [page - 1]: total = pages.flat().length } = totals;
      const meta = { current_page: page, last_page: pages.length, total };
      const body = type.endsWith("list") ? { data: pages[page - 1], meta } : { data: { id: 1 } };
      const headers = { date, age: type.endsWith("list") ? "0" : age };
      return { statusCode: 200, headers, body, attempts: 1, duration: 10, waited: 2 };
    };
    const fake = { request, inTurn: (_: string, __: unknown, work: () => unknown) => work() } as unknown as Client;
    return { sent, submit: (input: object) => submit(fake, STORE, { url, existing: "return", ...input }) };
  }

  it("is for the page's address, or for its beginning if that is too long", async () => {
    const { sent, submit } = open([[]]);
    await submit({ url: `https://example.com/${"x".repeat(500)}` });
    const search = `example.com/${"x".repeat(188)}`;
    const query = { search, search_by: "url", sort_by: "generated_at", sort: "desc", per_page: "100" };
    assert.deepEqual(sent[0]?.[1], query);
  });

  it("ends with the newest reports that match if they have it, and takes the newest there", async () => {
    const first = [report(9, 9, "example.com/a/b"), report(3, 5), report(4, 7), report(5, 6)];
    const { sent, submit } = open([first, [report(2, 4)]]);
    const { attempts, duration, waited, outcome } = await submit({});
    const types = sent.map(([type]) => type);
    assert.deepEqual(types, ["seo-report-list", "seo-report-show"]);
    assert.deepEqual(sent[1]?.[1], { reportId: "4" });
    assert.deepEqual([attempts, duration, waited, outcome], [2, 20, 4, "fresh"]);
  });

  it("reads on if the service ignores the order", async () => {
    const other = report(9, 9, "example.com/a/b");
    const { submit } = open([[other], [report(3, 5)], [other]]);
    assert.equal((await submit({})).outcome, "fresh");
  });

  it("does not end before the end if a deletion can have moved the report to a page that was read", async () => {
    const before = Array.from({ length: 100 }, (_, i) => report(1000 + i, 1, `a.example.com/a/${1000 + i}`));
    const behind = Array.from({ length: 150 }, (_, i) => report(2000 + i, 1, `example.com/a/${2000 + i}`));
    const newest = [behind.slice(50), before, behind.slice(0, 50)];
    const byUrl = [before, behind.slice(0, 100), behind.slice(100)];
    assert.equal((await open(newest, { byUrl }).submit({})).outcome, "created");
    await assert.rejects(open(newest, { byUrl, totals: [251, 250, 250] }).submit({}), {
      code: "SEO_RESPONSE",
      message: /the service did not return all reports that match/,
    });
  });

  it("measures its age by the service's clock, or by its own if the service has none", async () => {
    const pages = [[report(1, 31)]];
    assert.equal((await open(pages).submit({ maxAge: "2" })).outcome, "fresh");
    assert.equal((await open(pages).submit({ maxAge: "0" })).outcome, "created");
    assert.equal((await open(pages, { date: "" }).submit({ maxAge: "2" })).outcome, "created");
  });

  it("does not return a report from a cache", async () => {
    const { submit } = open([[report(1, 31)]], { age: "60" });
    await assert.rejects(submit({}), { message: "The response comes from a cache." });
  });

  it("counts in an error the attempts before it", async () => {
    const { submit } = open([[report(1, 31)]], { showFails: true });
    const error = await submit({}).catch((one) => one);
    assert.deepEqual([error.code, error.details.attempts], ["SEO_NETWORK", 4]);
  });
});

describe("The report of a page, however the service writes its URL", () => {
  type Stored = { id: number; url: string; generated_at: string };
  type Order = (a: string, b: string) => number;
  const byCode: Order = (a, b) => (a < b ? -1 : 1);

  /** A client of a service that searches as SQL does, `writes` URLs and sorts them in `order`; without one, newest first. */
  function open(
    reports: Stored[],
    { writes = (url: string) => url, order = byCode as Order | null, pages = true } = {},
  ) {
    let lists = 0;
    const request: Client["request"] = async (type, { search = "", sort_by, reportId, url = "" }, { extra } = {}) => {
      const answer = (body: unknown) => ({ statusCode: 200, headers: {}, body, attempts: 1, duration: 0, waited: 0 });
      if (type === STORE) {
        const id = reports.length + 1;
        reports.push({ id, url: writes(url), generated_at: new Date(id * 1000).toISOString() });
        return answer({ data: reports.at(-1) });
      }
      if (reportId) return answer({ data: reports.find(({ id }) => String(id) === reportId) });
      lists++;
      const found = reports.filter(({ url = search }) => url.toLowerCase().includes(search.toLowerCase())).reverse();
      if (sort_by === "url" && order) found.sort((a, b) => order(a.url, b.url));
      const page = pages ? Number(extra?.page ?? 1) : 1;
      const meta = { current_page: page, last_page: Math.max(1, Math.ceil(found.length / 100)) };
      return answer({ data: found.slice(page * 100 - 100, page * 100), meta });
    };
    const client = { request, inTurn: (_: string, __: unknown, work: () => unknown) => work() } as unknown as Client;
    return { reports, lists: () => lists, submit: (url: string) => submit(client, STORE, { url, existing: "return" }) };
  }

  const browser = (url: string) => new URL(/^https?:/i.test(url) ? url : `http://${url}`).href;
  const services: Record<string, (url: string) => string> = {
    normalizes: (url) => parseAddress(url.replaceAll(" ", "%20"))?.url ?? "",
    "returns it as it was sent": (url) => url,
    "writes it as a browser does": browser,
    "writes escapes in capital letters": (url) => browser(url).replace(/%../g, (byte) => byte.toUpperCase()),
    "writes it readable": (url) => decodeURI(browser(url)),
    "writes it as a browser copies it": (url) => browser(url).replace(/(?:%[89a-f]\w)+/gi, decodeURI),
  };
  for (const [name, writes] of Object.entries(services))
    it(`is found again, also by another spelling, if the service ${name}`, async () => {
      const url = fc
        .tuple(
          fc.constantFrom("https://", "http://www.", "HTTPS://www.www.", "www.", ""),
          fc.constantFrom("example.com", "Example.COM", "bücher.example"),
          fc.constantFrom(
            ...`|/|?x=1|/p?|/?|/"a"?'b'|/<b>|/{id}?{id}|/\`|/a/../b|/%2e%2e/b|\\b\\c|/ü#top|/%c3%bc%7e`.split("|"),
          ),
        )
        .map((parts) => parts.join(""));
      await fc.assert(
        fc.asyncProperty(fc.array(url, { minLength: 1, maxLength: 8 }), async (urls) => {
          const { submit, reports } = open([], { writes });
          for (const one of urls) await submit(one);
          const count = reports.length;
          for (const one of urls) assert.equal((await submit(one)).outcome, "fresh", one);
          assert.equal(reports.length, count);
        }),
      );
      const spellings = [
        ["https://www.example.com?x=1", "example.com/?x=1"],
        ["example.com/a b", "https://example.com/a%20b"],
        ["https://bücher.example/ü", "xn--bcher-kva.example/%C3%BC"],
        ["https://Example.com/P", "https://Example.com/P#top"],
        ["example.com/%c3%bc%7B", "https://example.com/%C3%BC%7b"],
      ];
      for (const [first = "", second = ""] of [...spellings, ...spellings.map((both) => both.toReversed())]) {
        const { submit } = open([], { writes });
        await submit(first);
        assert.equal((await submit(second)).outcome, "fresh", `${first}, then ${second}`);
      }
    });

  /** The newest has the highest number; all match a search for their host. */
  const site = (count: number, first?: string): Stored[] =>
    Array.from({ length: count }, (_, i) => ({
      id: i + 1,
      url: i === 0 && first ? first : `example.com/${["a_b", "a-b", "a?b", "B/b", "a=b"][i % 5]}/${i}`,
      generated_at: new Date(i * 1000).toISOString(),
    }));
  const collations: Record<string, Order> = {
    "by code": byCode,
    "by code, without regard to case": (a, b) => byCode(a.toUpperCase(), b.toUpperCase()),
    "as Unicode collates": new Intl.Collator("en").compare,
  };
  for (const [name, order] of Object.entries(collations))
    it(`takes two or three requests for the home page among 8,500 reports of its host, in the order ${name}`, async () => {
      const none = open(site(8500), { order });
      assert.equal((await none.submit("https://example.com")).outcome, "created");
      assert.ok(none.lists() <= 3, `${none.lists()} requests`);
      const old = open(site(8500, "example.com"), { order });
      assert.equal((await old.submit("https://example.com")).outcome, "fresh");
      assert.ok(old.lists() <= 3, `${old.lists()} requests`);
    });

  /** A report among 150 others, which `write` numbers. */
  const among = (url: string, write: (i: number) => string, more: string[] = []) =>
    [...more, url, ...Array.from({ length: 150 }, (_, i) => write(i))].map((url, i) => ({
      ...{ id: i + 1, url, generated_at: new Date(i * 1000).toISOString() },
    }));
  const ignoringCase: Order = (a, b) => byCode(a.toLowerCase(), b.toLowerCase());
  const ignoringMarks = new Intl.Collator("en", { ignorePunctuation: true }).compare;
  const [www, https] = ["https://www.example.com/a", "https://example.com/a"];
  const small = Array<string>(20).fill("a.example.com/z");
  const hidden: [where: string, url: string, reports: Stored[], order?: Order][] = [
    ["with www among URLs without", www, among(www, (i) => `${https}${i}`)],
    ["with https among URLs with http", "example.com/a", among(https, (i) => `http://example.com/a${i}`)],
    ["with a lone ?", "https://example.com/x?", among("example.com/x?", (i) => `example.com/x0${i}`)],
    ["without punctuation", "example.com", among("example.com", (i) => `examplea.example.com/${i}`), ignoringMarks],
    ["with a slash behind another host", "example.com", among("example.com/", (i) => `example.com.au/${i}`)],
    ["with a capital", "example.com/Z", among("example.com/Z", () => "example.com/z", small), ignoringCase],
  ];
  for (const [where, url, reports, order = byCode] of hidden)
    it(`is found ${where}`, async () => {
      assert.equal((await open(reports, { order }).submit(url)).outcome, "fresh");
    });

  it("is the newest of 1,500, also if their list shows it last", async () => {
    const { reports, submit, lists } = open(site(1500).map((one) => ({ ...one, url: "example.com" })));
    const { body } = await submit("example.com");
    assert.deepEqual([(body as { data: unknown }).data, lists()], [reports.at(-1), 1]);
  });

  it("is unknown if 1,000 reports that match are in no order, and nothing is created", async () => {
    const order = (a: string, b: string) => byCode(a.slice(-1), b.slice(-1));
    const { submit, lists, reports } = open(site(2000, "example.com"), { order });
    await assert.rejects(submit("https://example.com"), {
      code: "SEO_RESPONSE",
      message:
        'Whether the page has a report is unknown: it is not among the first 1000 reports that match "example.com".',
      details: { attempts: 11 },
    });
    assert.deepEqual([lists(), reports.length], [11, 2000]);
  });

  it("is found if a character ends where its search text is cut", async () => {
    const { submit } = open([]);
    const url = `https://example.com/${"a".repeat(187)}😀x`;
    await submit(url);
    assert.equal((await submit(url)).outcome, "fresh");
  });

  it("is an error if a report has no ID or no URL, and nothing is created", async () => {
    for (const [report, message] of [
      [{ url: "example.com/a" }, "The list contains a report without id."],
      [{ id: 7, href: "example.com/a" }, "The list contains a report without url."],
    ] as const) {
      const { submit, reports } = open([report as unknown as Stored]);
      await assert.rejects(submit("example.com/a"), { message });
      assert.equal(reports.length, 1);
    }
  });

  it("is unknown if the service ignores the page number", async () => {
    const { submit } = open(site(300, "example.com"), { order: null, pages: false });
    await assert.rejects(submit("https://example.com"), /the service did not return all reports that match/);
  });
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { type Client, createClient } from "../../src/client.js";
import { SeoError } from "../../src/errors.js";
import { type Existing, isNewer, needOf } from "../../src/existing.js";
import { submit } from "../../src/submit.js";

const STORE = "seo-report-store";
const DAY = 86_400_000;

describe("What a page needs", () => {
  const now = Date.UTC(2026, 0, 31);
  const aged = (days: number) => ({ id: 1, generated_at: new Date(now - days * DAY).toISOString() });
  const rows: [existing: Existing, maxAge: number | undefined, age: number | undefined, decision: string][] = [
    ["create", undefined, 0, "create"],
    ["create", 7, 0, "create"],
    ["regenerate", undefined, undefined, "create"],
    ["regenerate", undefined, 0, "regenerate"],
    ["regenerate", 7, 7, "fresh"],
    ["regenerate", 7, 7.01, "regenerate"],
    ["return", undefined, undefined, "create"],
    ["return", undefined, 4000, "fresh"],
    ["return", 7, 7, "fresh"],
    ["return", 7, 7.01, "create"],
    ["return", 0, 0.01, "create"],
  ];
  for (const [existing, maxAge, age, decision] of rows)
    it(`is to ${decision} if existing is ${existing}, maxAge is ${maxAge ?? "blank"} and ${age === undefined ? "there is no report" : `the report is ${age} days old`}`, () =>
      assert.equal(needOf(existing, maxAge, age === undefined ? undefined : aged(age), now), decision));

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
        const [isLater, isEarlier] = [
          isNewer({ id: a, ...same }, { id: b, ...same }),
          isNewer({ id: b, ...same }, { id: a, ...same }),
        ];
        assert.equal(isLater || isEarlier, String(a) !== String(b));
        assert.ok(!(isLater && isEarlier));
      }),
    );
    for (const [later, earlier] of [
      ["a9", "a10"],
      ["9a", "10a"],
      ["9a", "10"],
      ["a1", "2"],
    ])
      assert.ok(isNewer({ id: later, ...same }, { id: earlier, ...same }), `${later}, ${earlier}`);
    assert.ok(isNewer({ id: 1, ...same, generated_at: "2026-01-02T00:00:00Z" }, { id: 9, ...same }));
  });
});

describe("Submitting a page", () => {
  let sandbox: Sandbox;
  let client: Client;

  beforeEach(async () => {
    sandbox = await startSandbox({ reports: 250 });
    client = createClient({ baseUrl: sandbox.url, apiKey: sandbox.apiKey, concurrency: "8" });
  });
  afterEach(async () => {
    await client.close();
    await sandbox.close();
  });

  const sent = () => sandbox.requests.map(({ method }) => method).join(" ");
  const idOf = ({ body }: { body: unknown }) => (body as { data: { id: number } }).data.id;

  it("creates a report without a search if existing is create or absent", async () => {
    for (const input of [
      { url: "https://new.example.com/a" },
      { url: "https://new.example.com/a", existing: "create" },
    ])
      assert.equal((await submit(client, STORE, input)).outcome, "created");
    assert.equal(sent(), "POST POST");
  });

  it("creates a report if the page has none, and regenerates or returns it the next time", async () => {
    const url = "https://www.New.example.com/a?b=1#c";
    const first = await submit(client, STORE, { url, existing: "return" });
    const second = await submit(client, STORE, { url: "http://new.example.com/a?b=1", existing: "return" });
    const third = await submit(client, STORE, { url, existing: "regenerate" });
    const fourth = await submit(client, STORE, { url, existing: "regenerate", maxAge: "7" });
    assert.deepEqual(
      [first, second, third, fourth].map(({ outcome }) => outcome),
      ["created", "fresh", "regenerated", "fresh"],
    );
    assert.equal(new Set([first, second, third, fourth].map(idOf)).size, 1);
    assert.deepEqual([first.attempts, second.attempts], [2, 2]);
    assert.equal(sent(), "GET POST GET GET GET PUT GET GET");
  });

  it("compares whole pages, not parts of a URL", async () => {
    await submit(client, STORE, { url: "https://new.example.com/a/b" });
    const { outcome } = await submit(client, STORE, { url: "https://new.example.com/a", existing: "return" });
    assert.equal(outcome, "created");
  });

  it("finds the report of a home page among all pages of its host", async () => {
    const home = await submit(client, STORE, { url: "https://big.example.com/" });
    for (let i = 0; i < 120; i++) await submit(client, STORE, { url: `https://big.example.com/${i}` });
    const found = await submit(client, STORE, { url: "big.example.com", existing: "return" });
    assert.deepEqual([found.outcome, idOf(found)], ["fresh", idOf(home)]);
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

  it("creates nothing if the search fails, and counts its attempts", async () => {
    await client.close();
    client = createClient({ baseUrl: sandbox.url, apiKey: "wrong", retries: "0" });
    const error = await submit(client, STORE, { url: "https://x.example.com", existing: "return" }).catch((one) => one);
    assert.deepEqual([error.code, error.details.attempts, sent()], ["SEO_UNAUTHORIZED", 1, "GET"]);
  });

  it("rejects as the request does, also with an error that is no SeoError", async () => {
    const cause = new RangeError("of somebody else");
    const broken = { ...client, send: () => Promise.reject(cause) };
    const sending = submit(broken, STORE, { url: "https://x.example.com", existing: "return" });
    await assert.rejects(sending, cause);
  });
});

describe("The search for the report of a page", () => {
  const NOW = "Sun, 01 Jan 2023 00:00:00 GMT";
  const url = "https://example.com/a";
  const report = (id: number, day: number, page = "example.com/a") => ({
    ...{ id, url: page, generated_at: `2022-12-${String(day).padStart(2, "0")}T00:00:00Z` },
  });

  /** A client whose list has these pages. Each request takes 10 ms, of which it waits 2. */
  function open(pages: object[][], { date = NOW, showFails = false } = {}) {
    const sent: [type: string, input: Record<string, string>][] = [];
    const send: Client["send"] = async (type, input, { extra } = {}) => {
      sent.push([type, input]);
      if (type.endsWith("show") && showFails) throw new SeoError("SEO_NETWORK", "Lost.", { attempts: 3 });
      const page = Number(extra?.page ?? 1);
      const meta = { current_page: page, last_page: pages.length, total: pages.flat().length };
      const body = type.endsWith("list") ? { data: pages[page - 1], meta } : { data: { id: 1 } };
      return { statusCode: 200, headers: { date }, body, attempts: 1, duration: 10, waited: 2 };
    };
    const fake = { send, inTurn: (_: string, __: unknown, work: () => unknown) => work() } as unknown as Client;
    return { sent, submit: (input: object) => submit(fake, STORE, { url, existing: "return", ...input }) };
  }

  it("is for the page's address, or for its host if that is too long", async () => {
    for (const [length, search] of [
      [200, `example.com/${"x".repeat(188)}`],
      [201, "example.com"],
    ] as const) {
      const { sent, submit } = open([[]]);
      await submit({ url: `https://example.com/${"x".repeat(length - 12)}` });
      assert.deepEqual(sent[0]?.[1], {
        ...{ search, search_by: "url", sort_by: "generated_at", sort: "desc", per_page: "100" },
      });
    }
  });

  it("ends with the first page of the list that has it, and takes the newest there", async () => {
    const { sent, submit } = open([
      [report(9, 9, "example.com/a/b")],
      [report(3, 5), report(4, 7), report(5, 6)],
      [report(6, 8)],
    ]);
    const { attempts, duration, waited, outcome } = await submit({});
    assert.deepEqual(
      sent.map(([type]) => type),
      ["seo-report-list", "seo-report-list", "seo-report-show"],
    );
    assert.deepEqual(sent[2]?.[1], { reportId: "4" });
    assert.deepEqual([attempts, duration, waited, outcome], [3, 30, 6, "fresh"]);
  });

  it("measures its age by the service's clock, or by its own if the service has none", async () => {
    const pages = [[report(1, 31)]];
    assert.equal((await open(pages).submit({ maxAge: "2" })).outcome, "fresh");
    assert.equal((await open(pages).submit({ maxAge: "0" })).outcome, "created");
    assert.equal((await open(pages, { date: "" }).submit({ maxAge: "2" })).outcome, "created");
  });

  it("counts in an error the attempts before it", async () => {
    const error = await open([[report(1, 31)]], { showFails: true })
      .submit({})
      .catch((one) => one);
    assert.deepEqual([error.code, error.details.attempts], ["SEO_NETWORK", 4]);
  });
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { type Client, createClient } from "../../src/client.js";
import { decide, type Existing, isNewer } from "../../src/existing.js";
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
      assert.equal(decide(existing, maxAge, age === undefined ? undefined : aged(age), now), decision));

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
});

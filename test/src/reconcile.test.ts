import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { SeoError } from "../../src/errors.js";
import { type Lookup, operations } from "../../src/operations.js";
import type { Requester } from "../../src/reconcile/list.js";
import { createReconciler } from "../../src/reconcile/reconcile.js";
import type { Response } from "../../src/responses.js";
import { deferred } from "../../src/turns.js";
import { HORIZON, HOUR, quiet, SECOND, type Store, simulate, type World, written } from "../support/simulation.js";

const redirects = { "a.example/old": "a.example/new", "a.example/moved": "b.example/", "c.example/old": "d.example/c" };
const pages = ["a.example/1", "a.example/2", "a.example/new", "b.example", "c.example/x", ...Object.keys(redirects)];

/** Two messages whose pages end at the same address may get each other's report, which nobody can tell apart. */
function check(world: World, { ends, reports, gets, endedAt }: Awaited<ReturnType<typeof simulate>>): void {
  const { stores, existing } = world;
  assert.ok(Math.max(...gets) <= endedAt, "a look after all messages have ended");
  const given = ends.flatMap((end) => ("id" in end ? [end.id] : []));
  assert.equal(new Set(given).size, given.length, "one report for two messages");
  const urls = stores.map(({ page }, index) => reports.find(({ by }) => by === index)?.url ?? written(world, page));
  ends.forEach((end, index) => {
    const report = "id" in end && reports.find(({ id }) => id === end.id);
    if (!report) return;
    assert.equal(report.url, urls[index], `message ${index} has another page's report`);
    assert.ok(reports.indexOf(report) >= existing.length, `message ${index} has a report from before`);
  });
  for (const url of urls) {
    const created = reports.filter((report) => report.by !== undefined && report.url === url);
    const stored = ends.filter((end, index) => urls[index] === url && !("certain" in end));
    assert.ok(created.length <= stored.length, `${created.length} reports of ${url} for ${stored.length} messages`);
  }
}

const failures = ["response lost", "request lost", "page rejected", "rate limited at first", "not saved"] as const;
const few = { minLength: 2, maxLength: 6 };
const anyStoreFields = {
  page: fc.constantFrom(...pages),
  after: fc.integer({ min: 0, max: 20 }),
  takes: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 0, max: 9 }) }, fc.integer({ min: 30, max: 150 })),
  responds: fc.integer({ min: 0, max: 20 }),
  fate: fc.constantFrom("answered", "answered", ...failures),
} satisfies Record<keyof Store, unknown>;
const anyStore = fc.record<Store>(anyStoreFields);
const world = fc.record<World>({
  stores: fc.oneof(
    fc.array(anyStore, { minLength: 1, maxLength: 25 }),
    fc.array(fc.record({ ...anyStoreFields, page: fc.constantFrom(...pages.slice(0, 2)) }), few),
    // A page that redirects, and the one where it ends.
    fc.array(
      fc.record({
        ...anyStoreFields,
        page: fc.constantFrom("a.example/old", "a.example/new"),
        after: fc.integer({ min: 0, max: 150 }),
        takes: fc.oneof(anyStoreFields.takes, fc.integer({ min: 60, max: 150 })),
      }),
      few,
    ),
  ),
  foreign: fc.array(fc.tuple(fc.integer({ min: 0, max: 600 }), fc.constantFrom(...pages, "z.example/other")), {
    maxLength: 4,
  }),
  skew: fc.constantFrom(0, HOUR / SECOND, -HOUR / SECOND),
  ids: fc.constantFrom("numbers", "texts", "mixed"),
  redirects: fc.constant(redirects),
  redirectsEnd: fc.constant(1e9),
  unsorted: fc.boolean(),
  unpaged: fc.constantFrom(0, 0, 10, 25),
  empty: fc.oneof(fc.constant<[number, number]>([0, 0]), fc.tuple(fc.nat(600), fc.nat(1200))),
  existing: fc.array(fc.constantFrom(...pages), { maxLength: 3 }),
  latency: fc.constantFrom(0.2, 0.2, 40),
  failing: fc.constantFrom(0, 0.3, 1),
  outage: fc.tuple(fc.nat(600), fc.nat(1200)),
  horizon: fc.constant(HORIZON),
});

describe("reconciling", () => {
  it("never creates two reports for one message, and never gives one report to two", async () => {
    await fc.assert(
      fc.asyncProperty(world, async (one) => check(one, await simulate(one))),
      { numRuns: Number(process.env.RUNS ?? 500) },
    );
  });

  it("ends with a certain outcome if all looks succeed and nobody else uses the account", async () => {
    const page = fc.constantFrom(...pages.slice(3, 5), "e.example", "f.example");
    const stores = fc.array(fc.record<Store>({ ...anyStoreFields, page }), { minLength: 1, maxLength: 12 });
    const existing = fc.array(page, { maxLength: 3 });
    const property = fc.asyncProperty(stores, existing, async (stores, existing) => {
      const one: World = { ...quiet, stores, existing, ids: "numbers" };
      const { ends } = await simulate(one);
      for (const [index, { fate }] of stores.entries()) {
        const outcome = fate === "page rejected" || fate === "not saved" ? "certain" : "id";
        assert.ok(outcome in (ends[index] as object), `${index}: ${JSON.stringify(ends[index])}`);
      }
    });
    await fc.assert(property, { numRuns: Number(process.env.RUNS ?? 200) });
  });

  it("repeats the deciding look if it failed", async () => {
    const store: Store = { page: "a.example/1", after: 0, takes: 70, responds: 0, fate: "answered" };
    // The third GET request fails: after the short list and one look that came too early.
    const world: World = { ...quiet, stores: [store], ids: "numbers", failing: 0.3, horizon: 72 * SECOND };
    const { ends, gets } = await simulate(world);
    assert.deepEqual([ends, gets.length], [[{ id: 1 }], 5]);
  });

  const at = (page: string, after: number, takes: number, fate: Store["fate"] = "answered"): Store => ({
    ...{ page, after, takes, fate, responds: 0 },
  });
  const lost = (page: string, after: number, takes: number) => at(page, after, takes, "response lost");
  const worlds: [title: string, stores: Store[], more?: Partial<World>][] = [
    [
      "another request explains only one of two reports",
      [
        ...[0, 11, 11, 1].map((after, i) =>
          at("a.example/1", after, 0, i === 0 ? "rate limited at first" : "answered"),
        ),
        lost("a.example/new", 19, 30),
        lost("a.example/old", 19, 0),
        at("a.example/1", 0, 0),
      ],
      { ids: "mixed" },
    ],
    [
      "a request that was rejected, and will be sent again, explains no report",
      [lost("a.example/old", 0, 7), at("a.example/new", 12, 0, "rate limited at first")],
      { horizon: 70 * SECOND },
    ],
    // The second gets the first one's report, and the third the second one's; its own is created after the first one's horizon.
    [
      "another request got its report, and its own was not created yet",
      [at("a.example/old", 0, 76), at("a.example/new", 90, 67), at("a.example/new", 0, 145)],
    ],
    [
      "that is so for its second attempt, whose first was put off for another page",
      [
        at("a.example/old", 0, 76, "request lost"),
        at("a.example/1", 5, 76),
        at("a.example/new", 365, 100),
        at("a.example/new", 0, 200),
      ],
    ],
  ];
  const busy = [lost("a.example/1", 0, 0), ...pages.flatMap((page) => Array<Store>(5).fill(at(page, 0, 0)))];
  for (const existing of [[], ["a.example/2"]])
    worlds.push([
      `the list has only the 25 newest reports, and ${existing.length} from before`,
      busy,
      { existing, unpaged: 25 },
    ]);
  worlds.push([
    "another request got its report, and its own was missing in the list",
    [lost("a.example/new", 0, 0), at("a.example/old", 0, 0), lost("a.example/old", 0, 0), at("a.example/old", 0, 0)],
    { existing: ["b.example/"], unpaged: 2 },
  ]);
  worlds.push([
    "its page redirected before, and somebody else then created a report of that address",
    [at("a.example/old", 0, 0), lost("a.example/old", 20, 5)],
    { foreign: [[26, "a.example/new"]], redirectsEnd: 10 },
  ]);
  for (const [title, stores, more] of worlds)
    it(`does not retry a create request if ${title}`, async () => {
      const world: World = { ...quiet, stores, redirects, ids: "numbers", ...more };
      check(world, await simulate(world));
    });

  /** When the list is read for a request that is sent at once, and cut after a minute. In seconds; no look succeeds. */
  async function looksIn(world: Partial<World>): Promise<number[]> {
    const stores = [at("a.example/1", 0, 0, "request lost")];
    const outage: World["outage"] = [60, HOUR];
    const { gets } = await simulate({ ...quiet, stores, ids: "numbers", latency: 0, outage, ...world });
    return gets.slice(1);
  }
  const deciding = (horizon: number) => Array.from({ length: 10 }, (_, nth) => horizon + 30 * nth);

  it("looks 5, 15, 30, 60 and 120 seconds after the response was lost, then ten times after the horizon", async () => {
    assert.deepEqual(await looksIn({}), [65, 75, 90, 120, 180, ...deciding(300)]);
  });

  it("decides as soon as the horizon has passed", async () => {
    for (const horizon of [30, 60, 63, 65])
      assert.deepEqual(await looksIn({ horizon: horizon * SECOND }), deciding(Math.max(60, horizon)));
  });

  it("decides at the horizon, although the looks before took long", async () => {
    // It is sent when the short list has been read.
    const looks = await looksIn({ latency: 50 });
    assert.ok(looks.includes(350), looks.join());
  });

  it("does not put off its decision because of a request that has ended", async () => {
    const stores = [at("a.example/new", 0, 0), lost("a.example/old", 5, 0)];
    const { ends, endedAt } = await simulate({ ...quiet, stores, redirects, ids: "numbers", latency: 0 });
    const decided = Math.floor(endedAt - HORIZON / SECOND);
    assert.deepEqual([ends, decided], [[{ id: 1 }, { uncertain: true }], 5]);
  });

  it("does not put off its decision again for reports that another request got meanwhile", async () => {
    const stores = [
      at("a.example/new", 0, 62, "request lost"),
      at("a.example/1", 60, 0, "request lost"),
      at("a.example/2", 137, 104),
      at("a.example/1", 0, 0),
    ];
    const { ends, endedAt } = await simulate({ ...quiet, stores, redirects, ids: "numbers", latency: 0 });
    assert.deepEqual([ends, Math.floor(endedAt)], [[{ id: 2 }, { id: 3 }, { id: 1 }, { id: 4 }], 497]);
  });

  it("reads the list once for all that look, as far back as the oldest request requires", async () => {
    const others = Array.from({ length: 30 }, (_, nth) => at(`f.example/${nth}`, 1, 0));
    // The first request was sent before them all, and looks last. The list was read just before, so it looks together with the second.
    const stores = [at("a.example/1", 0, 70), ...others, lost("a.example/2", 14.9, 0), lost("a.example/3", 13, 0)];
    const { ends, endedAt } = await simulate({ ...quiet, stores, ids: "numbers", latency: 0, outage: [46, 72] });
    assert.deepEqual([ends[0], ...ends.slice(-2), Math.floor(endedAt)], [{ id: 33 }, { id: 31 }, { id: 32 }, 75]);
  });

  it("does not read the list for a request that has ended while another one reads it", async () => {
    const { promise, resolve } = deferred();
    let lists = 0;
    const requester: Requester = {
      request: async () => ({ statusCode: 200, headers: {}, body: { data: [] } }),
      async *pages() {
        lists++;
        await promise;
        yield* [];
      },
    };
    const { track } = createReconciler(requester, { now: () => 0, sleep: () => setImmediate() });
    const lookup = operations["seo-report-store"].lookup as Lookup;
    const tickets = [1, 2].map((page) => track(lookup, { url: `a.example/${page}` }));
    await tickets[0]?.newest();
    for (const ticket of tickets) {
      ticket.beforeAttempt();
      ticket.sent();
      void ticket.lost(new SeoError("SEO_SERVER", "No."), 0);
      await setImmediate();
    }
    assert.equal(lists, 1);
    for (const ticket of tickets) ticket.end();
    resolve();
    for (let turn = 0; turn < 5; turn++) await setImmediate();
    assert.equal(lists, 1);
  });

  it("looks for all requests of an earlier process at once, together, when audits have claimed theirs", async () => {
    const records = Array.from({ length: 20 }, (_, nth) => ({ id: 20 - nth, url: `a.example/${nth}` }));
    const respond = (data: unknown): Response => ({ statusCode: 200, headers: {}, body: { data } });
    let lists = 0;
    const requester: Requester = {
      request: async (_, { reportId }) => respond(records.find(({ id }) => id === Number(reportId))),
      async *pages() {
        lists++;
        yield { records, total: records.length, response: respond(records) };
      },
    };
    // No time passes.
    const sleep = (ms: number) => (ms > 0 ? new Promise(() => {}) : setImmediate());
    const { track, announceClaims } = createReconciler(requester, { now: () => 0, sleep });
    const claimed = announceClaims();
    const lookup = operations["seo-report-store"].lookup as Lookup;
    const tickets = records.map(({ url }) => track(lookup, { url }, { watermark: { rank: 0, ids: [] } }));
    const fates = tickets.map((ticket) => ticket.lost(new SeoError("SEO_NETWORK", "No."), HORIZON));
    for (let turn = 0; turn < 5; turn++) await setImmediate();
    assert.equal(lists, 0);
    claimed();
    for (const { was } of await Promise.all(fates)) assert.equal(was, "carried out");
    assert.equal(lists, 1);
  });

  it("gives a request of an earlier process another horizon if audits do not claim theirs in time", async () => {
    const response: Response = { statusCode: 200, headers: {}, body: { data: [{ id: 2, url: "b.example" }] } };
    const requester: Requester = {
      request: async () => response,
      async *pages() {
        yield { records: [{ id: 2, url: "b.example" }, { id: 1 }], total: 2, response };
      },
    };
    let now = 0;
    const sleep = async (ms: number) => {
      now += ms;
      if (now > 10 * SECOND) claim(["2"], 0);
    };
    const { track, announceClaims, claim } = createReconciler(requester, { now: () => now, sleep });
    announceClaims();
    const lookup = operations["seo-report-store"].lookup as Lookup;
    const ticket = track(lookup, { url: "a.example" }, { watermark: { of: "id", rank: 1, ids: ["1"] }, age: HORIZON });
    assert.equal((await ticket.lost(new SeoError("SEO_NETWORK", "No."), HORIZON)).was, "not carried out");
  });

  it("reads the list also if another one that looks was sent before the list could be read", async () => {
    const stores = [lost("a.example/1", 0, 10), at("a.example/2", 2, 0), lost("a.example/3", 8, 0)];
    const { ends, endedAt } = await simulate({ ...quiet, stores, ids: "numbers", latency: 0, outage: [0, 1] });
    assert.deepEqual([ends, Math.floor(endedAt)], [[{ uncertain: true }, { id: 1 }, { id: 3 }], 15]);
  });

  it("decides in an account that had no report, although others are created while the list is read", async () => {
    const others = Array.from({ length: 1400 }, (_, nth) => at(`f.example/${nth}`, 0.25, 0));
    const stores = [at("a.example/1", 0, 0, "request lost"), ...others];
    const { ends, gets } = await simulate({ ...quiet, stores, ids: "numbers", latency: 0.05 });
    assert.ok("id" in Object(ends[0]));
    assert.ok(Math.max(...gets) < HORIZON / SECOND + 30, "the first deciding look is enough");
  });

  it("reads the list every five seconds if many responses are lost, one after the other", async () => {
    const stores = Array.from({ length: 30 }, (_, nth) => lost(`f.example/${nth}`, 1, 0));
    const { gets, endedAt } = await simulate({ ...quiet, stores, ids: "numbers" });
    // The short list, and each report that was found.
    const lists = gets.length - 1 - stores.length;
    assert.ok(lists <= endedAt / 5, `${lists} lists in ${endedAt} seconds`);
  });

  it("looks for thousands of lost responses at once while somebody else creates a report", async () => {
    const stores = Array.from({ length: 5000 }, (_, nth) => at(`f.example/${nth}`, 0, 0, "request lost"));
    const { ends } = await simulate({ ...quiet, stores, foreign: [[100, "z.example/other"]], ids: "numbers" });
    // If each waited for all others, this would have taken minutes and gigabytes.
    assert.deepEqual(new Set(ends.map((end) => Object.keys(end)[0])), new Set(["uncertain"]));
  }).timeout(30_000);

  it("waits for the end of an outage of four minutes after the horizon", async () => {
    const stores = [at("a.example/1", 0, 70, "request lost"), lost("a.example/2", 0, 70)];
    const outage: World["outage"] = [50, HORIZON / SECOND + 240];
    const { ends } = await simulate({ ...quiet, stores, outage, ids: "numbers" });
    assert.deepEqual(ends, [{ id: 2 }, { id: 1 }]);
  });

  it("waits for four minutes after the horizon while the list is empty", async () => {
    const stores = [at("a.example/1", 0, 70, "request lost"), lost("a.example/2", 0, 70)];
    const empty: World["empty"] = [50, HORIZON / SECOND + 240];
    const world: World = { ...quiet, stores, empty, existing: ["a.example/3"], ids: "numbers" };
    const { ends, reports } = await simulate(world);
    assert.deepEqual([ends, reports.length], [[{ id: 3 }, { id: 2 }], 3]);
  });

  it("reports a rejected page without waiting for another request's report", async () => {
    const stores = [at("a.example/1", 0, 76), at("a.example/2", 70, 9, "page rejected")];
    const { ends, gets } = await simulate({ ...quiet, stores, ids: "numbers" });
    // The short list, looks of the first after 5, 15 and 30 seconds, the report that they found, and one look of the second.
    assert.deepEqual([ends, gets.length], [[{ id: 1 }, { certain: true }], 6]);
  });

  it("returns no report from before, even if the list could not be read at first, and another one was created in its second", async () => {
    const stores = [at("a.example/1", 0, 0), lost("a.example/2", 1, 0)];
    for (const [end, outageEnds] of Object.entries({ uncertain: 2, found: 1 })) {
      const world: World = { ...quiet, stores, existing: ["a.example/2"], ids: "texts", outage: [0, outageEnds] };
      const { ends, reports } = await simulate(world);
      const second = end === "found" ? { id: reports[2]?.id } : { uncertain: true };
      assert.deepEqual([ends, reports.length], [[{ id: reports[1]?.id }, second], 3]);
    }
  });

  it("distinguishes reports of the same second if the IDs are not numbers", async () => {
    const store: Store = { page: "a.example/1", after: 0, takes: 0, responds: 0, fate: "response lost" };
    const { ends, reports } = await simulate({ ...quiet, stores: [store], ids: "texts", existing: ["a.example/2"] });
    assert.deepEqual([ends, reports.length], [[{ id: reports[1]?.id }], 2]);
  });
});

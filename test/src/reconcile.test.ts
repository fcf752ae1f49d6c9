import assert from "node:assert/strict";
import fc from "fast-check";
import { HORIZON, HOUR, SECOND, type Store, simulate, type World, written } from "../support/simulation.js";

const redirects = {
  "a.example/old": "a.example/new",
  "a.example/moved": "b.example/",
  "c.example/away": "d.example/there",
};
const pages = ["a.example/1", "a.example/2", "a.example/new", "b.example", "c.example/x", ...Object.keys(redirects)];

/** Two messages whose pages end at the same address may get each other's report, which nobody can tell apart. */
function check(world: World, { ends, reports }: Awaited<ReturnType<typeof simulate>>): void {
  const { stores, existing } = world;
  const given = ends.flatMap((end) => ("id" in end ? [end.id] : []));
  assert.equal(new Set(given).size, given.length, "one report for two messages");
  const urls = stores.map(({ page }) => written(world, page));
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

const anyStoreFields = {
  page: fc.constantFrom(...pages),
  after: fc.integer({ min: 0, max: 20 }),
  takes: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 0, max: 9 }) }, fc.integer({ min: 30, max: 150 })),
  responds: fc.integer({ min: 0, max: 20 }),
  fate: fc.constantFrom(
    "answered",
    "answered",
    "response lost",
    "request lost",
    "page rejected",
    "rate limited at first",
  ),
} satisfies Record<keyof Store, unknown>;
const anyStore = fc.record<Store>(anyStoreFields);
const world = fc.record<World>({
  stores: fc.oneof(
    fc.array(anyStore, { minLength: 1, maxLength: 25 }),
    fc.array(fc.record({ ...anyStoreFields, page: fc.constantFrom(...pages.slice(0, 2)) }), {
      minLength: 2,
      maxLength: 6,
    }),
  ),
  foreign: fc.array(fc.tuple(fc.integer({ min: 0, max: 600 }), fc.constantFrom(...pages, "z.example/other")), {
    maxLength: 4,
  }),
  skew: fc.constantFrom(0, HOUR / SECOND, -HOUR / SECOND),
  ids: fc.constantFrom("numbers", "texts", "mixed"),
  redirects: fc.constant(redirects),
  unsorted: fc.boolean(),
  existing: fc.array(fc.constantFrom(...pages), { maxLength: 3 }),
  failing: fc.constantFrom(0, 0.3, 1),
  horizon: fc.constant(HORIZON),
});

describe("reconciling", () => {
  it("never creates two reports for one message, and never gives one report to two", async function () {
    this.timeout(120_000);
    await fc.assert(
      fc.asyncProperty(world, async (one) => check(one, await simulate(one))),
      { numRuns: Number(process.env.RUNS ?? 500) },
    );
  });

  const quiet = { foreign: [], skew: 0, redirects: {}, unsorted: false, existing: [], failing: 0, horizon: HORIZON };

  it("repeats the deciding look if it failed", async () => {
    const store: Store = { page: "a.example/1", after: 0, takes: 70, responds: 0, fate: "answered" };
    // The third GET request fails: after the short list and one look that came too early.
    const world: World = { ...quiet, stores: [store], ids: "numbers", failing: 0.3, horizon: 72 * SECOND };
    const { ends, gets } = await simulate(world);
    assert.deepEqual([ends, gets], [[{ id: 1 }], 5]);
  });

  it("explains only one of two reports by another request that is open", async () => {
    const at = (page: string, after: number, takes: number, fate: Store["fate"]): Store => ({
      ...{ page, after, takes, fate, responds: 0 },
    });
    const stores = [
      ...[0, 11, 11, 1].map((after, i) => at("a.example/1", after, 0, i === 0 ? "rate limited at first" : "answered")),
      at("a.example/new", 19, 30, "response lost"),
      at("a.example/old", 19, 0, "response lost"),
      at("a.example/1", 0, 0, "answered"),
    ];
    const world: World = { ...quiet, stores, redirects, ids: "mixed" };
    check(world, await simulate(world));
  });

  it("tells reports of the same second apart if the IDs are not numbers", async () => {
    const store: Store = { page: "a.example/1", after: 0, takes: 0, responds: 0, fate: "response lost" };
    const { ends, reports } = await simulate({ ...quiet, stores: [store], ids: "texts", existing: ["a.example/2"] });
    assert.deepEqual([ends, reports.length], [[{ id: reports[1]?.id }], 2]);
  });
});

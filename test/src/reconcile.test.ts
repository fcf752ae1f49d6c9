import assert from "node:assert/strict";
import fc from "fast-check";
import { readAddress } from "../../src/address.js";
import type { Response } from "../../src/client.js";
import { SeoError } from "../../src/errors.js";
import { operations } from "../../src/operations.js";
import { createReconciler, type Surroundings } from "../../src/reconcile.js";
import { type Clock, createClock } from "../support/simulation.js";

const SECOND = 1000;
const HOUR = 3600 * SECOND;
/** A server in front of the service gives up after this long. */
const PROXY = 60 * SECOND;
const HORIZON = 300 * SECOND;
const EPOCH = Date.UTC(2026, 0, 1);
const STORE = operations["seo-report-store"]?.lookup as NonNullable<(typeof operations)[string]["lookup"]>;

/** What happens to one store. */
interface Store {
  page: string;
  /** Seconds after the store before. */
  after: number;
  /** Seconds until the report is created, and from then until the response is sent. */
  takes: number;
  responds: number;
  fate: "answered" | "response lost" | "request lost" | "page rejected";
}

interface World {
  stores: Store[];
  /** Reports that somebody else creates with the same account: seconds from the start, and the page. */
  foreign: [number, string][];
  /** Seconds by which the service's clock is wrong. */
  skew: number;
  ids: "numbers" | "texts";
  /** The list ignores the order that is requested. */
  unsorted: boolean;
  /** Reports from before. */
  existing: string[];
  /** The share of GET requests that fail. */
  failing: number;
  horizon: number;
}

interface Report {
  id: number | string;
  url: string;
  privacy: number;
  created_at: string;
  generated_at: string;
  /** The store that created it; undefined for somebody else's. Never sent. */
  by: number | undefined;
}

/** Pages that redirect, and where to. */
const redirects: Record<string, string> = {
  "a.example/old": "a.example/new",
  "a.example/moved": "b.example/",
  "c.example/away": "d.example/there",
};
/** What the service writes as the URL of a page's report. */
const effective = (page: string) => readAddress(redirects[page] ?? page).key;
const pages = ["a.example/1", "a.example/2", "a.example/new", "b.example", "c.example/x", ...Object.keys(redirects)];

function createService(clock: Clock, { skew, ids, failing, unsorted, existing }: World) {
  const reports: Report[] = [];
  let gets = 0;
  /** Whole seconds, as databases often keep them. */
  const date = () => new Date(Math.floor((EPOCH + clock.now()) / SECOND + skew) * SECOND);
  const respond = (body: unknown): Response => ({
    body,
    statusCode: 200,
    headers: { date: date().toUTCString() },
    attempts: 1,
    duration: 0,
    waited: 0,
  });
  function create(page: string, by?: number): Report {
    const at = date().toISOString();
    const number = reports.length + 1;
    const id = ids === "numbers" ? number : `r${(number * 7919) % 1000003}`;
    const report = { id, url: effective(page), privacy: 0, created_at: at, generated_at: at, by };
    reports.push(report);
    return report;
  }
  for (const page of existing) create(page);
  const shown = ({ by: _, ...report }: Report) => report;
  return {
    reports,
    gets: () => gets,
    respond,
    create,
    async get(type: string, input: Record<string, string>, page = 1): Promise<Response> {
      gets++;
      await clock.sleep(200);
      if ((gets * 37) % 100 < failing * 100) throw new SeoError("SEO_SERVER", "No.", { statusCode: 503 });
      if (type === "seo-report-show")
        return respond({ data: shown(reports.find(({ id }) => String(id) === input.reportId) as Report) });
      const size = Number(input.per_page);
      const sorted = unsorted ? reports : reports.toReversed();
      const data = sorted.slice((page - 1) * size, page * size).map(shown);
      return respond({ data, meta: { total: reports.length } });
    },
    shown,
  };
}

type End = { id: unknown } | { certain: true } | { uncertain: true };

/** Sends each store as the client does, and tells how each ended and what the service then has. */
async function simulate(world: World) {
  const clock = createClock();
  const service = createService(clock, world);
  const around: Surroundings = {
    now: clock.now,
    date: () => EPOCH + clock.now(),
    sleep: clock.sleep,
    async request(type, input) {
      const response = await service.get(type, input);
      reconciler.observe(response);
      return response;
    },
    async *pages(type, input) {
      for (let page = 1; ; page++) {
        const response = await service.get(type, input, page);
        reconciler.observe(response);
        const { data, meta } = response.body as { data: unknown[]; meta: { total: number } };
        yield { records: data, total: meta.total, response };
        if (page * Number(input.per_page) >= meta.total) return;
      }
    },
  };
  const reconciler = createReconciler(around);

  async function post({ page, takes, responds, fate }: Store, index: number, attempt: number): Promise<Response> {
    const rejected = fate === "page rejected";
    const lost = fate === "request lost" && attempt === 1;
    const created = clock.sleep(takes * SECOND).then(() => {
      if (rejected) throw new SeoError("SEO_SERVER", "No.", { statusCode: 500, body: {}, uncertain: true });
      return lost ? undefined : service.create(page, index);
    });
    created.catch(() => {});
    const cut = clock
      .sleep(fate === "response lost" && attempt === 1 ? Math.min(takes * SECOND + 1, PROXY) : PROXY)
      .then(() => {
        throw new SeoError("SEO_SERVER", "Timed out.", { statusCode: 504, body: "<html>", uncertain: true });
      });
    cut.catch(() => {});
    if (lost) return cut;
    if (fate === "response lost" && attempt === 1) return Promise.all([created, cut]).then(([, never]) => never);
    const report = (await Promise.race([
      created.then((report) => clock.sleep(responds * SECOND).then(() => report)),
      cut,
    ])) as Report;
    const response = service.respond({ data: service.shown(report) });
    reconciler.observe(response);
    return response;
  }

  async function store(one: Store, index: number): Promise<End> {
    const ticket = reconciler.open(STORE, { url: `https://${one.page}` });
    try {
      await ticket.ready();
      for (let attempt = 1; attempt <= 4; attempt++) {
        ticket.sending();
        try {
          const response = await post(one, index, attempt);
          ticket.succeeded(response);
          return { id: (response.body as { data: Report }).data.id };
        } catch (error) {
          const outcome = await ticket.lost(error as SeoError, world.horizon);
          if (outcome.was === "carried out") return { id: (outcome.response.body as { data: Report }).data.id };
          if (outcome.was === "undecided") return { uncertain: true };
          if (!outcome.again) return { certain: true };
        }
      }
      return { certain: true };
    } finally {
      ticket.end();
    }
  }

  let at = 0;
  const all = world.stores.map(async (one, index) => {
    at += one.after * SECOND;
    await clock.sleep(at);
    return store(one, index);
  });
  const others = world.foreign.map(async ([seconds, page]) => {
    await clock.sleep(seconds * SECOND);
    service.create(page);
  });
  const ends = await clock.run(Promise.all(all));
  await clock.run(Promise.all([...others, clock.sleep(HOUR)]));
  return { ends, reports: service.reports, gets: service.gets() };
}

/** Two messages whose pages end at the same address may get each other's report, which nobody can tell apart. */
function check({ stores, existing }: World, { ends, reports }: Awaited<ReturnType<typeof simulate>>): void {
  const given = ends.flatMap((end) => ("id" in end ? [end.id] : []));
  assert.equal(new Set(given).size, given.length, "one report for two messages");
  const urls = stores.map(({ page }) => effective(page));
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
  takes: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 9 }) }, fc.integer({ min: 30, max: 150 })),
  responds: fc.integer({ min: 0, max: 20 }),
  fate: fc.constantFrom("answered", "answered", "response lost", "request lost", "page rejected"),
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
  ids: fc.constantFrom("numbers", "texts"),
  unsorted: fc.boolean(),
  existing: fc.array(fc.constantFrom(...pages), { maxLength: 3 }),
  failing: fc.constantFrom(0, 0.3),
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
});

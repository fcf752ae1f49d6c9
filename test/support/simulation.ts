import assert from "node:assert/strict";
import { pageKey } from "../../src/address.js";
import { SeoError } from "../../src/errors.js";
import { readPages } from "../../src/lists.js";
import { type Lookup, operations } from "../../src/operations.js";
import type { Requester } from "../../src/reconcile/list.js";
import type { Time } from "../../src/reconcile/look.js";
import { createReconciler, type Reconciler } from "../../src/reconcile/reconcile.js";
import type { Response } from "../../src/responses.js";

/** Time that passes only when nothing is left to do, so that hours take milliseconds. */
function createClock() {
  let time = 0;
  const timers: { at: number; wake(): void }[] = [];
  return {
    now: () => time,
    sleep: (ms: number) =>
      new Promise<void>((wake) => {
        const at = time + ms;
        const place = timers.findLastIndex((timer) => timer.at <= at);
        timers.splice(place + 1, 0, { at, wake });
      }),
    /** Runs until `work` has ended. */
    async run<Value>(work: Promise<Value>): Promise<Value> {
      let ended = false;
      const settle = () => {
        ended = true;
      };
      work.then(settle, settle);
      for (;;) {
        for (let turn = 0; turn < 60; turn++) await Promise.resolve();
        if (ended) return work;
        const timer = timers.shift();
        if (!timer) throw new Error("Nothing happens any more, and the work has not ended.");
        if (timer.at > 24 * HOUR) throw new Error("The work does not end within a day.");
        time = timer.at;
        timer.wake();
      }
    },
  };
}

type Clock = ReturnType<typeof createClock>;

export const SECOND = 1000;
export const HOUR = 3600 * SECOND;
/** A server in front of the service gives up after this long. */
const PROXY = 60 * SECOND;
export const HORIZON = 300 * SECOND;
export const EPOCH = Date.UTC(2026, 0, 1);
const STORE = operations["seo-report-store"].lookup as Lookup;

/** The fate of one store. */
export interface Store {
  page: string;
  /** Seconds after the store before. */
  after: number;
  /** Seconds until the report is created, and from then until the response is sent. */
  takes: number;
  responds: number;
  fate: "answered" | "response lost" | "request lost" | "page rejected" | "rate limited at first" | "not saved";
}

export interface World {
  stores: Store[];
  /** Reports that somebody else creates with the same account: seconds from the start, and the page. */
  foreign: [number, string][];
  /** Seconds by which the service's clock is wrong. */
  skew: number;
  ids: "numbers" | "texts" | "mixed";
  /** Pages that redirect, and where to. */
  redirects: Record<string, string>;
  /** From which second none does any more. */
  redirectsEnd: number;
  /** The list ignores the order that is requested. */
  unsorted: boolean;
  /** If not 0, the list has only so many of the newest reports, whatever page is requested. */
  unpaged: number;
  /** From which second to which the list is empty, if a response had a report before. */
  empty: [number, number];
  /** Reports from before. */
  existing: string[];
  /** Seconds that a GET request takes. */
  latency: number;
  /** The share of GET requests that fail. */
  failing: number;
  /** From which second to which no GET request succeeds. */
  outage: [number, number];
  horizon: number;
}

/** Nobody else uses the account, and no GET request fails. */
export const quiet: Omit<World, "stores" | "ids"> = {
  ...{ foreign: [], skew: 0, redirects: {}, redirectsEnd: 1e9, unsorted: false, existing: [] },
  ...{ unpaged: 0, empty: [0, 0], latency: 0.2, failing: 0, outage: [0, 0], horizon: HORIZON },
};

interface Report {
  id: number | string;
  url: string;
  privacy: number;
  created_at: string;
  generated_at: string;
  /** The store that created it; undefined for somebody else's. Never sent. */
  by: number | undefined;
}

/** The URL that the service writes into a page's report. */
export const written = ({ redirects }: World, page: string) => pageKey(redirects[page] ?? page);

function createService(clock: Clock, world: World) {
  const { skew, ids, latency, failing, outage, unsorted, unpaged, empty, existing } = world;
  const reports: Report[] = [];
  /** When each GET request was sent, in seconds from the start. */
  const gets: number[] = [];
  let isKnown = false;
  const isWithin = ([from, to]: [number, number]) => clock.now() >= from * SECOND && clock.now() < to * SECOND;
  /** Whole seconds, as databases often keep them. */
  const date = () => new Date(Math.floor((EPOCH + clock.now()) / SECOND + skew) * SECOND);
  const respond = (body: unknown): Response => ({ body, statusCode: 200, headers: { date: date().toUTCString() } });
  function create(page: string, by?: number): Report {
    const at = date().toISOString();
    const number = reports.length + 1;
    const isText = ids === "texts" || (ids === "mixed" && number % 3 !== 0);
    const id = isText ? `r${(number * 7919) % 1000003}` : number;
    const url = clock.now() < world.redirectsEnd * SECOND ? written(world, page) : pageKey(page);
    const report = { id, url, privacy: 0, created_at: at, generated_at: at, by };
    reports.push(report);
    return report;
  }
  for (const page of existing) create(page);
  const shown = ({ by: _, ...report }: Report) => {
    isKnown = true;
    return report;
  };
  return {
    reports,
    gets,
    respond,
    create,
    async get(type: string, input: Record<string, string>, page = 1): Promise<Response> {
      const nth = gets.push(clock.now() / SECOND);
      await clock.sleep(latency * SECOND);
      if (isWithin(outage) || (nth * 37) % 100 < failing * 100)
        throw new SeoError("SEO_SERVER", "No.", { statusCode: 503 });
      if (type === "seo-report-show")
        return respond({ data: shown(reports.findLast(({ id }) => String(id) === input.reportId) as Report) });
      if (isKnown && isWithin(empty)) return respond({ data: [] });
      const size = unpaged || Number(input.per_page);
      const end = reports.length - (unpaged ? 0 : page - 1) * size;
      const newest = reports.slice(Math.max(0, end - size), Math.max(0, end)).toReversed();
      if (unpaged) return respond({ data: newest.map(shown) });
      const data = (unsorted ? reports.slice((page - 1) * size, page * size) : newest).map(shown);
      return respond({ data, meta: { total: reports.length, last_page: Math.ceil(reports.length / size) } });
    },
    shown,
  };
}

type End = { id: unknown } | { certain: true } | { uncertain: true };

/** Decides about requests whose response was lost. */
export type Rule = (requester: Requester, time: Time) => Pick<Reconciler, "track" | "observe">;

/** Sends each store as the client does. Returns how each ended, and what the service then has. */
export async function simulate(world: World, rule: Rule = createReconciler) {
  const clock = createClock();
  const service = createService(clock, world);
  const requests: Requester = {
    async request(type, input) {
      const response = await service.get(type, input);
      reconciler.observe(response);
      return response;
    },
    async *pages(type, input) {
      const get = async ({ page = "1" }: { page?: string }) => {
        const response = await service.get(type, input, Number(page));
        reconciler.observe(response);
        return response;
      };
      yield* readPages(get, input);
    },
  };
  const reconciler = rule(requests, clock);
  let lost = 0;

  async function post({ page, takes, responds, fate }: Store, index: number, attempt: number): Promise<Response> {
    if (fate === "rate limited at first" && attempt === 1)
      throw new SeoError("SEO_RATE_LIMITED", "No.", { statusCode: 429, transient: true });
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
        const error = index % 2 ? { statusCode: 504, body: {} } : { statusCode: 500, body: "<html>" };
        throw new SeoError("SEO_SERVER", "Timed out.", { ...error, uncertain: true });
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
    const ticket = reconciler.track(STORE, { url: `https://${one.page}` });
    try {
      await ticket.turn();
      await ticket.newest();
      for (let attempt = 1; attempt <= 4; attempt++) {
        const sentAt = clock.now();
        ticket.beforeAttempt();
        ticket.sent();
        if (one.fate === "not saved") {
          await clock.sleep(one.takes * SECOND);
          return { certain: true };
        }
        try {
          const response = await post(one, index, attempt);
          ticket.afterAttempt(response);
          return { id: (response.body as { data: Report }).data.id };
        } catch (error) {
          ticket.afterAttempt(error as SeoError);
          if (!(error as SeoError).details.uncertain) {
            await clock.sleep(PROXY);
            continue;
          }
          lost++;
          const outcome = await ticket.lost(error as SeoError, world.horizon);
          if (outcome.was === "carried out") {
            const { id } = (outcome.response.body as { data: Report }).data;
            assert.equal(outcome.reconciled.after, clock.now() - sentAt);
            return { id };
          }
          if (outcome.was === "undecided") {
            for (const { id } of outcome.candidates) assert.ok(service.reports.some((report) => report.id === id));
            return { uncertain: true };
          }
          if (!outcome.again) return { certain: true };
        }
      }
      return { certain: true };
    } finally {
      ticket.end();
    }
  }

  async function storeAll(): Promise<End[]> {
    const all: Promise<End>[] = [];
    for (const one of world.stores) {
      await clock.sleep(one.after * SECOND);
      all.push(store(one, all.length));
    }
    return Promise.all(all);
  }

  const others = world.foreign.map(async ([seconds, page]) => {
    await clock.sleep(seconds * SECOND);
    service.create(page);
  });
  const ends = await clock.run(storeAll());
  const endedAt = clock.now() / SECOND;
  await clock.run(Promise.all([...others, clock.sleep(HOUR)]));
  return { ends, reports: service.reports, gets: service.gets, endedAt, lost };
}

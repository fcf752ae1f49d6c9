import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { pageKey } from "../../../src/address.js";
import { type Audit, type AuditOptions, createAudit } from "../../../src/audit/audit.js";
import type { Clock } from "../../../src/audit/clock.js";
import type { Settings } from "../../../src/audit/entries.js";
import { openFiles } from "../../../src/audit/files.js";
import type { Result } from "../../../src/audit/options.js";
import type { Progress } from "../../../src/audit/progress.js";
import type { DurableOptions, DurableResponse, PageOfReports, Requests } from "../../../src/audit/requests.js";
import { readRows } from "../../../src/audit/rows.js";
import type { Shared, SharedOptions } from "../../../src/audit/shared/shared.js";
import { cancelled, SeoError } from "../../../src/errors.js";

export interface Report {
  id: number;
  url: string;
  created_at: string;
  generated_at: string;
}

/**
 * How a request of a page goes. `lost`: it is carried out, and looking for it finds it. `resent`: it is not carried out,
 * and is sent again after that was found out.
 */
type Fate = "answered" | "lost" | "resent" | SeoError;

export interface Fake {
  /** Where it is. */
  service: string;
  /** How a page's requests go; by default all are answered. */
  fate(page: string): Fate;
  /** Milliseconds that a request takes. */
  latency: number;
  /** Called before and after a request is carried out. */
  step(what: string): void | Promise<void>;
  /** Called while a lost response is looked for; then it is found. */
  look(): void | Promise<void>;
  /** Called before each page of the list. Throws if the list cannot be read. */
  beforeList(): void | Promise<void>;
  /** Throws if a report cannot be shown. */
  beforeShow(): void;
  /** Milliseconds for which the client says that no request can start. */
  wait: number;
  /** Responses arrive although they were cancelled. */
  deaf: boolean;
  /** The list ignores the order that is requested. */
  unsorted: boolean;
  /** The reports that earlier processes got, as audits told the client while they opened. */
  claimed: string[];
  /** One for each audit that opens. */
  opening: Set<object>;
}

/** The requests of one audit. */
interface Lane {
  signal: AbortSignal;
  canceled: Promise<unknown>;
  changed(): void;
  slots: ReturnType<typeof createSlots>;
}

function createSlots(count: number) {
  let free = count;
  const waiting: (() => void)[] = [];
  return {
    async take(): Promise<void> {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
    },
    give(): void {
      const next = waiting.shift();
      if (next) next();
      else free++;
    },
  };
}

export const key = (url: string) => pageKey(url);

/** A stand-in for the service and the client in front of it: it counts what is carried out. */
export function createFake(options: Partial<Fake> = {}, reports: Report[] = []) {
  const fake: Fake = {
    service: "http://one.example",
    fate: () => "answered",
    latency: 0,
    step() {},
    look() {},
    beforeList() {},
    beforeShow() {},
    wait: 0,
    deaf: false,
    unsorted: false,
    claimed: [],
    opening: new Set(),
    ...options,
  };
  const carriedOut: string[] = [];
  let inFlight = 0;
  let most = 0;
  let looking = 0;
  let listed = 0;
  const pause = () => new Promise<void>((resolve) => setTimeout(resolve, fake.latency));
  const answer = (data: Report | undefined, more = {}): DurableResponse => ({ body: { data }, attempts: 1, ...more });
  const newestId = () => reports.at(-1)?.id ?? 0;

  function carryOut(type: string, input: Record<string, string>): Report {
    const date = new Date().toISOString();
    const known = reports.find(({ id }) => String(id) === input.reportId);
    const url = known?.url ?? key(String(input.url));
    const action = type === "seo-report-store" ? "create" : "regenerate";
    carriedOut.push([action, url, input.privacy].filter(Boolean).join(" "));
    if (known) {
      known.generated_at = date;
      return known;
    }
    const report = { id: newestId() + 1, url, created_at: date, generated_at: date };
    reports.push(report);
    return report;
  }

  async function request(
    { signal, canceled, changed, slots }: Lane,
    type: string,
    input: Record<string, string>,
    options: DurableOptions = {},
  ): Promise<DurableResponse> {
    const { intent, generatedAt = intent?.generatedAt, task = {}, beforeAttempt } = options;
    /** Waits for something, unless the request is canceled meanwhile. */
    async function unlessCanceled(work: void | Promise<void>): Promise<void> {
      await (fake.deaf ? work : Promise.race([work, canceled]));
      if (signal.aborted && !fake.deaf) throw cancelled.with({ uncertain: true });
    }
    /** Looks for a lost response. */
    async function look(): Promise<void> {
      task.isLost = true;
      changed();
      looking++;
      try {
        await unlessCanceled(Promise.resolve(fake.look()).then(pause));
      } finally {
        looking--;
        task.isLost = false;
      }
    }
    if (type === "seo-report-show") {
      await pause();
      fake.beforeShow();
      const report = reports.find(({ id }) => String(id) === input.reportId);
      if (!report) throw new SeoError("SEO_NOT_FOUND", "There is no such report.", { missing: true });
      return answer(report);
    }
    const known = reports.find(({ id }) => String(id) === input.reportId);
    if (input.reportId !== undefined && !known)
      throw new SeoError("SEO_NOT_FOUND", "There is no such report.", { missing: true });
    const page = known?.url ?? key(String(input.url));
    const reconciled = { looks: 1, after: 1 };
    if (intent) {
      await look();
      const found = known
        ? known.generated_at !== intent.generatedAt
          ? known
          : undefined
        : reports.find(({ id, url }) => url === page && id > Number(intent.watermark?.rank));
      if (found) return answer(found, { reconciled });
    }
    let hasSlot = false;
    let flies = false;
    const land = () => {
      if (flies) inFlight--;
      if (hasSlot) {
        slots.give();
        changed();
      }
      flies = false;
      hasSlot = false;
    };
    async function fly(): Promise<void> {
      // Otherwise, a lost response of an update would stay uncertain.
      if (known) assert.ok(generatedAt, "It is not known when the report was generated.");
      await slots.take();
      hasSlot = true;
      changed();
      await beforeAttempt?.(known ? { generatedAt } : { watermark: { of: "id", rank: newestId(), ids: [] } });
      if (signal.aborted) throw cancelled;
      most = Math.max(most, ++inFlight);
      flies = true;
    }
    try {
      await fly();
      await fake.step(`request ${page}`);
      const fate = fake.fate(page);
      if (fate instanceof SeoError) {
        await pause();
        throw fate;
      }
      if (fate === "resent") {
        land();
        await look();
        await fly();
      }
      const report = carryOut(type, input);
      await unlessCanceled(Promise.resolve(fake.step(`carried out ${page}`)).then(pause));
      if (fate !== "lost") return answer(report);
      land();
      await look();
      return answer(report, { reconciled });
    } finally {
      land();
    }
  }

  async function* pages(_type: string, input: Record<string, string>): AsyncGenerator<PageOfReports> {
    const size = Number(input.per_page);
    const sorted = fake.unsorted
      ? reports.slice()
      : reports.toSorted((a, b) => b.generated_at.localeCompare(a.generated_at) || b.id - a.id);
    for (let first = 0; first === 0 || first < sorted.length; first += size) {
      listed++;
      await pause();
      await fake.beforeList();
      const response = { headers: { date: new Date().toUTCString() }, body: undefined };
      yield { records: sorted.slice(first, first + size), total: sorted.length, response };
    }
  }

  /** A client of the service, of which `share` requests are in flight at most. */
  function connect(changed = () => {}, share = Number.POSITIVE_INFINITY): Requests {
    const closed = new AbortController();
    const { signal } = closed;
    const canceled = new Promise((resolve) => signal.addEventListener("abort", resolve));
    const lane: Lane = { signal, canceled, changed, slots: createSlots(share) };
    const claim = (ids: readonly string[]) => fake.opening.size > 0 && fake.claimed.push(...ids);
    const announceClaims = () => {
      const one = {};
      fake.opening.add(one);
      return () => fake.opening.delete(one);
    };
    return {
      service: fake.service,
      request: (...parameters) => request(lane, ...parameters),
      pages,
      claim,
      announceClaims,
      waitingFor: () => fake.wait,
      cancel: () => closed.abort(),
    };
  }

  const counts = { most: () => most, looking: () => looking, listed: () => listed };
  return Object.assign(fake, { connect, reports, carriedOut, ...counts });
}

export type FakeService = ReturnType<typeof createFake>;

/** A list of reports that cannot be read. */
export const unreadable = (cause: SeoError) =>
  // biome-ignore lint/correctness/useYield: it fails before the first page
  async function* (): AsyncGenerator<never> {
    throw cause;
  };

/** An audit with its results, and what it told. */
export interface Bench {
  audit: Audit;
  results: Result[];
  progress: Progress[];
  errors: SeoError[];
  /** Resolves when a batch has finished, with its final progress. */
  finished(batch?: string): Promise<Progress>;
  add(pages: unknown, more?: { batch?: string } & Partial<Settings>): Promise<number>;
}

export interface BenchOptions extends Partial<AuditOptions> {
  share?: number;
  node?: string;
  /** Makes an audit that keeps its jobs elsewhere. */
  create?(options: AuditOptions): Audit;
}

export function createBench(folder: string, service: FakeService, options: BenchOptions = {}): Bench {
  const { share = 3, node = "node", progress: tell, create = createAudit, ...rest } = options;
  const results: Result[] = [];
  const progress: Progress[] = [];
  const errors: SeoError[] = [];
  const waiting = new Set<() => void>();
  const audit = create({
    open: (lost) => openFiles(folder, node, lost),
    connect: (changed) => service.connect(changed, share),
    share,
    result: (result) => results.push(result),
    progress(now, all) {
      progress.push(now);
      tell?.(now, all);
      for (const check of waiting) check();
    },
    failed: (error) => errors.push(error),
    ...rest,
  });
  return {
    audit,
    results,
    progress,
    errors,
    finished: (batch = "default") =>
      new Promise((resolve) => {
        const check = () => {
          const last = progress.findLast((one) => one.batch === batch && one.finished);
          if (!last) return;
          waiting.delete(check);
          resolve(last);
        };
        waiting.add(check);
        check();
      }),
    add: (pages, { batch = "default", existing = "create", ...settings } = {}) =>
      audit.add({ batch, settings: { existing, ...settings }, rows: readRows(pages, "msg.payload") }),
  };
}

/** Makes an audit in a queue. Its progress is also that of the machine that leads. */
export const inQueue =
  (shared: Shared, more: Partial<SharedOptions> = {}) =>
  (options: AuditOptions): Audit =>
    shared.createAudit({
      node: "node",
      service: "service",
      standBy(all, due) {
        for (const one of due) options.progress(one, all);
      },
      ...options,
      ...more,
    });

export const urls = (count: number, from = 1) =>
  Array.from({ length: count }, (_, index) => `https://example.org/page/${from + index}`);

/** An object of which something is changed. */
export const vary = <Target extends object>(target: Target, changes: Partial<Target>): Target =>
  new Proxy(target, {
    get(_, name) {
      const value = Reflect.get(name in changes ? changes : target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });

/** The names of the batches in a node's folder. */
export const batchesIn = (folder: string) => readdirSync(folder).filter((name) => !name.startsWith("lock-"));

/** A clock whose hours a test lets pass. */
export function createManualClock(): Clock & { pass(ms: number): void; timers(): number } {
  let time = 0;
  const timers = new Set<{ at: number; run(): void }>();
  return {
    now: () => time,
    timers: () => timers.size,
    later(ms, run) {
      const timer = { at: time + ms, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    pass(ms) {
      const end = time + ms;
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
        if (!next) break;
        timers.delete(next);
        time = next.at;
        next.run();
      }
      time = end;
    },
  };
}

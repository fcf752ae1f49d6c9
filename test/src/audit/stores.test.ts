import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { openFiles } from "../../../src/audit/files.js";
import type { Progress } from "../../../src/audit/progress.js";
import { requestsOf } from "../../../src/audit/requests.js";
import { lastEntry, openLog } from "../../../src/audit/shared/log.js";
import { connect, type Queue } from "../../../src/audit/shared/server.js";
import { createShared } from "../../../src/audit/shared/shared.js";
import { createClient } from "../../../src/client.js";
import { SeoError } from "../../../src/errors.js";
import { type Asked, startAccount } from "../../support/account.js";
import { closeAfterEach, openFolder } from "../../support/opened.js";
import { engines, LEASE, type Server, startServer } from "../../support/servers.js";
import { until } from "../../support/time.js";
import {
  type Bench,
  type BenchOptions,
  createBench,
  createFake,
  createManualClock,
  type FakeService,
  inQueue,
  unreadable,
  urls,
} from "./fake.js";
import { createMemory } from "./memory.js";

/** A place where jobs are kept: what opens it, as often as there are machines. */
interface Kept {
  machines: number;
  keep(): Pick<BenchOptions, "open" | "create">;
  close(): unknown;
}

/** A queue: what connects to it, and removes all that it has, unless that is in PostgreSQL. */
interface Queued extends Kept {
  connected(): ReturnType<typeof connect>;
  empty(): unknown;
}

function inFiles(): Kept {
  const { path, close } = openFolder();
  return { machines: 1, keep: () => ({ open: (lost) => openFiles(path, "node", lost) }), close };
}

function inMemory(): Queued {
  const memory = createMemory();
  const keep = () => ({ create: memory.auditing(LEASE) });
  const empty = () => {
    for (const jobs of memory.queues.values()) jobs.clear();
  };
  return { machines: 2, keep, connected: async () => memory.connect(), empty, close() {} };
}

const onServer = (server: () => Server) => (): Queued => {
  const { url } = server();
  const place = { url, prefix: `p${randomBytes(4).toString("hex")}` };
  const keep = () => ({ create: inQueue(createShared(place, { lease: LEASE, patience: PATIENCE })) });
  async function empty() {
    const redis = new Redis(url);
    await redis.flushall();
    await redis.quit();
  }
  return { machines: 2, keep, connected: () => connect(place), empty, close() {} };
};

const addLine = (lineBy: (holder: string) => string) => async (jobs: Queue, id: string) => {
  const { logs } = await jobs.getJobLogs(id, 0, 0, true);
  await jobs.getBackend().addLog(id, lineBy(JSON.parse(logs[0] ?? "").took));
};
const isDamaged =
  /^SEO_INPUT The batch "default" cannot continue: its log in the queue is damaged \(.*\)\. Use msg\.reset\.$/;
const strangeLine = (by: string) => JSON.stringify({ by, n: 99, entries: [{ strange: true }] });
/** What is done to a batch in a queue, and the error that reports it. */
const damages: Record<string, [damage: (jobs: Queue, id: string) => Promise<unknown>, error: RegExp]> = {
  "whose log has a line that is cut off": [addLine(() => "{"), isDamaged],
  "whose log has a line that is no object": [addLine(() => "null"), isDamaged],
  "whose log has a line that is strange": [addLine(strangeLine), isDamaged],
  "of another version of the package": [
    async (jobs, id) => {
      const job = await jobs.getJob(id);
      await job?.updateData({ ...Object(job.data), format: 99 });
    },
    /^SEO_CONFIG The batch "default" is of another version of this package: update it on all machines\.$/,
  ],
};

/** Loses the first request for a page. */
const losing =
  (page: string) =>
  ({ form, nth }: Asked) =>
    form.get("url") === page && nth === 1 ? "cut, not carried out" : "answered";

/** Milliseconds for which a message waits. */
const PATIENCE = 10_000;
const QUARTER = 15 * 60_000;
const refused = new SeoError("SEO_FORBIDDEN", "No.", { statusCode: 403, attempts: 1 });
const unauthorized = new SeoError("SEO_UNAUTHORIZED", "No.", { statusCode: 401, attempts: 1 });

function contract(name: string, open: () => Kept): void {
  describe(`An audit whose jobs are kept ${name}`, () => {
    let kept: Kept;
    let benches: Bench[];
    const use = closeAfterEach();

    beforeEach(async () => {
      kept = await use(open());
      benches = [];
    });

    function bench(service: FakeService, options: BenchOptions = {}): Bench {
      const one = createBench("", service, { ...kept.keep(), ...options });
      void use(one.audit);
      benches.push(one);
      return one;
    }
    /** An audit that requests the account with a client of its own, as in another process. */
    async function requesting(baseUrl: string, reconcile: string, share = 3): Promise<Bench> {
      const client = await use(createClient({ baseUrl, apiKey: "key", concurrency: String(share), reconcile }));
      return bench(createFake(), { share, connect: (changed) => requestsOf(client, share, changed) });
    }
    /** Audits on all machines; the first and the last of them can be the same. */
    function machines(service: FakeService, options: BenchOptions = {}): [Bench, Bench] {
      for (let number = 0; number < kept.machines; number++) bench(service, options);
      return [benches[0] as Bench, benches.at(-1) as Bench];
    }
    const results = () => benches.flatMap((one) => one.results);
    const finals = () => benches.flatMap((one) => one.progress).filter(({ finished }) => finished);
    /** The final progress, on whichever machine leads: on a busy one, the lock can pass on. */
    const ended = () => until(() => finals().length > 0).then(() => finals()[0] as Progress);

    it("requests each page once, and sends a result for each row", async () => {
      const service = createFake({ latency: 30 });
      const [first, last] = machines(service);
      const pages = [...urls(30), "example.org/page/3", "no page", { url: "example.org/page/4", Password: "secret" }];
      await Promise.all([first.add(pages), last === first ? undefined : last.add(pages)]);
      await Promise.all(benches.map((one) => one.finished()));
      assert.equal(service.carriedOut.length, 30);
      const indexes = results().map(({ index }) => index);
      indexes.sort((a, b) => a - b);
      assert.deepEqual(indexes, [...pages.keys()]);
      const { perMinute: _, ...end } = finals()[0] as Progress;
      const counts = { total: 33, done: 33, created: 32, regenerated: 0, fresh: 0, failed: 1, uncertain: 0 };
      const left = { invalid: 1, waiting: 0, reconciling: 0, dropped: 0, secondsLeft: 0 };
      assert.deepEqual(end, { batch: "default", ...counts, ...left, paused: false, finished: true });
      assert.equal(finals().length, kept.machines);
      assert.ok(!JSON.stringify(results()).includes("secret"));
    });

    it("begins a new round after a batch has finished", async () => {
      const service = createFake();
      const [first] = machines(service);
      await first.add(urls(3));
      await first.finished();
      first.progress.length = 0;
      await first.add(urls(3));
      await first.finished();
      assert.equal(service.carriedOut.length, 6);
    });

    it("pauses and resumes on any machine", async () => {
      const service = createFake({ latency: 20 });
      const [first, last] = machines(service, { share: 1 });
      await first.add(urls(60));
      await until(() => results().length > 3);
      await last.audit.pause();
      const texts = () => benches.map(({ progress }) => progress.at(-1)?.paused);
      await until(() => texts().every((text) => text === "Paused."));
      await sleep(700);
      const before = service.carriedOut.length;
      await sleep(300);
      assert.equal(service.carriedOut.length, before);
      assert.ok(before < 60);
      await first.audit.resume();
      await ended();
      assert.equal(service.carriedOut.length, 60);
    });

    it("stops after five failures in a row, and continues if a probe succeeds", async () => {
      const clock = createManualClock();
      let refuses = true;
      const service = createFake({ latency: 1, fate: () => (refuses ? unauthorized : "answered") });
      const [first] = machines(service, { clock, share: 1 });
      await first.add(urls(30));
      await until(() => benches.every(({ errors }) => errors.length === 1));
      assert.match(benches[0]?.errors[0]?.message ?? "", /^The batch "default" is paused: \d+ requests/);
      assert.equal(results().length, 0);
      await sleep(700);
      assert.equal(service.carriedOut.length, 0);
      refuses = false;
      clock.pass(QUARTER);
      const { failed, created } = await ended();
      assert.deepEqual([failed, created], [0, 30]);
      assert.ok(benches.every(({ errors }) => errors.length === 1));
    });

    it("reports each time that a batch stops", async () => {
      const clock = createManualClock();
      let most = 0;
      const fate = () => (service.carriedOut.length < most ? "answered" : unauthorized);
      const service: FakeService = createFake({ fate });
      const { add, errors } = bench(service, { clock, share: 1 });
      await add(urls(20));
      for (const stops of [1, 2]) {
        await until(() => errors.length === stops);
        most += 10;
        await until(() => {
          clock.pass(QUARTER);
          return service.carriedOut.length === most;
        });
      }
      assert.equal((await ended()).created, 20);
      assert.equal(errors.length, 2);
    });

    it("requests failed pages again, also of a batch that has finished, and that another process continues", async () => {
      // The character ends a line in some readers of lines, but not in JSON.
      const batch = "spring \u2028 summer";
      const bad = new SeoError("SEO_REJECTED", "No.", { attempts: 1 });
      let fails = true;
      // Machines that stand by see a retry before it ends: two ends with the same figures are one to them.
      const service = createFake({ latency: 400, fate: (page) => (fails && page.endsWith("2") ? bad : "answered") });
      const [first] = machines(service);
      await first.add(urls(4), { batch });
      assert.equal((await first.finished(batch)).failed, 1);
      await Promise.all(benches.map(({ audit }) => audit.close()));
      const [next] = machines(service).slice(-1) as [Bench];
      for (const failed of [1, 0]) {
        fails = failed > 0;
        // Also the machines that stand by have seen the last end.
        await sleep(500);
        for (const { progress } of benches) progress.length = 0;
        assert.equal(await next.audit.retry(batch), 1);
        const end = await next.finished(batch);
        assert.deepEqual([end.failed, end.created], [failed, 4 - failed]);
      }
      assert.deepEqual([results().length, results().filter(({ repeated }) => repeated)], [6, []]);
      assert.equal(service.carriedOut.length, 4);
    });

    it("drops waiting pages at a reset, and starts the same list over", async () => {
      const [first, last] = machines(createFake({ latency: 20 }), { share: 1 });
      await first.add(urls(40));
      await until(() => results().length > 3);
      assert.equal(await last.audit.reset(), 1);
      const { done, dropped, total } = await first.finished();
      assert.equal(done + dropped, total);
      assert.ok(dropped > 10);
      assert.equal(results().length, done);
      first.progress.length = 0;
      await first.add(urls(3));
      assert.equal((await first.finished()).total, 3);
    });

    it("continues after a restart, and repeats at most the results in flight", async () => {
      const service = createFake({ latency: 5 });
      const [first] = machines(service);
      await first.add(urls(60));
      await until(() => results().length > 10);
      await Promise.all(benches.map(({ audit }) => audit.close()));
      await bench(service).finished();
      assert.equal(service.carriedOut.length, 60);
      assert.equal(new Set(results().map(({ index }) => index)).size, 60);
      for (const { index } of results())
        assert.ok(results().filter((one) => one.index === index && !one.repeated).length <= 1, String(index));
    });

    it("explains 2,100 newer reports after a restart, so that no page stays uncertain", async () => {
      const [lost = "", ...others] = urls(2101);
      const account = await use(startAccount({ fate: losing(lost) }));
      const { audit, add } = await requesting(account.url, "300", 32);
      await add([lost, ...others]);
      await until(() => results().length === others.length);
      await audit.close();
      const { created, uncertain } = await (await requesting(account.url, "1", 32)).finished();
      assert.deepEqual([created, uncertain, account.reports.length], [2101, 0, 2101]);
    });

    it("decides about a lost request in time, however often its processes restart", async function () {
      if (process.platform !== "linux") this.skip();
      const [lost = "", other = ""] = urls(2);
      const account = await use(startAccount({ fate: losing(lost) }));
      let { audit, add } = await requesting(account.url, "3");
      await add([lost, other]);
      await until(() => account.count("POST") === 2);
      let lives = 1;
      for (; account.count("POST") === 2 && lives < 30; lives++) {
        await audit.close();
        ({ audit } = await requesting(account.url, "3"));
        await audit.progress();
        // Each is shorter than the horizon. A busy machine needs longer ones.
        await sleep(Math.min(200 + 100 * lives, 2000));
      }
      assert.ok(lives < 30);
      await ended();
      assert.equal(account.reports.length, 2);
    });

    it("leaves a list's plan to another one if a machine or process cannot make it", async () => {
      const service = createFake();
      const bad = bench(service, { connect: () => ({ ...service.connect(), pages: unreadable(refused) }) });
      await bad.add(urls(3), { existing: "regenerate" });
      await until(() => bad.errors.length > 0);
      if (kept.machines === 1) await bad.audit.close();
      assert.equal((await bench(service).finished()).created, 3);
    });

    it("has the same pace on all machines", async () => {
      const clock = createManualClock();
      const service = createFake({ latency: 100 });
      const [first] = machines(service, { clock });
      await first.add(urls(400));
      await until(() => service.carriedOut.length >= 40);
      clock.pass(60_000);
      const { length } = service.carriedOut;
      for (const { audit } of benches)
        await until(async () => {
          const [progress] = await audit.progress();
          // Some are in flight, or not published yet.
          return Number(progress?.perMinute ?? 0) >= (length * 3) / 4;
        });
    });

    it("retries failed pages at the moment at which their batch ends", async () => {
      const service = createFake({ fate: () => (again ? "answered" : refused) });
      let again: Promise<number> | undefined;
      const one = bench(service, {
        progress({ finished }) {
          if (finished) again ??= one.audit.retry();
        },
      });
      await one.add(urls(1));
      await until(() => one.results.length === 2);
      assert.deepEqual([one.results.map(({ outcome }) => outcome), await again], [["failed", "created"], 1]);
    });

    it("finishes a batch that is paused and resumed at the moment at which it ends", async () => {
      let paused: Promise<number> | undefined;
      const one = bench(createFake(), {
        result() {
          paused = one.audit.pause();
        },
      });
      await one.add(urls(1));
      await until(() => paused !== undefined);
      await paused;
      await one.audit.resume();
      await one.finished();
    });
  });
}

contract("in files", inFiles);
for (const engine of [undefined, ...engines])
  describe(engine ? `on ${engine}` : "in memory", () => {
    let server: Server;
    const open = engine ? onServer(() => server) : inMemory;
    before(async function () {
      if (engine) server = (await startServer(engine)) ?? this.skip();
    });
    after(() => server?.close());
    const use = closeAfterEach();
    contract(engine ? `on ${engine}` : "in memory", open);

    it("reads the last entry of a log, whoever has taken it over since", async () => {
      const { queue, close } = await open().connected();
      const jobs = queue("service");
      await jobs.add("job", {}, { jobId: "one" });
      const opened = await openLog<number>(jobs, "one", async () => undefined);
      for (let entry = 0; entry < 30; entry++) await opened?.log.add(entry);
      await openLog(jobs, "one", async () => undefined);
      const last = await lastEntry(jobs, "one");
      await close();
      assert.equal(last, 29);
    });

    for (const [what, [damage, error]] of Object.entries(damages))
      it(`stops only the batch ${what}, until it is reset`, async () => {
        const { keep, connected } = open();
        const first = createBench("", createFake({ latency: 50 }), keep());
        await first.add(urls(40));
        await until(() => first.results.length > 0);
        await first.audit.close();
        const { queue, close } = await connected();
        const [id = ""] = await queue("service").getRanges(["wait"], 0, -1, true);
        await damage(queue("service"), id);
        await close();
        const told = ({ code, message }: SeoError) => error.test(`${code} ${message}`);
        const second = createBench("", createFake(), keep());
        void use(second.audit);
        await assert.rejects(second.add(urls(1)), told);
        assert.deepEqual(second.errors.map(told), [true]);
        await second.add(urls(2), { batch: "other" });
        await second.finished("other");
        assert.equal(second.results.length, 2);
        assert.deepEqual([await second.audit.reset("none"), await second.audit.reset("default")], [0, 1]);
        assert.equal(await second.add(urls(2)), 2);
        await second.finished();
      });

    if (engine !== "PostgreSQL")
      it("says which lists were lost with the server's data, and accepts lists again", async () => {
        const clock = createManualClock();
        const { keep, empty } = open();
        const service = createFake({ latency: 100 });
        const { add, audit, errors, finished } = createBench("", service, { ...keep(), clock });
        void use(audit);
        await add(["no page"], { batch: "finished" });
        await finished("finished");
        const other = createBench("", service, { ...keep(), clock });
        void use(other.audit);
        for (let n = 1; n <= 7; n++) await add(urls(100), { batch: `batch ${n}` });
        await until(() => other.audit.latest().length === 8);
        await empty();
        const lists = '"batch 1", "batch 2", "batch 3", "batch 4", "batch 5", 2 more';
        const message = `The queue's server has lost data: send the unfinished lists (${lists}) again in a minute, with “Regenerate it” and a Maximum age.`;
        await until(() => errors.length > 0 && other.errors.length > 0);
        await assert.rejects(add(urls(1)), { code: "SEO_NETWORK", message });
        assert.deepEqual([audit.latest().at(-1)?.reason, other.audit.latest().at(-1)?.reason], ["emptied", "emptied"]);
        await until(() => {
          clock.pass(60_000);
          return add(urls(3)).catch(() => 0);
        });
        assert.equal((await finished()).created, 3);
        const sentences = errors.map((error) => error.message);
        assert.deepEqual(sentences, [message]);
      });
  });

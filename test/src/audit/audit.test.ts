import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Batch, Store } from "../../../src/audit/batch.js";
import type { Entry } from "../../../src/audit/entries.js";
import { openFiles } from "../../../src/audit/files.js";
import type { PageOfReports, Requests } from "../../../src/audit/requests.js";
import { Trouble } from "../../../src/audit/trouble.js";
import { cancelled, SeoError } from "../../../src/errors.js";
import { decide, type Existing } from "../../../src/existing.js";
import { deferred } from "../../../src/turns.js";
import { closeAfterEach, openFolder } from "../../support/opened.js";
import { until } from "../../support/time.js";
import {
  type BenchOptions,
  batchesIn,
  createBench,
  createFake,
  createManualClock,
  type FakeService,
  unreadable,
  urls,
  vary,
} from "./fake.js";

const IN_A_ROW = 5;
const QUARTER = 15 * 60_000;
/** Milliseconds after which a result counts as delivered. */
const DELIVERY = 50;

type Lost = (error: SeoError) => void;

const refused = new SeoError("SEO_UNAUTHORIZED", "The service rejected the API key (401).", { attempts: 1 });
const rejected = new SeoError("SEO_REJECTED", "The service rejected the request (422).", { attempts: 1 });
const noSpace = new Trouble("disk", "The disk is full.");

/** Opens files of which something is changed. */
const changedFiles = (folder: string, change: (store: Store) => Partial<Store>) => async (lost: Lost) => {
  const store = await openFiles(folder, "node", lost);
  return vary(store, change(store));
};

/** Opens files, and writes the entries of new batches in another way. */
const filesWith = (folder: string, write: (entry: Entry, save: () => Promise<void>) => Promise<void>) =>
  changedFiles(folder, (store) => ({
    async create(...parameters) {
      const batch = await store.create(...parameters);
      const save = batch.write.bind(batch);
      batch.write = (entry) => write(entry, () => save(entry));
      return batch;
    },
  }));

const numberOf = (page: string) => Number(page.split("/").at(-1));

/** The report of a page, some days old. */
function reportOf(page: number, age = 0) {
  const date = new Date(Date.now() - age * 86_400_000).toISOString();
  return { id: page, url: `example.org/page/${page}`, created_at: date, generated_at: date };
}

const reportsOf = (count: number) => urls(count).map((url) => reportOf(numberOf(url)));

/** A service that fails each request until that is changed. */
function createRefusing(error: SeoError) {
  const state = { refuses: true, requests: 0 };
  const fate = () => (++service.requests && service.refuses ? error : "answered");
  const service: ReturnType<typeof createFake> & typeof state = Object.assign(createFake({ fate }), state);
  return service;
}

describe("an audit", () => {
  let folder: string;
  const use = closeAfterEach();

  /** An audit in the test's folder, and the clock whose time the test lets pass. */
  function open(service: FakeService, options: BenchOptions = {}) {
    const clock = createManualClock();
    const bench = createBench(folder, service, { clock, ...options });
    void use(bench.audit);
    /** How many pages were created, how many have failed, and the number of errors, once the batch has finished. */
    const end = async () => {
      const { created, failed } = await bench.finished();
      return [created, failed, bench.errors.length];
    };
    return { ...bench, clock, end };
  }
  /** An audit with a list of so many pages. */
  async function begin(service: FakeService, pages: number, options: BenchOptions & { existing?: Existing } = {}) {
    const { existing = "create", ...more } = options;
    const bench = open(service, more);
    await bench.add(urls(pages), { existing });
    return bench;
  }
  const FINISHED = '{"type":"finished"}\n';
  const journal = (name: string) => join(folder, `node/${name}.jsonl`);
  const hasFinished = (name: string) => readFileSync(journal(name), "utf8").endsWith(FINISHED);
  /** Lets quarters of an hour pass until something holds: what waits for them may not have begun to wait. */
  const passUntil = (clock: ReturnType<typeof createManualClock>, holds: () => boolean) =>
    until(() => {
      clock.pass(QUARTER);
      return holds();
    });

  /** An audit with a list of so many pages, one at a time unless `options` say otherwise, that has reported an error. */
  async function openPaused(service: FakeService, pages: number, options: BenchOptions = {}) {
    const bench = await begin(service, pages, { share: 1, ...options });
    await until(() => bench.errors.length === 1);
    return bench;
  }

  /** An audit with a list of so many pages that looks for a lost response, until that is found. */
  async function openLooking(pages: number) {
    const { promise, resolve: find } = deferred();
    const service = createFake({ fate: () => "resent", look: () => promise });
    const bench = await begin(service, pages, { share: 1 });
    await until(() => service.looking() > 0);
    return { ...bench, service, find };
  }

  beforeEach(async () => {
    folder = (await use(openFolder())).path;
  });

  it("reports thousands of invalid rows some at a time", async () => {
    let [most, now] = [0, 0];
    const count = () => {
      most = Math.max(most, now);
      now = 0;
    };
    const result = () => void (now++ === 0 && setImmediate(count));
    const { add, finished, progress } = open(createFake(), { result });
    await add(Array.from({ length: 1000 }, (_, row) => `no page: ${row}`));
    assert.equal((await finished()).failed, 1000);
    for (const { invalid, failed } of progress) assert.ok(invalid <= failed);
    assert.ok(most > 0 && most <= 100, String(most));
  });

  it("continues with the same list, although it has rows that cannot be saved", async () => {
    const added = deferred();
    const { add, finished, results } = open(createFake({ step: () => added.promise }));
    const rows = [...urls(2), null, { url: 5n }, "no page", "no page ".repeat(500)];
    await add(rows);
    assert.equal(await add(rows), 0);
    added.resolve();
    assert.equal((await finished()).failed, 4);
    const errorOf = (row: number) => results.find(({ index }) => index === row)?.error?.message;
    assert.match(`${errorOf(2)} ${errorOf(3)}`, /^url is required; .* is blank\. The row cannot be saved: .*\.$/);
  });

  it("requests pages that are added at the moment at which their batch ends", async () => {
    async function addLate(ticks: number): Promise<void> {
      const inputs: unknown[] = [];
      const result = ({ input }: { input: unknown }) => inputs.push(input) === 1 && void addOnce();
      const { add } = open(createFake(), { node: `node${ticks}`, result });
      async function addOnce(): Promise<void> {
        for (let tick = 0; tick < ticks; tick++) await null;
        await add(["late.example"]);
      }
      await add(["early.example"]);
      await Promise.race([until(() => inputs.length > 1), sleep(120_000, undefined, { ref: false })]);
      assert.deepEqual(inputs, ["early.example", "late.example"], `after ${ticks} ticks`);
    }
    await Promise.all(Array.from({ length: 40 }, (_, ticks) => addLate(ticks)));
  });

  it("replaces a batch that has failed by a list that is added at the moment at which it ends", async () => {
    let added: Promise<number> | undefined;
    const first = open(createFake({ fate: () => rejected }), {
      progress({ finished }) {
        if (finished) added ??= first.add(["late.example"]);
      },
    });
    await first.add(["early.example"]);
    await until(() => added !== undefined);
    await added;
    await until(() => first.results.length === 2);
    assert.equal(await first.audit.retry(), 1);
  });

  it("works through the oldest batch first, with at most its share in flight", async () => {
    const service = createFake({ latency: 5, fate: (page) => (page.endsWith("5") ? "lost" : "answered") });
    const { add, finished, results, progress, clock } = open(service, { share: 2 });
    await add(urls(30), { batch: "first" });
    await add(urls(10, 100), { batch: "second" });
    await until(() => results.length > 5);
    clock.pass(5000);
    await until(() => results.length > 10);
    // No progress is sent of a batch that only waits.
    assert.equal(progress.filter(({ batch }) => batch === "second").length, 1);
    await finished("second");
    assert.equal(service.most(), 2);
    const order = results.map(({ batch }) => batch);
    assert.ok(order.indexOf("second") > 25, order.join());
    assert.equal(results.length, 40);
    assert.equal(results.filter(({ reconciled }) => reconciled).length, 4);
  });

  describe("with existing reports", () => {
    const day = (age: number) => new Date(Date.now() - (age + 0.5) * 86_400_000).toISOString();
    const reports = () =>
      Array.from({ length: 250 }, (_, index) => ({
        id: index + 1,
        url: `example.org/page/${(index % 200) + 1}`,
        created_at: day(400),
        generated_at: day((index * 7) % 250),
      }));

    for (const [existing, maxAge, unsorted = false] of [
      ["create", undefined],
      ["return", undefined],
      ["return", 150],
      ["regenerate", undefined],
      ["regenerate", 30],
      ["regenerate", undefined, true],
      ["return", 30, true],
      ["return", undefined, true],
    ] as const)
      it(`plans ${existing} with a maximum age of ${maxAge}${unsorted ? ", if the list is not sorted" : ""}`, async () => {
        const known = reports();
        const service = createFake({ unsorted }, structuredClone(known));
        const { add, finished, results } = open(service);
        await add(urls(220), { existing, ...(maxAge !== undefined && { maxAge }) });
        await finished();
        for (const { index, outcome, record } of results) {
          const own = known.filter(({ url }) => url === `example.org/page/${index + 1}`);
          const newest = own.sort((a, b) => b.generated_at.localeCompare(a.generated_at))[0];
          const expected = decide(existing, maxAge, newest, Date.now());
          assert.equal(outcome, expected, `${index} ${newest?.generated_at}`);
          if (expected !== "created") assert.equal((record as { id: number }).id, newest?.id);
        }
        assert.equal(results.length, 220);
        if (!unsorted)
          assert.equal(service.listed(), existing === "create" ? 0 : existing === "return" && maxAge ? 2 : 3);
      });
  });

  describe("of an account that cannot be used", () => {
    const refuse = () => {
      throw refused;
    };
    for (const error of [refused, rejected])
      it(`pauses after five failures in a row, and sends one probe at a time: ${error.code}`, async () => {
        const service = createRefusing(error);
        const { errors, results: ended, progress: sent, audit, end, clock } = await begin(service, 20);
        await until(() => errors.length === 1 && (error !== rejected || ended.length === service.requests));
        await sleep(50);
        // Pages that wait again, as each probe does, have no result.
        const before = service.requests;
        const results = error === rejected ? before : 0;
        assert.ok(before >= IN_A_ROW && before <= IN_A_ROW + 2, String(before));
        const [progress] = await audit.progress();
        assert.equal(sent.at(-1)?.paused, progress?.paused);
        const sentence = `The batch "default" is paused: ${before} requests in a row failed. ${error.message} It continues within 15 minutes of the repair, or at msg.resume.`;
        const more = error === rejected ? " If no page waits by then, send msg.retry." : "";
        assert.equal(progress?.paused, sentence + more);
        assert.deepEqual([progress?.waiting, progress?.failed], [20 - results, results]);
        assert.equal(errors[0]?.code, error.code);
        const pause = error === rejected ? 60_000 : QUARTER;
        clock.pass(pause - 1);
        await sleep(20);
        assert.equal(service.requests, before);
        clock.pass(1);
        await until(() => service.requests > before);
        await sleep(20);
        const [probed] = await audit.progress();
        assert.deepEqual([probed?.failed, probed?.paused, errors.length], [results, progress?.paused, 1]);
        service.latency = 300;
        await passUntil(clock, () => service.requests === before + 2);
        // Once this probe has failed, another one is sent.
        for (let times = 0; times < 3; times++) await audit.resume("default");
        assert.equal(service.requests, before + 2);
        const probes = error === rejected ? 4 : 3;
        await until(() => service.requests === before + probes);
        await sleep(400);
        assert.equal(service.requests, before + probes);
        service.refuses = false;
        await audit[error === rejected ? "retry" : "resume"]("default");
        assert.deepEqual(await end(), [20, 0, 1]);
        assert.equal(service.carriedOut.length, new Set(service.carriedOut).size);
      });

    it("counts no failure of a request that began before a success", async () => {
      let later = 0;
      const begun = new Set<number>();
      const together = deferred();
      const service = createFake({
        fate: (page) => (numberOf(page) === 4 || (numberOf(page) > 4 && ++later > 5) ? "answered" : rejected),
        async step(what) {
          begun.add(numberOf(what));
          if (numberOf(what) < 4) await until(() => results.length > 0);
          // Those in flight fail at the same moment, or checks would fail before them.
          if (numberOf(what) > 4) await together.promise;
        },
      });
      const { add, errors, finished, results } = open(service, { share: 4 });
      await add(urls(16));
      await until(() => results.length > 3 && begun.has(8));
      together.resolve();
      assert.deepEqual([(await finished()).failed, errors.length], [8, 0]);
    });

    it("stays paused if a request succeeds that began before the failures", async () => {
      const slow = deferred();
      const step = (what: string) => (what.endsWith("/1") ? slow.promise : undefined);
      const service = createFake({ fate: (page) => (numberOf(page) === 1 ? "answered" : refused), step });
      const { audit, errors } = await openPaused(service, 40, { share: 4 });
      slow.resolve();
      await until(() => service.carriedOut.length === 1);
      await sleep(100);
      const [{ paused, created } = {}] = await audit.progress();
      assert.deepEqual([Boolean(paused), created, errors.length], [true, 1, 1]);
    });

    it("sends one probe at a time if a request fails that began before the pause", async () => {
      const slow = deferred();
      const probe = deferred();
      const sent: number[] = [];
      const waits: Record<number, Promise<void>> = { 1: slow.promise, [IN_A_ROW + 2]: probe.promise };
      const service = createFake({ fate: () => refused, step: (what) => waits[sent.push(numberOf(what))] });
      const { audit } = await openPaused(service, 40, { share: 2 });
      await audit.resume();
      await until(() => sent.length === IN_A_ROW + 2);
      slow.resolve();
      await sleep(50);
      await audit.resume();
      await sleep(50);
      assert.equal(sent.length, IN_A_ROW + 2);
      probe.resolve();
    });

    for (const [error, times] of [
      [rejected, 1],
      [refused, 2],
    ] as const)
      it(`requests pages that failed with ${error.code} ${times === 1 ? "once" : "once more, behind all others"}`, async () => {
        const requests: number[] = [];
        const broken = () => requests.slice(0, IN_A_ROW);
        const isBroken = (page: number) => requests.push(page) > 0 && broken().includes(page);
        const service = createFake({ fate: (page) => (isBroken(numberOf(page)) ? error : "answered") });
        const { end, clock } = await openPaused(service, 8);
        clock.pass(QUARTER);
        assert.deepEqual(await end(), [3, IN_A_ROW, 1]);
        assert.deepEqual(new Set(requests.slice(0, 8)).size, 8);
        assert.deepEqual(requests.slice(8), times === 2 ? broken() : []);
      });

    for (const code of ["SEO_REJECTED", "SEO_SERVER"] as const)
      it(`does not pause because of ${code} of neighbors, however many, and in whichever order responses come`, async () => {
        const [first, last] = [20, 60];
        const isBroken = (page: string) => numberOf(page) > first && numberOf(page) <= last;
        const no = new SeoError(code, "No.", { attempts: 1 });
        const service = createFake({ fate: (page) => (isBroken(page) ? no : "answered"), latency: 1 });
        const { end } = await begin(service, 2000, { share: 8 });
        assert.deepEqual(await end(), [1960, last - first, 0]);
      });

    for (const code of ["SEO_NETWORK", "SEO_SERVER"] as const)
      it(`does not request a page again by itself, nor others soon, if its request may have taken effect: ${code}`, async () => {
        const requests: string[] = [];
        const lost = new SeoError(code, "The response was lost.", { attempts: 1, uncertain: true });
        const service = createFake({ fate: (page) => (requests.push(page) > IN_A_ROW ? "answered" : lost) });
        const { finished, clock } = await openPaused(service, 20);
        clock.pass(QUARTER - 1);
        await sleep(20);
        assert.equal(requests.length, IN_A_ROW);
        clock.pass(1);
        const { created, uncertain } = await finished();
        assert.deepEqual([created, uncertain, requests.length], [15, 5, 20]);
      });

    it("probes soon only after a rejected page", async () => {
      const requests: string[] = [];
      const service = createFake({ fate: (page) => (requests.push(page) > IN_A_ROW ? refused : rejected) });
      const { clock } = await openPaused(service, 20);
      for (const ms of [60_000, QUARTER - 1]) {
        clock.pass(ms);
        await sleep(20);
      }
      assert.equal(requests.length, IN_A_ROW + 1);
    });

    it("sends twice as many probes each time, until it has requested all pages of a list that ends with broken ones", async () => {
      let [requests, answers, error] = [0, 10, rejected];
      const service = createFake({ fate: () => (++requests && answers-- > 0 ? "answered" : error) });
      const { end, clock } = await openPaused(service, 10 + IN_A_ROW + 300);
      async function send(ms: number, ...all: number[]): Promise<void> {
        for (const probes of all) {
          const before = requests;
          clock.pass(ms - 1);
          await sleep(20);
          assert.equal(requests, before);
          clock.pass(1);
          await until(() => requests === before + probes);
          await sleep(20);
          assert.equal(requests, before + probes);
        }
      }
      await send(60_000, 1, 2);
      // A success, after which three more could have followed, ends this pause.
      answers = 1;
      await send(60_000, 1 + IN_A_ROW, 1, 2, 4);
      // Once for the rest of those that could follow.
      error = refused;
      await send(QUARTER, 2, 1, 1);
      error = rejected;
      await send(QUARTER, 1);
      await send(60_000, 2, 4);
      await send(QUARTER, 8, 16, 32, 64, 64, 64);
      clock.pass(QUARTER);
      assert.deepEqual(await end(), [11, IN_A_ROW + 299, 2]);
    });

    it("does not pause because requests of an earlier process stay uncertain", async () => {
      const unknown = new SeoError("SEO_NETWORK", "The response was not received.", { attempts: 0, uncertain: true });
      const service = createFake({ fate: () => unknown });
      const { errors, finished } = await begin(service, 20, { share: 1 });
      assert.deepEqual([(await finished()).uncertain, errors.length], [20, 0]);
    });

    it("probes at once if the same list comes again, but not with new pages", async () => {
      const service = createRefusing(refused);
      const { add, audit, finished } = await openPaused(service, 20);
      await add(urls(22));
      await sleep(20);
      assert.equal(service.requests, IN_A_ROW);
      service.refuses = false;
      await audit.pause();
      await add(urls(22));
      await sleep(20);
      assert.equal(service.requests, IN_A_ROW);
      await audit.resume();
      const { created, failed } = await finished();
      assert.deepEqual([created, failed], [22, 0]);
    });

    it("continues with the same list once the account can go on, and can pause again", async () => {
      let [refuses, requests] = [true, 0];
      let paused: unknown;
      const service = createFake({
        fate() {
          requests++;
          if (requests === 8) {
            paused = progress.at(-1)?.paused;
            clock.pass(QUARTER);
          }
          return requests <= IN_A_ROW || (requests > 10 && refuses) ? refused : "answered";
        },
      });
      const { add, audit, errors, progress, finished, clock } = await openPaused(service, 20);
      await add(urls(20));
      await until(() => errors.length === 2);
      await sleep(20);
      // No probe is left of the first pause.
      assert.deepEqual([paused, requests], [false, 10 + IN_A_ROW]);
      refuses = false;
      clock.pass(QUARTER);
      await finished();
      await audit.close();
      assert.equal(clock.timers(), 0);
    });

    it("reports failures that the pages caused", async () => {
      const bad = (page: string) => numberOf(page) % 3 > 0;
      const service = createFake({ fate: (page) => (bad(page) ? refused : "answered") });
      const { end } = await begin(service, 30, { share: 1 });
      assert.deepEqual(await end(), [10, 20, 0]);
    });

    it("does not pause because of broken pages that end last, nor if they are retried", async () => {
      const [working, total] = [33, 41];
      const broken = (page: string) => numberOf(page) % 5 === 0;
      const failed = new SeoError("SEO_SERVER", "No.", { attempts: 3 });
      const requests: string[] = [];
      const service = createFake({
        fate: (page) => (broken(page) && requests.push(page) ? failed : "answered"),
        async step(what) {
          if (broken(what)) await until(() => service.carriedOut.length === working);
        },
      });
      const { audit, errors, finished, progress } = await begin(service, total, { share: 16 });
      assert.equal((await finished()).failed, 8);
      progress.length = 0;
      await audit.retry();
      assert.equal((await finished()).failed, 8);
      assert.deepEqual([errors, requests.length], [[], 16]);
    });

    it("repeats its end if there is only a row to retry that is no page", async () => {
      const { add, audit, finished, progress } = open(createFake());
      await add([""]);
      assert.equal((await finished()).repeated, undefined);
      progress.length = 0;
      await audit.retry();
      assert.equal((await finished()).repeated, true);
    });

    for (const pages of [IN_A_ROW - 2, IN_A_ROW - 1, IN_A_ROW])
      it(`requests all pages again at its probe if only pages are left that have failed before: ${pages}`, async () => {
        const service = createRefusing(refused);
        const { finished, errors, clock } = await openPaused(service, pages);
        await sleep(20);
        assert.equal(service.requests, pages);
        clock.pass(QUARTER);
        const { failed } = await finished();
        assert.deepEqual([failed, service.requests, errors.length], [pages, 2 * pages, 1]);
      });

    it("requests a page again although the last pages were rejected", async () => {
      const requests: string[] = [];
      const fates = [refused, rejected, rejected, rejected, "answered"] as const;
      const service = createFake({ fate: (page) => fates[requests.push(page) - 1] ?? "answered" });
      const { end } = await begin(service, 4, { share: 1 });
      assert.deepEqual(await end(), [1, 3, 0]);
    });

    it("sends its probe as soon as the disk can be used again", async () => {
      const service = createRefusing(refused);
      let [full, tries] = [false, 0];
      const { add, errors, finished, clock } = await openPaused(service, 8, {
        open: filesWith(folder, async ({ type }, save) => {
          if (type === "sent" && full && ++tries) throw noSpace;
          await save();
        }),
      });
      full = true;
      clock.pass(QUARTER);
      await until(() => errors.length === 2);
      const message = "The list was not saved: The disk is full.";
      await assert.rejects(add(urls(1), { batch: "other" }), { code: "SEO_INPUT", kind: "disk", message });
      await sleep(20);
      assert.equal(tries, 1);
      full = false;
      service.refuses = false;
      clock.pass(60_000);
      assert.equal((await finished()).created, 8);
    });

    it("counts failures anew in the next process", async () => {
      const service = createRefusing(refused);
      for (const times of [1, 2]) {
        const { add, audit, errors } = open(service, { share: 1 });
        if (times === 1) await add(urls(20));
        await until(() => errors.length === 1);
        assert.deepEqual([(await audit.progress())[0]?.waiting, service.requests], [20, times * IN_A_ROW]);
        await audit.close();
      }
      service.refuses = false;
      assert.deepEqual(await open(service, { share: 1 }).end(), [20, 0, 0]);
      assert.equal(service.requests, 20 + 2 * IN_A_ROW);
    });

    it("pauses if the list of reports cannot be read, and retries", async () => {
      let refuses = true;
      const service = createFake({
        beforeList() {
          if (refuses) throw refused;
        },
        // The failure of the probe is no reason to pause again.
        fate: (page) => (page.endsWith("1") ? refused : "answered"),
      });
      const { errors, end, audit, clock } = await begin(service, 3, { existing: "regenerate" });
      await until(() => errors.length === 1);
      const sentence = `The batch "default" is paused: the list of reports could not be read. ${refused.message} It continues within 15 minutes of the repair, or at msg.resume.`;
      assert.deepEqual([(await audit.progress())[0]?.paused, errors[0]?.message], [sentence, sentence]);
      clock.pass(QUARTER);
      await until(() => service.listed() === 2);
      await sleep(20);
      assert.equal(service.listed(), 2);
      refuses = false;
      await passUntil(clock, () => service.listed() === 3);
      assert.deepEqual(await end(), [2, 1, 1]);
    });

    it("ends the pause if the list of reports is not needed any more", async () => {
      const service = createFake({ beforeList: refuse, fate: (page) => (page.endsWith("2") ? refused : "answered") });
      const { add, errors, end } = await begin(service, 3, { existing: "regenerate" });
      await until(() => errors.length === 1);
      await add(urls(3), { existing: "create" });
      assert.deepEqual(await end(), [2, 1, 1]);
    });

    it("is paused if a cache says which reports there are", async () => {
      const response = { headers: { age: "60" }, body: undefined };
      async function* pages(): AsyncGenerator<PageOfReports> {
        yield { records: [], total: 0, response };
      }
      const service = createFake();
      const connect = () => ({ ...service.connect(), pages });
      const { errors } = await begin(service, 3, { existing: "return", connect });
      await until(() => errors.length === 1);
      assert.match(String(errors[0]), /The response comes from a cache\./);
    });

    it("reads the list of reports once for each probe, and reports one error, whatever pages do", async () => {
      const slow = deferred();
      const fate = (page: string) => (numberOf(page) > 1 ? refused : "answered");
      const service = createFake({ fate, step: () => slow.promise, beforeList: refuse });
      const { add, errors, clock } = await begin(service, 1, { share: 2 });
      await add(urls(3), { existing: "regenerate" });
      await until(() => errors.length === 1);
      slow.resolve();
      await until(() => service.carriedOut.length === 1);
      for (const times of [1, 2, 3]) {
        await sleep(20);
        assert.deepEqual([service.listed(), errors.length], [times, 1]);
        clock.pass(QUARTER);
      }
    });

    it("reports once that the list of reports cannot be read if only pages are left that have failed before", async () => {
      const service = createRefusing(refused);
      const { add, errors, clock } = await openPaused(service, IN_A_ROW);
      service.beforeList = refuse;
      await add(urls(IN_A_ROW), { existing: "regenerate" });
      for (let times = 0; times < 3; times++) await sleep(20).then(() => clock.pass(QUARTER));
      assert.equal(errors.length, 2);
    });

    it("reads the list of reports once for each probe, also if another job ends while that fails at once", async () => {
      let [refuses, listed, ticks] = [true, 0, 0];
      const service = createFake();
      async function endJob(): Promise<void> {
        for (let tick = 0; tick < ticks; tick++) await null;
        await audit.retry();
      }
      const closes = deferred();
      async function* pages(...parameters: Parameters<Requests["pages"]>): AsyncIterable<PageOfReports> {
        listed++;
        void endJob();
        yield* refuses ? unreadable(refused)() : service.connect().pages(...parameters);
        await closes.promise;
      }
      const connect = () => ({ ...service.connect(), pages });
      const { add, audit, errors, finished } = open(service, { connect });
      await add(urls(2), { existing: "return" });
      await until(() => errors.length === 1);
      for (; ticks < 40; ticks++) {
        const before = listed;
        await audit.resume();
        await until(() => listed > before);
        await sleep(2);
        assert.equal(listed, before + 1, `after ${ticks} ticks`);
      }
      assert.equal(errors.length, 1);
      refuses = false;
      await audit.resume();
      await until(async () => (await audit.progress())[0]?.reason === "plan");
      assert.equal((await audit.progress())[0]?.paused, false);
      closes.resolve();
      assert.equal((await finished()).created, 2);
    });

    it("stays paused with one error if the list of reports can be read, but no report can be created", async () => {
      const service = createRefusing(refused);
      const { add, audit, errors, progress } = await openPaused(service, IN_A_ROW, { share: 2 });
      await sleep(20);
      const before = service.requests;
      progress.length = 0;
      await add(urls(2, 21), { existing: "regenerate" });
      service.beforeList = refuse;
      await audit.resume();
      await sleep(50);
      service.beforeList = () => {};
      await audit.resume();
      // The list is the probe, and then a page.
      await until(() => service.requests > before);
      await sleep(50);
      assert.deepEqual([service.listed(), service.requests, errors.length], [2, before + 1, 1]);
      assert.ok(progress.every(({ paused }) => paused));
    });

    it("pauses with an error that it does not expect, and retries", async () => {
      let broken = true;
      const { errors, finished, clock } = await openPaused(createFake(), 2, {
        open: filesWith(folder, ({ type }, save) =>
          broken && type === "sent" ? Promise.reject(new Error("Broken.")) : save(),
        ),
      });
      assert.equal(errors[0]?.message, "The batch cannot continue: Error: Broken.");
      broken = false;
      clock.pass(QUARTER);
      assert.equal((await finished()).created, 2);
    });

    it("pauses if a report cannot be shown again, and retries", async () => {
      // Once the report can be shown, these failures are no reason to pause again.
      const service = createFake({ latency: 5, fate: (page) => (/[12]$/.test(page) ? "answered" : refused) });
      let told = 0;
      const first = await begin(service, 2, {
        share: 2,
        result() {
          told++;
          throw new Error("The flow is broken.");
        },
      });
      // Otherwise the next process would look for the second page.
      await until(() => first.errors.length === 1 && told === 2);
      assert.match(`${first.errors[0]?.code} ${first.errors[0]?.message}`, /^SEO_INPUT .*The flow is broken/);
      await first.audit.close();
      let shown = 0;
      service.beforeShow = () => {
        if (++shown === 1) throw refused;
        // What cannot be shown because of the report itself is no reason to wait.
        if (shown === 3) throw rejected;
      };
      const second = open(service, { share: 2 });
      await until(() => second.errors.length === 1 && shown === 2);
      await second.add(urls(4));
      await passUntil(second.clock, () => second.progress.at(-1)?.finished === true);
      assert.deepEqual(second.results.map(({ index, outcome, repeated }) => [index, outcome, repeated]).sort(), [
        [0, "created", true],
        [1, "created", true],
        [2, "failed", undefined],
        [3, "failed", undefined],
      ]);
      const records = second.results.filter(({ repeated }) => repeated).map(({ record }) => record !== null);
      assert.deepEqual(records.sort(), [false, true]);
      assert.equal(service.carriedOut.length, 2);
    });
  });

  for (const [first, second] of Object.entries({ "sent 0": "ended 0", "ended 0": "sent 1" }))
    it(`reports again that nothing can be saved, if something was saved meanwhile: ${first}, ${second}`, async () => {
      const failing = new Set([first, second]);
      // After a failure, the next page is requested once this one is saved.
      const { errors, finished, clock } = await begin(createFake({ fate: () => rejected }), 2, {
        share: 1,
        open: filesWith(folder, async (entry, save) => {
          if (failing.delete(`${entry.type} ${"page" in entry && entry.page}`)) throw noSpace;
          await save();
        }),
      });
      for (const count of [1, 2]) {
        await until(() => errors.length === count);
        clock.pass(60_000);
      }
      assert.equal((await finished()).failed, 2);
    });

  it("retries the other batches if one is damaged", async () => {
    const service = createRefusing(rejected);
    const { add, audit, finished, results } = open(service);
    for (const [index, batch] of ["one", "two", "three"].entries()) {
      await add(urls(1, index), { batch });
      await finished(batch);
      await until(() => hasFinished(`${index + 1}-${batch}`));
    }
    service.refuses = false;
    writeFileSync(journal("2-two"), "x\n");
    await assert.rejects(audit.retry(), { kind: "damaged" });
    await audit.retry();
    await assert.rejects(audit.retry("two"), { kind: "damaged" });
    await until(() => results.length === 5);
    await until(() => batchesIn(join(folder, "node")).length === 1);
    assert.equal(await audit.reset(), 1);
    const outcomes = results.slice(3).map(({ batch, outcome }) => `${batch} ${outcome}`);
    assert.deepEqual(outcomes, ["one created", "three created"]);
  });

  it("pauses, also across processes, and resumes", async () => {
    const service = createFake({ latency: 50 });
    const first = await begin(service, 20);
    assert.equal(await first.audit.pause(), 1);
    assert.equal(first.progress.at(-1)?.paused, "Paused.");
    await first.audit.close();
    const done = service.carriedOut.length;
    const second = open(service);
    await sleep(50);
    second.clock.pass(60 * 60_000);
    assert.equal((await second.audit.progress())[0]?.paused, "Paused.");
    assert.equal(service.carriedOut.length, done);
    await second.audit.resume();
    second.clock.pass(60_000);
    const { perMinute } = await second.finished();
    // The hour does not count.
    assert.ok(perMinute >= 10, String(perMinute));
    assert.equal(new Set(service.carriedOut).size, 20);
    assert.equal(service.carriedOut.length, 20);
  });

  it("sends nothing after a reset, not even lost results", async () => {
    const { audit, finished, results, service, find } = await openLooking(3);
    await audit.reset();
    find();
    const { done, dropped } = await finished();
    assert.deepEqual([done, dropped, results.length, service.carriedOut.length], [0, 3, 0, 0]);
  });

  for (const [where, held] of Object.entries({ here: "request", "in the next process, listed last": "carried" }))
    it(`plans the same list after a reset once the requests before have ended ${where}`, async () => {
      const { promise: response, resolve: respond } = deferred();
      const look = () => response;
      const service = createFake({ step: (what) => (what.startsWith(held) ? response : undefined), look });
      let bench = await begin(service, 2);
      await until(() => service.most() === 2);
      await bench.audit.reset();
      await bench.add(urls(3), { existing: "return" });
      if (held === "carried") {
        await bench.audit.close();
        bench = open(service, { open: changedFiles(folder, ({ batches }) => ({ batches: batches.toReversed() })) });
        await until(() => service.looking() === 2);
      }
      await sleep(20);
      assert.deepEqual([service.listed(), bench.audit.latest().map(({ reason }) => reason)], [0, ["plan"]]);
      respond();
      await until(() => bench.results.length === 5);
      const [, , ...next] = bench.results.map(({ outcome }) => outcome);
      assert.deepEqual(next, ["fresh", "fresh", "created"]);
    });

  it("has pages that wait for the next process after a reset, too: those whose response is lost", async () => {
    const { audit, service } = await openLooking(3);
    await audit.reset();
    const count = service.looking();
    assert.deepEqual([count > 0, await audit.close()], [true, count]);
  });

  for (const how of ["pause", "reset"] as const)
    it(`reports nothing and requests nothing after a ${how} while it reads the list of reports`, async () => {
      const read = deferred();
      const service = createFake({ beforeList: () => read.promise }, reportsOf(150));
      const { audit, finished, results } = await begin(service, 200, { existing: "return" });
      await until(() => service.listed() === 1);
      assert.equal((await audit.progress())[0]?.reason, "plan");
      await audit[how]();
      read.resolve();
      await sleep(20);
      assert.deepEqual([results, service.carriedOut, service.listed()], [[], [], 1]);
      await audit.resume();
      const { created, fresh, dropped } = await finished();
      assert.deepEqual([created, fresh, dropped], how === "reset" ? [0, 0, 200] : [50, 150, 0]);
    });

  it("does not send a lost request again while it is paused", async () => {
    const { audit, finished, results, service, find } = await openLooking(2);
    await audit.pause();
    find();
    await until(() => service.looking() === 0);
    await sleep(20);
    const [{ waiting, reconciling } = {}] = await audit.progress();
    assert.deepEqual([waiting, reconciling, results, service.carriedOut], [2, 0, [], []]);
    await audit.resume();
    await finished();
    assert.equal(service.carriedOut.length, 2);
  });

  for (const [name, before, settings, expected] of [
    ["privacy", {}, { privacy: "private" }, ["create 2 private", "create 3 private"]],
    ["existing", {}, { existing: "regenerate" }, ["create 2", "regenerate 3"]],
    ["maxAge", { existing: "return", maxAge: 5 }, { existing: "return", maxAge: 30 }, ["create 2"]],
  ] as const)
    it(`changes pages that are not sent yet if the list is given once more with another ${name}`, async () => {
      const responds = deferred();
      const service = createFake({ step: () => responds.promise }, [reportOf(3, 10)]);
      // The second page waits for the response to the first one.
      const connect = (changed: () => void) => service.connect(changed, 1);
      const { add, finished } = open(service, { share: 2, connect });
      await add(urls(4), before);
      await until(() => service.most() === 1);
      await sleep(20);
      assert.equal(await add(urls(3), settings), 0);
      responds.resolve();
      await finished();
      const carriedOut = service.carriedOut.map((what) => what.replace("example.org/page/", ""));
      assert.deepEqual(carriedOut.toSorted(), ["create 1", ...expected, "create 4"].toSorted());
    });

  for (const [how, first, maxAge, count, expected] of [
    ["", { total: 3, truncated: true }, undefined, 2, [2, 2]],
    [", without a total", {}, undefined, 2, [2, 2]],
    [", without a total, before others that are too old", {}, 7, 2, [2, 2]],
    [", without a total, and no other was found", {}, undefined, 1, [1, 2]],
    [", without a total, until nothing more is found", {}, undefined, 4, [3, 3]],
  ] as const)
    it(`reads the list of reports again if one moved meanwhile to where it was read before${how}`, async () => {
      const service = createFake();
      let readings = 0;
      async function* pages() {
        const [moved, recent, old] = [reportOf(1, 1), reportOf(2, 2), reportOf(3, 30)];
        for (const record of [...(++readings === 1 ? [] : [moved]), recent, old])
          yield { records: [record], response: { headers: {}, body: [] }, ...(readings === 1 && first) };
      }
      const { add, finished } = open(service, { connect: () => ({ ...service.connect(), pages }) });
      await add(urls(count), { existing: "return", maxAge });
      assert.deepEqual([(await finished()).fresh, readings], expected);
    });

  it("reads a list without a total once, if it has one page", async () => {
    const service = createFake();
    let readings = 0;
    async function* pages() {
      readings++;
      yield { records: [reportOf(2)], response: { headers: {}, body: [] } };
    }
    const connect = () => ({ ...service.connect(), pages });
    const { finished } = await begin(service, 1, { existing: "return", connect });
    assert.deepEqual([(await finished()).created, readings], [1, 1]);
  });

  const unknown = "Which pages have a report is unknown: the list of reports";
  for (const [problem, record, total] of [
    [`${unknown} is not complete.`, { id: 1, url: "example.com/1" }, 2],
    [`${unknown} is not complete.`, { id: 1, url: "example.com/1" }, undefined],
    [`${unknown} has no URLs.`, { id: 1 }, 2],
    ["The list contains a report without id.", { url: "example.com/1" }, 2],
  ] as const)
    it(`creates no report if the list of reports cannot be used: ${problem} Total: ${total}`, async () => {
      const service = createFake();
      async function* pages() {
        yield { records: [record], total, truncated: "url" in record, response: { headers: {}, body: [] } };
      }
      const connect = () => ({ ...service.connect(), pages });
      const { audit, errors } = await begin(service, 2, { existing: "regenerate", connect });
      await until(() => errors.length === 1);
      assert.ok(String(errors[0]?.message).includes(`: the list of reports could not be read. ${problem}`));
      assert.deepEqual([service.carriedOut, (await audit.progress())[0]?.reason], [[], "SEO_RESPONSE"]);
    });

  /** A page of the list of reports: what it has, and the total that it names. */
  const given = (ids: number[], total: number, generated_at?: string) => ({ ids, total, generated_at });
  type Given = ReturnType<typeof given>;
  const old = "2020-01-01";
  const changing: [meanwhile: string, expected: number, first: Given[], then: Given][] = [
    ["others are created", 1, [given([1], 1), given([1], 2)], given([1], 2)],
    ["one moves, and a new one is behind it", 2, [given([1], 2), given([9], 3)], given([9, 2, 1], 3)],
    ["one moves, and the last page is too old", 2, [given([1], 3), given([1, 7], 3, old)], given([3, 1, 7], 3, old)],
    ["one is deleted, and the last page is too old", 2, [given([1], 3), given([7], 2, old)], given([7], 2, old)],
    ["one is deleted, and another one is missed twice", 3, [given([1, 2], 4), given([4], 3)], given([2, 4], 3)],
  ];
  for (const [meanwhile, expected, first, then] of changing)
    it(`reads the list of reports as often as necessary if ${meanwhile}`, async () => {
      const service = createFake();
      let readings = 0;
      async function* pages() {
        const seen = new Set<number>();
        for (const { ids, total, generated_at } of readings++ === 0 ? first : [then]) {
          const body = ids.map((id) => ({ id, url: `example.com/${id}`, generated_at }));
          const records = body.filter(({ id }) => !seen.has(id));
          for (const id of ids) seen.add(id);
          yield { records, total, truncated: total > seen.size, response: { headers: {}, body } };
        }
      }
      const { add, errors } = open(service, { connect: () => ({ ...service.connect(), pages }) });
      await add(urls(2), { existing: "return", maxAge: 30 });
      await until(() => errors.length > 0 || service.carriedOut.length > 1);
      assert.equal(readings, expected);
    });

  it("reads the list of reports again if other settings arrive meanwhile, also in the next process", async () => {
    const closes = deferred();
    const service = createFake({ latency: 50, beforeList: () => closes.promise }, [reportOf(1), reportOf(2)]);
    const first = await begin(service, 3, { existing: "return" });
    await until(() => service.listed() === 1);
    await first.add(urls(2), { existing: "regenerate" });
    closes.resolve();
    await until(() => service.carriedOut.length > 0);
    await first.audit.close();
    await open(service).finished();
    assert.deepEqual(service.carriedOut.toSorted(), [
      "create example.org/page/3",
      "regenerate example.org/page/1",
      "regenerate example.org/page/2",
    ]);
    assert.equal(service.listed(), 2);
  });

  it("reads the list of reports once for all lists that have come meanwhile", async () => {
    const closes = deferred();
    const service = createFake({ beforeList: () => closes.promise }, reportsOf(4));
    const { add, finished } = open(service);
    for (const url of urls(40)) await add([url], { existing: numberOf(url) === 2 ? "return" : "regenerate" });
    closes.resolve();
    const { created, regenerated, fresh } = await finished();
    assert.deepEqual([created, regenerated, fresh, service.listed()], [36, 3, 1, 2]);
  });

  it("begins another page while a lost response is looked for", async () => {
    const found = deferred();
    const fate = (page: string) => (page.endsWith("2") ? "lost" : "answered");
    const service = createFake({ latency: 30, fate, look: () => found.promise, step: () => clock.pass(30) });
    const { add, audit, finished, results, clock } = open(service, { share: 1 });
    await add(urls(9));
    await until(() => service.carriedOut.length === 3);
    assert.equal(service.looking(), 1);
    assert.ok(Number.isFinite((await audit.progress())[0]?.secondsLeft));
    await until(() => results.length === 8);
    const [{ waiting, reconciling, secondsLeft } = {}] = await audit.progress();
    assert.deepEqual([waiting, reconciling, secondsLeft], [1, 1, undefined], "only a lost response is left");
    found.resolve();
    assert.equal((await finished()).reconciling, 0);
  });

  it("looks for ten lost responses for each request in flight at most, and estimates no time meanwhile", async () => {
    const works = (page: string) => /\/[12]$/.test(page);
    const service = createFake({
      fate: (page) => (works(page) ? "answered" : "resent"),
      step(what) {
        if (!works(what)) service.latency = 3000;
      },
    });
    const { audit, progress, results, clock } = await begin(service, 40, { share: 1 });
    await until(() => results.length === 2);
    clock.pass(4000);
    await until(() => service.looking() === 10);
    clock.pass(1000);
    await sleep(50);
    const { waiting, reconciling, perMinute, secondsLeft } = progress.at(-1) ?? {};
    assert.deepEqual([waiting, reconciling, perMinute, secondsLeft], [38, 10, 0, undefined]);
    assert.deepEqual([service.looking(), service.most()], [10, 1]);
    await audit.reset();
  });

  it("sends its progress when a response is lost, and does not count the page while it is requested again", async () => {
    const found = deferred();
    const service = createFake({ latency: 100, fate: () => "resent", look: () => found.promise });
    const { audit, progress: sent, finished, clock } = await begin(service, 1);
    await until(() => service.looking() === 1);
    clock.pass(5000);
    const lost = sent.map(({ reconciling }) => reconciling);
    assert.deepEqual(lost, [0, 1]);
    found.resolve();
    await until(() => service.carriedOut.length === 1);
    const [progress] = await audit.progress();
    assert.deepEqual([progress?.waiting, progress?.reconciling], [1, 0]);
    await finished();
  });

  it("requests other pages while it looks for the responses that the process before has lost", async () => {
    const found = deferred();
    const service = createFake({ latency: 500, look: () => found.promise });
    const first = await begin(service, 2, { share: 1 });
    await until(() => service.carriedOut.length === 1);
    await first.audit.close();
    const { audit, finished, results } = open(service, { share: 1 });
    await until(() => service.carriedOut.length === 2);
    assert.equal((await audit.progress())[0]?.reconciling, 1);
    assert.deepEqual(results, []);
    found.resolve();
    await finished();
  });

  it("saves a response that arrives while it closes, and sends it later", async () => {
    const closes = deferred();
    const step = (what: string) => (what.startsWith("carried out") ? closes.promise : undefined);
    const service = createFake({ deaf: true, step });
    const first = await begin(service, 2, { share: 1 });
    await until(() => service.carriedOut.length === 1);
    const closed = first.audit.close();
    closes.resolve();
    await closed;
    first.clock.pass(QUARTER);
    assert.deepEqual([first.results, first.progress.length], [[], 1]);
    const second = open(service, { share: 1 });
    await second.finished();
    const [told] = second.results.filter(({ index }) => index === 0);
    assert.deepEqual([told?.outcome, told?.repeated, told?.reconciled], ["created", true, undefined]);
  });

  it("creates a report if the one to be regenerated was deleted", async () => {
    const known = [reportOf(1)];
    const service = createFake({ beforeList: () => void known.pop() }, known);
    const { finished } = await begin(service, 1, { existing: "regenerate" });
    await finished();
    assert.deepEqual(service.carriedOut, ["create example.org/page/1"]);
  });

  it("follows its plan in the next process, also for a report whose update was canceled", async () => {
    const service = createFake({}, [reportOf(1), reportOf(2)]);
    let closed: Promise<number> | undefined;
    const first = open(service, {
      share: 1,
      open: filesWith(folder, async ({ type }, save) => {
        if (type === "sent") closed ??= first.audit.close();
        await save();
      }),
    });
    await first.add(urls(3), { existing: "regenerate" });
    await until(() => closed !== undefined);
    await closed;
    assert.deepEqual([service.carriedOut, service.listed()], [[], 1]);
    service.reports.push({ ...reportOf(2), id: 7 });
    const second = open(service, { share: 1 });
    await second.finished();
    const ends = second.results.map(({ outcome, record }) => `${outcome} ${(record as { id: number }).id}`);
    assert.deepEqual(ends, ["regenerated 1", "regenerated 2", "created 8"]);
    assert.equal(service.listed(), 1);
  });

  it("plans again at another service, where an ID is that of another report", async () => {
    const page = (number: number) => `example.org/page/${number}`;
    const hang = (what: string) => (/carried.*2$/.test(what) ? new Promise<void>(() => {}) : undefined);
    const service = createFake({ step: hang }, reportsOf(5));
    const first = await begin(service, 5, { share: 1, existing: "regenerate" });
    await until(() => service.carriedOut.length === 2);
    await first.audit.close();
    const pages = [page(5), page(2), "other/3", "other/4", "other/5"];
    const others = reportsOf(5).map((report, index) => ({ ...report, url: String(pages[index]) }));
    const retried = deferred();
    const step = (what: string) => (what.endsWith("/4") ? retried.promise : undefined);
    const other = createFake({ service: "http://two.example", step }, others);
    const { audit, finished, results } = open(other, { share: 1 });
    await until(() => results.length === 3);
    const [again, lost] = results.toSorted((a, b) => a.index - b.index);
    assert.deepEqual([again?.outcome, again?.repeated, again?.record], ["regenerated", true, null]);
    const why = "The base URL was changed before the response was received. msg.retry requests the page again.";
    assert.deepEqual([lost?.outcome, lost?.repeated], ["uncertain", undefined]);
    const { code, message, uncertain } = Object(lost?.error);
    assert.deepEqual([code, message, uncertain], ["SEO_NETWORK", why, true]);
    await audit.retry();
    retried.resolve();
    await finished();
    const effects = [`create ${page(3)}`, `create ${page(4)}`, `regenerate ${page(2)}`, `regenerate ${page(5)}`];
    assert.deepEqual(other.carriedOut, effects);
  });

  const candidates = [{ id: 7, url: "example.org/page/1", created_at: "" }];
  const lost = new SeoError("SEO_NETWORK", "Lost.", { attempts: 1, uncertain: true, candidates });
  /** Why a lost request cannot be looked for at msg.retry, and the result then. */
  const looks: [cause: SeoError, result: [outcome: string, message: string]][] = [
    [new SeoError("SEO_TIMEOUT", "Away.", { uncertain: true, attempts: 0 }), ["uncertain", "Lost."]],
    [new SeoError("SEO_TIMEOUT", "Again.", { uncertain: true, attempts: 1 }), ["uncertain", "Again."]],
    [new SeoError("SEO_REJECTED", "No.", { attempts: 0 }), ["failed", "No."]],
  ];
  for (const [cause, result] of looks)
    it(`says what is known of a lost request if looking for it fails: ${cause.message}`, async () => {
      const service = createFake({ fate: () => lost, look: () => Promise.reject(cause) });
      const { audit, finished, progress, results } = await begin(service, 1);
      await finished();
      assert.deepEqual(Object(results[0]?.error).candidates, candidates);
      progress.length = 0;
      assert.equal(await audit.retry(), 1);
      await finished();
      assert.deepEqual([results[1]?.outcome, results[1]?.error?.message], result);
    });

  it("requests a page once that cannot be created because something is missing", async () => {
    const requested: string[] = [];
    const fate = () => new SeoError("SEO_NOT_FOUND", "Nothing is there.", { missing: true, attempts: 1 });
    const service = createFake({ fate, step: (what) => void requested.push(what) });
    assert.equal((await (await begin(service, 1)).finished()).failed, 1);
    assert.equal(requested.length, 1);
  });

  for (const responds of [true, false])
    it(`waits for the responses to its requests in flight when it is drained, ten seconds at most: ${responds}`, async () => {
      const [begins, ends] = [deferred(), deferred()];
      const service = createFake({
        step(what) {
          if (!what.startsWith("request")) return undefined;
          begins.resolve();
          return ends.promise;
        },
      });
      const { audit, results, clock } = await begin(service, 3, { share: 1 });
      await begins.promise;
      let drained = false;
      const draining = audit.drain().then(() => {
        drained = true;
      });
      clock.pass(9999);
      await sleep(100);
      assert.ok(!drained);
      if (responds) ends.resolve();
      else clock.pass(1);
      await draining;
      ends.resolve();
      await until(() => results.length === 1);
      await sleep(20);
      assert.deepEqual(service.carriedOut, ["create example.org/page/1"]);
      await audit.close();
      assert.equal((await open(service).finished()).created, 3);
      assert.equal(service.carriedOut.length, 3);
    });

  it("says in the progress of its batches why it is closed", async () => {
    const { audit, progress } = await begin(createFake({ latency: 50 }), 3);
    progress.length = 0;
    await audit.close(new Trouble("server", "Another instance leads."));
    const pauses = progress.map(({ paused, finished }) => [paused, finished]);
    assert.deepEqual(pauses, [["Another instance leads.", false]]);
  });

  it("reports each failure that has stopped a batch, also if its error was reported", async () => {
    const stops: string[] = [];
    const service = createFake({ fate: () => refused });
    const stopped = ({ code }: SeoError) => stops.push(code);
    const { audit, errors, clock } = await begin(service, 20, { share: 1, stopped });
    for (const count of [1, 2]) {
      await until(() => stops.length === count);
      clock.pass(QUARTER);
    }
    await until(() => stops.length === 3);
    assert.deepEqual([stops, errors.length], [Array(3).fill("SEO_UNAUTHORIZED"), 1]);
    await audit.reset();
  });

  it("waits for the next process if its service is closed", async () => {
    let closes = true;
    let requests = 0;
    const lost = cancelled.with({ uncertain: true });
    const service = createFake({ fate: () => (closes && ++requests > 4 ? lost : "answered"), latency: 1 });
    const first = await begin(service, 10);
    await until(() => requests > 4);
    await sleep(30);
    assert.ok(first.results.every(({ outcome }) => outcome === "created"));
    assert.deepEqual([first.errors.length, requests <= 7], [0, true]);
    await first.audit.close();
    closes = false;
    assert.equal((await open(service).finished()).created, 10);
  });

  it("sends its progress at most every five seconds, and at the end", async () => {
    const { progress, results, finished, clock } = await begin(createFake({ latency: 20 }), 20, { share: 1 });
    await until(() => results.length > 5);
    assert.equal(progress.length, 1);
    clock.pass(4999);
    assert.equal(progress.length, 1);
    clock.pass(1);
    assert.equal(progress.length, 2);
    const { perMinute = 0, secondsLeft = 0, waiting = 0 } = progress[1] ?? {};
    assert.ok(perMinute >= 60 && perMinute <= 120, String(perMinute));
    assert.ok(Math.abs(secondsLeft - (waiting * 60) / perMinute) <= 1, String(secondsLeft));
    await finished();
    assert.equal(progress.length, 3);
  });

  it("sends its progress every five seconds while no request can start, and once more", async () => {
    const steps: string[] = [];
    const service = createFake({ latency: 200, step: (what) => void steps.push(what) });
    const { progress, finished, clock } = await begin(service, 2, { share: 1 });
    await until(() => steps.length > 0);
    service.wait = 12_000;
    clock.pass(5000);
    service.wait = 7000;
    clock.pass(5000);
    service.wait = 0;
    clock.pass(60_000);
    const waits = progress.map(({ secondsToWait }) => secondsToWait);
    assert.deepEqual(waits, [undefined, 12, 7, undefined]);
    await finished();
  });

  it("sends its progress while it reads the list of reports", async () => {
    const told = deferred();
    const service = createFake({ beforeList: () => (service.listed() > 1 ? told.promise : undefined) }, reportsOf(150));
    const { progress, results, finished, clock } = await begin(service, 150, { existing: "return" });
    await until(() => results.length === 100);
    clock.pass(5000);
    told.resolve();
    const counts = progress.map(({ fresh }) => fresh);
    assert.deepEqual(counts, [0, 100]);
    await finished();
  });

  it("repeats a result whose delivery is not certain, and keeps the reports that it got", async () => {
    const service = createFake({ latency: 20 });
    let closed: Promise<number> | undefined;
    const first = open(service, {
      share: 1,
      // It takes longer to close than to deliver a result.
      open: changedFiles(folder, (store) => ({ close: () => sleep(2 * DELIVERY).then(() => store.close()) })),
      result(result) {
        // The second result is on its way to the next node.
        if (first.results.push(result) === 2) closed = first.audit.close();
      },
    });
    await first.add(urls(6));
    await until(() => closed !== undefined);
    await closed;
    const second = open(service);
    await second.finished();
    const again = second.results.filter(({ index }) => index === first.results[1]?.index);
    const ends = again.map(({ outcome, repeated }) => [outcome, repeated]);
    assert.deepEqual(ends, [["created", true]]);
    const known = first.results.map(({ record }) => String((record as { id: unknown }).id));
    assert.ok(known.every((id) => service.claimed.includes(id)));
    assert.equal(service.opening.size, 0);
    assert.equal(service.carriedOut.length, 6);
  });

  it("saves nothing in a folder that was taken over, and opens it again after a minute", async () => {
    const taken = new Trouble("locked", "Another process has taken over the folder.");
    const losses: Lost[] = [];
    let recovered = 0;
    const { audit, add, errors, finished, clock } = open(createFake(), {
      recovered: () => recovered++,
      async open(lost) {
        losses.push(lost);
        const store = await openFiles(folder, "node", lost);
        if (losses.length === 2) lost(taken);
        const close = () => store.close().then(() => Promise.reject(taken));
        return losses.length === 1 ? vary(store, { close }) : store;
      },
    });
    await audit.progress();
    losses[0]?.(taken);
    losses[0]?.(taken);
    await assert.rejects(add(urls(1)), taken);
    assert.deepEqual(batchesIn(join(folder, "node")), []);
    // The second time, it is taken over again while it is opened, which is the same error.
    for (const times of [2, 3]) {
      await until(() => {
        clock.pass(60_000);
        return losses.length === times;
      });
      await (times === 2 ? assert.rejects(add(urls(1)), taken) : add(urls(1)));
    }
    await finished();
    // The store that was lost first has no say any more.
    losses[0]?.(taken);
    assert.deepEqual([errors, recovered], [[taken], 2]);
    losses[2]?.(taken);
    assert.equal(errors.length, 2);
    await audit.close();
    await until(() => readdirSync(join(folder, "node")).length === 0);
    await sleep(20);
    clock.pass(60_000);
    assert.equal(losses.length, 3);
  });

  it("closes while nothing can be saved", async () => {
    const { add, audit, errors } = await begin(createFake(), 2, {
      open: filesWith(folder, ({ type }, save) => (type === "ended" ? Promise.reject(noSpace) : save())),
    });
    await until(() => errors.length === 1);
    assert.equal(await audit.close(), 2);
    await assert.rejects(add(urls(2)), cancelled);
  });

  it("ends the pause of its batches before it says that its server can be reached again", async () => {
    const told: unknown[] = [];
    let [full, lose]: [boolean, Lost] = [false, assert.fail];
    const files = filesWith(folder, async ({ type }, save) => {
      if (full && type === "ended") throw new Trouble("server", "It cannot be reached.");
      await save();
    });
    const { errors, clock } = await begin(createFake({ latency: 50 }), 20, {
      open(lost) {
        lose = lost;
        return files(lost);
      },
      progress: ({ paused }) => told.push(paused !== false),
      recovered: () => told.push("recovered"),
    });
    told.length = 0;
    full = true;
    await until(() => errors.length === 1);
    assert.equal(told.at(-1), true);
    full = false;
    clock.pass(999);
    await sleep(1);
    assert.ok(!told.includes("recovered"));
    clock.pass(1);
    await until(() => told.includes("recovered"));
    assert.equal(told[told.indexOf("recovered") - 1], false);
    lose(new Trouble("locked", "It was taken over."));
    assert.equal(told.at(-1), true);
  });

  it("retries if its store cannot be opened, and reports each cause once", async () => {
    const away = new Trouble("server", "It cannot be reached.");
    const rejected = new SeoError("SEO_CONFIG", "The password is wrong.");
    const causes = [away, away, noSpace, rejected, rejected, new Error("No."), away, away];
    let opened = 0;
    const { audit, errors, clock } = open(createFake(), { open: () => Promise.reject(causes[opened++]) });
    for (let index = 0; index < causes.length - 2; index++) {
      await until(() => opened === index + 1);
      await sleep(1);
      // A server was waited for already.
      clock.pass((causes[index] === away ? 1000 : 60_000) - 1);
      assert.equal(opened, index + 1);
      clock.pass(1);
    }
    await until(() => opened === causes.length - 1);
    await sleep(1);
    await assert.rejects(audit.resume(), away);
    assert.equal(opened, causes.length);
    await audit.close();
    clock.pass(60_000);
    assert.equal(opened, causes.length);
    const told = errors.map(({ code, message }) => `${code} ${message}`);
    assert.deepEqual(told, [
      "SEO_NETWORK It cannot be reached.",
      "SEO_INPUT The disk is full.",
      "SEO_CONFIG The password is wrong.",
      "SEO_INPUT Error: No.",
      "SEO_NETWORK It cannot be reached.",
    ]);
  });

  it("reports nothing if it is closed while its store is opened", async () => {
    let closed = 0;
    const { audit, errors } = open(createFake(), {
      open: changedFiles(folder, (store) => ({ close: () => store.close().finally(() => closed++) })),
    });
    await audit.close();
    await until(() => closed === 1);
    await sleep(1);
    assert.deepEqual(errors, []);
  });

  it("rejects the list that it saves when it is closed, and waits for that", async () => {
    let saving = false;
    const { audit, add } = open(createFake(), {
      open: changedFiles(folder, (store) => ({
        async create(...parameters) {
          saving = true;
          await sleep(50);
          return store.create(...parameters);
        },
      })),
    });
    const order: string[] = [];
    const adding = assert.rejects(add(urls(2)), cancelled).then(() => order.push("rejected"));
    await until(() => saving);
    await audit.close();
    order.push("closed");
    await adding;
    assert.deepEqual([order, batchesIn(join(folder, "node"))], [["rejected", "closed"], []]);
  });

  it("saves a list before its store closes, and begins nothing with it", async () => {
    // A new batch, and one that is joined.
    for (const from of [1, 3]) {
      const [ends, closes] = [deferred(), deferred()];
      const order: string[] = [];
      const saving = <Value>(saved: Value) => closes.promise.then(() => saved);
      const change = (batch: Batch): Batch => {
        const add = batch.add.bind(batch);
        const next = batch.next.bind(batch);
        batch.add = async (list) => saving(await add(list).finally(() => order.push("saving")));
        batch.next = () => {
          order.push("began");
          return next();
        };
        return batch;
      };
      const { add, audit, progress } = open(createFake({ step: () => ends.promise }), {
        open: changedFiles(folder, (store) => {
          store.batches.forEach(change);
          return {
            async create(...parameters) {
              const batch = await store.create(...parameters);
              order.push("saving");
              return saving(change(batch));
            },
            close() {
              order.push("closed");
              return store.close();
            },
          };
        }),
      });
      await audit.progress();
      const added = add([...urls(2, from), `no page: ${from}`]).then(() => order.push("saved"));
      await until(() => order.includes("saving"));
      order.length = 0;
      progress.length = 0;
      const closed = audit.close();
      ends.resolve();
      await sleep(20);
      closes.resolve();
      await Promise.all([added, closed]);
      assert.deepEqual([order, progress], [["saved", "closed"], []]);
    }
    assert.equal((await open(createFake()).finished()).total, 6);
  });
});

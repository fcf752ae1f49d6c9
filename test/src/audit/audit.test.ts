import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SeoError } from "../../../src/errors.js";
import { createBench, createFake, createFolder, createManualClock, urls } from "./fake.js";

const STREAK = 5;
const QUARTER = 15 * 60_000;

describe("an audit", () => {
  let folder: string;
  let remove: () => Promise<void>;
  const opened: { close(): Promise<unknown> }[] = [];

  /** An audit that is closed after the test. */
  const open: typeof createBench = (...options) => {
    const bench = createBench(...options);
    opened.push(bench.audit);
    return bench;
  };
  /** Waits until something holds. */
  async function until(holds: () => boolean): Promise<void> {
    while (!holds()) await sleep(2);
  }

  beforeEach(async () => {
    ({ folder, remove } = await createFolder());
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((audit) => audit.close()));
    await remove();
  });

  it("requests each page once, tells a result for each row, and leaves no files", async () => {
    const service = createFake({ latency: 1 });
    const { add, finished, results, progress } = open(folder, service);
    const pages = [
      ...urls(20),
      "example.org/page/3",
      { url: "https://www.example.org/page/4#top", row: 22, Password: "x" },
    ];
    assert.equal(await add(pages), 22);
    const last = await finished();
    assert.equal(service.carriedOut.length, 20);
    assert.deepEqual(
      results.map(({ index }) => index).sort((a, b) => a - b),
      Array.from(pages.keys()),
    );
    assert.deepEqual(results.find(({ index }) => index === 21)?.input, {
      url: "https://www.example.org/page/4#top",
      row: 22,
    });
    const { perMinute: _, ...counts } = last;
    assert.deepEqual(counts, {
      batch: "default",
      total: 22,
      done: 22,
      created: 22,
      regenerated: 0,
      fresh: 0,
      failed: 0,
      uncertain: 0,
      waiting: 0,
      dropped: 0,
      secondsLeft: 0,
      paused: false,
      finished: true,
    });
    assert.equal(progress.filter(({ finished }) => finished).length, 1);
    await until(() => service.most() <= 3);
    await sleep(20);
    assert.deepEqual(await readdir(join(folder, "node")), []);
  });

  it("rejects what is no list, and tells invalid rows at once", async () => {
    const service = createFake();
    const { add, finished, results } = open(folder, service);
    for (const pages of ["", " \n", [], 7, null, {}, undefined])
      await assert.rejects(add(pages), { name: "SeoError", code: "SEO_INPUT" }, String(pages));
    const loop: unknown[] = [];
    loop.push(loop);
    const rows = [null, "hello world", { name: "x" }, "x".repeat(2e6), "mailto://a", loop, 5, { url: 5n }, "a.example"];
    assert.equal(await add(rows), 9);
    const { failed, created } = await finished();
    assert.deepEqual([failed, created], [8, 1]);
    for (const { outcome, error, index } of results)
      if (index < 8) assert.match(`${outcome} ${error?.code} ${error?.message}`, /^failed SEO_INPUT .*\.$/);
    assert.deepEqual(service.carriedOut, ["create a.example"]);
    assert.ok(JSON.stringify(results).length < 10_000);
  });

  it("reads text line by line", async () => {
    const service = createFake();
    const { add, finished } = open(folder, service);
    await add("\uFEFFhttps://a.example/1\r\n\r\n  a.example/2\n");
    await finished();
    assert.deepEqual(service.carriedOut, ["create a.example/1", "create a.example/2"]);
  });

  it("continues with the same list, and joins pages that are new", async () => {
    const service = createFake({ latency: 20 });
    const { add, finished, results } = open(folder, service, { share: 1 });
    await add(urls(3));
    assert.equal(await add(urls(3).reverse()), 0);
    assert.equal(await add([...urls(5, 2), "bad url", "example.org/page/6"]), 5);
    const { total, created, failed } = await finished();
    assert.deepEqual([total, created, failed], [8, 7, 1]);
    assert.equal(new Set(results.map(({ index }) => index)).size, 8);
    assert.equal(service.carriedOut.length, 6);
  });

  it("begins a new round once a batch has finished", async () => {
    const service = createFake();
    const { add, finished, progress } = open(folder, service);
    await add(urls(2));
    await finished();
    progress.length = 0;
    assert.equal(await add(urls(2)), 2);
    await finished();
    assert.equal(service.carriedOut.length, 4);
  });

  it("works through the oldest batch first, with at most its share in flight", async () => {
    const service = createFake({ latency: 5, fate: (page) => (page.endsWith("5") ? "lost" : "answered") });
    const { add, finished, results } = open(folder, service, { share: 2 });
    await add(urls(30), { batch: "first" });
    await add(urls(10, 100), { batch: "second" });
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
      Array.from({ length: 250 }, (_, index) => {
        const generated = day((index * 7) % 250);
        return {
          id: index + 1,
          url: `example.org/page/${(index % 200) + 1}`,
          created_at: day(400),
          generated_at: generated,
        };
      });

    for (const [existing, maxAge] of [
      ["create", undefined],
      ["return", undefined],
      ["return", 30],
      ["regenerate", undefined],
      ["regenerate", 30],
    ] as const)
      it(`plans ${existing} with a maximum age of ${maxAge}`, async () => {
        const known = reports();
        const service = createFake({}, structuredClone(known));
        const { add, finished, results } = open(folder, service);
        await add(urls(220), { existing, ...(maxAge !== undefined && { maxAge }) });
        await finished();
        const age = (at: string) => (Date.now() - Date.parse(at)) / 86_400_000;
        for (const { index, outcome, record } of results) {
          const own = known.filter(({ url }) => url === `example.org/page/${index + 1}`);
          const newest = own.sort((a, b) => b.generated_at.localeCompare(a.generated_at))[0];
          const recent = newest && (maxAge === undefined ? existing === "return" : age(newest.generated_at) <= maxAge);
          const expected =
            existing === "create" || !newest
              ? "created"
              : recent
                ? "fresh"
                : existing === "regenerate"
                  ? "regenerated"
                  : "created";
          assert.equal(outcome, expected, `${index} ${newest?.generated_at}`);
          if (expected === "fresh" || expected === "regenerated")
            assert.equal((record as { id: number }).id, newest?.id);
        }
        assert.equal(results.length, 220);
        assert.equal(service.listed(), existing === "create" ? 0 : existing === "return" && maxAge ? 1 : 3);
      });
  });

  describe("of an account that cannot go on", () => {
    const refused = new SeoError("SEO_UNAUTHORIZED", "The service rejected the API key (401).", { attempts: 1 });

    it("pauses after five failures in a row, and probes with another page", async () => {
      const clock = createManualClock();
      let refuses = true;
      const service = createFake({ fate: () => (refuses ? refused : "answered") });
      const { add, results, errors, audit, finished } = open(folder, service, { clock, share: 1 });
      await add(urls(20));
      await until(() => errors.length === 1);
      await sleep(20);
      const [progress] = await audit.progress();
      assert.match(
        String(progress?.paused),
        /^The batch "default" is paused: 5 pages in a row failed\. The service rej/,
      );
      assert.deepEqual([progress?.waiting, progress?.failed], [20, 0]);
      assert.equal(errors[0]?.code, "SEO_UNAUTHORIZED");
      clock.pass(QUARTER);
      await sleep(20);
      assert.equal((await audit.progress())[0]?.waiting, 20);
      assert.equal(errors.length, 1);
      refuses = false;
      await audit.resume("default");
      const { created, failed } = await finished();
      assert.deepEqual([created, failed], [14, 6]);
      assert.equal(results.length, 20);
      assert.equal(errors.length, 1);
      assert.deepEqual(service.carriedOut.length, new Set(service.carriedOut).size);
    });

    it("tells failures that are the pages'", async () => {
      const bad = (page: string) => Number(page.split("/").at(-1)) % 3 > 0;
      const service = createFake({ fate: (page) => (bad(page) ? refused : "answered") });
      const { add, finished, errors } = open(folder, service, { share: 1 });
      await add(urls(30));
      const { created, failed } = await finished();
      assert.deepEqual([created, failed, errors.length], [10, 20, 0]);
    });

    it("finishes although its last pages fail", async () => {
      const clock = createManualClock();
      const service = createFake({ fate: (page) => (Number(page.split("/").at(-1)) > 3 ? refused : "answered") });
      const { add, finished, errors } = open(folder, service, { share: 1, clock });
      await add(urls(3 + STREAK));
      await until(() => errors.length === 1);
      clock.pass(QUARTER);
      const { created, failed } = await finished();
      assert.deepEqual([created, failed], [3, STREAK]);
    });

    it("retries failed pages, and remembers them in the next process", async () => {
      let refuses = true;
      const service = createFake({ fate: () => (refuses ? refused : "answered") });
      const first = open(folder, service);
      await first.add(urls(4));
      assert.equal((await first.finished()).failed, 4);
      await first.audit.close();
      refuses = false;
      const second = open(folder, service);
      assert.deepEqual(await second.audit.progress(), []);
      assert.equal(await second.audit.retry(), 1);
      assert.equal((await second.finished()).created, 4);
      assert.deepEqual(
        second.results.map(({ repeated }) => repeated),
        [undefined, undefined, undefined, undefined],
      );
    });
  });

  it("pauses, also across processes, and resumes", async () => {
    const service = createFake({ latency: 5 });
    const first = open(folder, service);
    await first.add(urls(20));
    assert.equal(await first.audit.pause(), 1);
    await first.audit.close();
    const done = service.carriedOut.length;
    const second = open(folder, service);
    await sleep(50);
    assert.match(String((await second.audit.progress())[0]?.paused), /msg\.pause/);
    assert.equal(service.carriedOut.length, done);
    await second.audit.resume();
    await second.finished();
    assert.equal(new Set(service.carriedOut).size, 20);
    assert.equal(service.carriedOut.length, 20);
  });

  it("drops what waits on a reset, and begins afresh", async () => {
    const service = createFake({ latency: 5 });
    const { add, audit, finished, results, progress } = open(folder, service);
    await add(urls(50));
    await until(() => results.length > 5);
    assert.equal(await audit.reset("default"), 1);
    const { dropped, done, waiting, total } = await finished();
    assert.equal(done + dropped, total);
    assert.equal(waiting, 0);
    assert.equal(results.length, done);
    progress.length = 0;
    assert.equal(await add(urls(50)), 50);
    await finished();
    await audit.close();
    assert.deepEqual(await readdir(join(folder, "node")), []);
  });

  it("sends nothing after a reset, also not what was lost", async () => {
    const service = createFake({ latency: 30, fate: () => "resent" });
    const { add, audit, finished, results } = open(folder, service, { share: 1 });
    await add(urls(3));
    await until(() => service.looking() > 0);
    await audit.reset();
    const { done, dropped } = await finished();
    assert.deepEqual([done, dropped, results.length, service.carriedOut.length], [0, 3, 0, 0]);
  });

  it("does not look for more than ten lost responses for each request in flight", async () => {
    const service = createFake({ latency: 100, fate: () => "resent" });
    const { add, audit } = open(folder, service, { share: 2 });
    await add(urls(100));
    let most = 0;
    const began = performance.now();
    while (performance.now() - began < 300) {
      most = Math.max(most, service.looking());
      await sleep(2);
    }
    assert.ok(most > 2 && most <= 22, String(most));
    await audit.reset();
  });

  it("tells failures in a row that are no streak, before it goes on and at the end", async () => {
    const refused = new SeoError("SEO_REJECTED", "No.", { attempts: 1 });
    const service = createFake({ fate: (page) => (/[1289]$/.test(page) ? refused : "answered") });
    const { add, finished, results } = open(folder, service, { share: 1 });
    await add(urls(9));
    await finished();
    assert.deepEqual(
      results.map(({ index, outcome }) => `${index} ${outcome}`),
      ["2 created", "0 failed", "1 failed", ...[3, 4, 5, 6].map((index) => `${index} created`), "7 failed", "8 failed"],
    );
  });

  it("creates a report if the one to be regenerated was deleted", async () => {
    const date = "2026-01-01T00:00:00.000Z";
    const known = [{ id: 1, url: "example.org/page/1", created_at: date, generated_at: date }];
    const service = createFake({}, known);
    const { add, finished } = open(folder, service);
    service.afterList = () => known.pop();
    await add(urls(1), { existing: "regenerate" });
    await finished();
    assert.deepEqual(service.carriedOut, ["create example.org/page/1"]);
  });

  it("goes on after a deploy, and is removed with its node", async () => {
    const service = createFake({ latency: 3 });
    const first = open(folder, service);
    await first.add(urls(30));
    await until(() => first.results.length > 4);
    await first.audit.close();
    const second = open(folder, service);
    await until(() => second.results.length > 4);
    const waiting = await second.audit.remove();
    assert.ok(waiting > 0 && waiting < 25, String(waiting));
    assert.deepEqual(await readdir(folder), []);
    assert.equal(service.carriedOut.length, new Set(service.carriedOut).size);
    const indexes = [...first.results, ...second.results].map(({ index }) => index);
    assert.ok(indexes.length >= new Set(indexes).size);
  });
});

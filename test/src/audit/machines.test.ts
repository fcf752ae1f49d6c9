import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type Fleet, SHARE, startFleet } from "../../support/fleet.js";
import { startRelay } from "../../support/relay.js";
import { engines, type Server, startServer } from "../../support/servers.js";
import { urls } from "./fake.js";

/** Every row is reported, none is requested twice, and only what was on its way when a machine died comes again. */
function check(fleet: Fleet, rows: number): void {
  const results = fleet.results();
  assert.deepEqual(fleet.twice(), [], "pages that were requested twice");
  const told = new Set(results.map(({ index }) => index));
  assert.equal(told.size, rows, "rows that were reported");
  for (const index of told) {
    const first = results.filter((result) => result.index === index && !result.repeated);
    assert.ok(first.length <= 1, `row ${index} was reported ${first.length} times without "repeated"`);
  }
  assert.ok(fleet.finals("first") <= 1, "the end was reported twice");
  for (const { outcome, error } of results) assert.equal(outcome, "created", error);
}

for (const engine of engines)
  describe(`Machines that share an audit on ${engine}`, () => {
    let server: Server;
    let fleet: Fleet;
    let number = 0;

    before(async function () {
      server = (await startServer(engine)) ?? this.skip();
    });
    after(() => server?.close());
    afterEach(() => fleet.stop());
    /** Starts machines, of which one brings the list: one that starts late would begin another round with its own. */
    const spawn = (count: number, pages: string[]) =>
      Array.from({ length: count }, (_, index) => fleet.spawn(index === 0 ? pages : undefined));
    const open = (options: Parameters<typeof startFleet>[1] = {}) =>
      startFleet(options.queue ?? server.url, { batch: `batch ${++number}`, ...options });

    it("request no page twice and report every row, whichever is killed", async () => {
      fleet = await open();
      const machines = spawn(3, urls(90));
      for (let kills = 0; kills < 3; kills++) {
        const before = fleet.results().length;
        await fleet.until(() => fleet.results().length > before + 10, "pages are reported");
        await sleep(Math.random() * 100);
        await fleet.kill(machines[kills % 3] as (typeof machines)[number]);
        machines[kills % 3] = fleet.spawn();
      }
      await fleet.until(() => fleet.finals() > 0, "the batch is finished");
      check(fleet, 90);
      assert.equal(fleet.requested(), 90);
    });

    it("report the end again, and say so, if the machine that has reported it died at once", async () => {
      fleet = await open();
      fleet.spawn(urls(5), { dies: true });
      await fleet.until(() => fleet.finals() > 0, "the end is reported");
      fleet.spawn();
      await fleet.until(() => fleet.finals() > 1, "the end is reported again");
      check(fleet, 5);
      assert.equal(fleet.finals("first"), 1);
    });

    it("give the pages of a machine that is frozen to the others", async () => {
      fleet = await open({ latency: 100 });
      const [frozen] = spawn(3, urls(45));
      await fleet.until(() => fleet.results().length > 15, "pages are reported");
      // The machine may still send a request that it was about to send, if the others have looked for that meanwhile.
      await fleet.whileAllWait(SHARE, () => frozen?.kill("SIGSTOP"));
      await fleet.until(() => fleet.finals() > 0, "the batch is finished");
      frozen?.kill("SIGCONT");
      await sleep(1000);
      check(fleet, 45);
    });

    it("continue after the server was killed and restarted", async () => {
      fleet = await open();
      spawn(2, urls(60));
      await fleet.until(() => fleet.results().length > 15, "pages are reported");
      await server.stop("SIGKILL");
      await sleep(1500);
      await server.start();
      await fleet.until(() => fleet.finals() > 0, "the batch is finished");
      check(fleet, 60);
      for (const error of fleet.errors())
        assert.match(error, /^The queue's server 127.0.0.1:\d+ cannot be reached: .*\.$/);
    });

    it("continue without a machine that is cut off, which joins them again", async () => {
      const relay = await startRelay(server.port);
      fleet = await open({ latency: 100 });
      const pages = urls(60);
      fleet.spawn(pages);
      const far = Object.assign(new URL(server.url), { port: relay.port }).href;
      fleet.spawn(undefined, { queue: far });
      await fleet.until(() => fleet.results().length > 15, "pages are reported");
      relay.cut();
      await sleep(3000);
      relay.mend();
      await fleet.until(() => fleet.finals() > 0, "the batch is finished");
      check(fleet, 60);
      relay.stop();
    });

    it("finish without one whose API key is invalid, which reports it once and leaves its pages to the others", async () => {
      fleet = await open();
      const pages = urls(60);
      const bad = fleet.spawn(pages, { apiKey: "revoked-key" });
      await fleet.until(() => fleet.errors().length > 0, "the machine has stopped");
      fleet.spawn();
      await fleet.until(() => fleet.finals() > 0, "the batch is finished");
      check(fleet, 60);
      assert.equal(fleet.errors().length, 1);
      assert.match(String(fleet.errors()[0]), /is paused: \d pages in a row failed\. .*401/);
      assert.equal(bad.exitCode, null);
    });

    it("finish after one was killed that had stopped because its API key was invalid", async () => {
      fleet = await open();
      const bad = fleet.spawn(urls(60), { apiKey: "revoked-key" });
      await fleet.until(() => fleet.errors().length > 0, "the machine has stopped");
      // Without the list of reports, what is lost now would stay uncertain.
      await sleep(2000);
      await fleet.kill(bad);
      fleet.spawn();
      await fleet.until(() => fleet.finals() > 0, "the batch is finished");
      check(fleet, 60);
      assert.equal(fleet.errors().length, 1);
    });
  });

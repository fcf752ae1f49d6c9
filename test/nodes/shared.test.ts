import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.js";
import { type Group, startGroup } from "../support/machines.js";
import { engines, PASSWORD, type Server, startServer } from "../support/servers.js";

const SECOND = 1000;
/** Longer than a machine keeps its pages without a sign of life. */
const ASLEEP = 15 * SECOND;
const PATIENCE = 250 * SECOND;

for (const engine of engines)
  describe(`Three instances with one queue in ${engine}`, () => {
    let server: Server;
    let group: Group;
    let sandbox: Sandbox | undefined;

    before(async function () {
      server = (await startServer(engine)) ?? this.skip();
      group = await startGroup(3, server);
    });
    afterEach(async () => {
      await sandbox?.close();
      sandbox = undefined;
    });
    after(async () => {
      await group?.stop();
      await server?.close();
    });

    const urls = (count: number) => Array.from({ length: count }, (_, index) => `https://example.com/${index}`);
    async function deploy(pages: string[], service: SandboxOptions = {}, settings: Record<string, string> = {}) {
      sandbox = await startSandbox({ reports: 0, now: Date.now, ...service });
      await group.deploy({ service: sandbox, pages, settings });
      return sandbox;
    }
    const stored = ({ reports }: Sandbox) => reports.list({}).map(({ url }) => `https://${url}`);
    const machine = (index: number) => group.machines[index] ?? assert.fail();
    const relay = (index: number) => group.relays[index] ?? assert.fail();
    const reported = (count: number) => group.until(() => group.results().length >= count, PATIENCE);

    /** Asserts that each page was requested once and reported as created, and the end of the batch once. */
    function complete(pages: string[], service: Sandbox): void {
      assert.deepEqual(stored(service).sort(), [...pages].sort());
      const results = group.results();
      const first = results.filter(({ repeated }) => !repeated);
      assert.deepEqual(
        [...new Set(results.map(({ index }) => index))].sort((a, b) => a - b),
        pages.map((_, index) => index),
      );
      assert.ok(first.length <= pages.length, "A page was reported twice, and not as repeated.");
      for (const { outcome, error } of results) assert.equal(outcome, "created", JSON.stringify(error));
      const progress = group.machines.flatMap((one) => one.progress());
      const last = progress.filter(({ finished }) => finished);
      const again = last.filter(({ repeated }) => !repeated).length > 1;
      assert.ok(last.length > 0 && !again, "The end of the batch was reported twice, and not as repeated.");
      assert.deepEqual([last[0]?.total, last[0]?.done, last[0]?.created], Array(3).fill(pages.length));
      assert.ok(progress.every(({ total }) => total === pages.length));
    }

    it("share the pages, and each reports the progress of the whole batch", async () => {
      const pages = urls(60);
      const service = await deploy(pages, { latency: 300 });
      await Promise.all(group.machines.map((one) => one.red().inject("start")));
      await group.finished(pages.length, PATIENCE);
      complete(pages, service);
      for (const one of group.machines) {
        assert.ok(one.results().length > 0, `${one.name} had nothing to do.`);
        assert.ok(one.progress().length > 0, `${one.name} reports no progress.`);
      }
    });

    it("keep to one rate", async () => {
      const pages = urls(13);
      const times: number[] = [];
      const latency = () => {
        times.push(Date.now());
        return 0;
      };
      const service = await deploy(pages, { latency }, { rate: "120" });
      await machine(0).red().inject("start");
      await group.finished(pages.length, PATIENCE);
      complete(pages, service);
      const [first = 0] = times;
      const last = times.at(-1) ?? 0;
      // With a rate of each, they would take a third of that. A request is sent up to a second after it was permitted.
      const least = (times.length - 1) * 500 - 2 * SECOND;
      assert.ok(last - first >= least, `${times.length} requests in ${last - first} ms`);
    });

    it("pause and resume together", async () => {
      const pages = urls(60);
      const service = await deploy(pages, { latency: 200 });
      await machine(0).red().inject("start");
      await reported(10);
      await machine(1).red().inject("pause");
      await group.until(() => group.machines.every((one) => one.progress().at(-1)?.paused), PATIENCE);
      await sleep(SECOND);
      const before = stored(service).length;
      await sleep(SECOND);
      assert.equal(stored(service).length, before);
      await machine(2).red().inject("resume");
      await group.finished(pages.length, PATIENCE);
      complete(pages, service);
    });

    it("lose and duplicate nothing if machines die, freeze and lose their network, and the server restarts", async function () {
      this.timeout(300_000);
      const pages = urls(500);
      // What was noted, but not sent, is sent again only after this; it is longer than a machine is asleep. Seconds.
      const reconcile = "30";
      const service = await deploy(pages, { latency: 250 }, { reconcile });
      await machine(0).red().inject("start");
      await reported(60);
      machine(1).kill("SIGKILL");
      machine(2).kill("SIGSTOP");
      const asleep = sleep(ASLEEP);
      await reported(100);
      relay(0).cut();
      await sleep(3 * SECOND);
      relay(0).mend();
      await reported(130);
      await server.stop("SIGKILL");
      await sleep(SECOND);
      await server.start();
      await machine(1).start();
      await asleep;
      machine(2).kill("SIGCONT");
      await group.finished(pages.length, PATIENCE);
      complete(pages, service);
    });

    it("reveal no password", () => {
      for (const one of group.machines) {
        const { log } = one.red().nodeRed;
        assert.ok(log.length > 0);
        const texts = [...log, JSON.stringify(one.results()), JSON.stringify(one.progress())];
        assert.ok(!texts.some((text) => text.includes(PASSWORD)));
      }
    });
  });

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.js";
import { type Group, type Machine, type Round, startGroup } from "./machines.js";
import { type Engine, PASSWORD, type Server, startServer } from "./servers.js";

const SECOND = 1000;
const PATIENCE = 100 * SECOND;
/** The lock of the lead lasts for 10 seconds. */
const SOON = 7 * SECOND;

/** What the tab of audits shows. */
interface Card {
  node: string;
  batch: string;
  done: number;
  failed: number;
  created: number;
  reason?: string;
  finished: boolean;
}

/** The tests of three instances, in a file for each engine, so that they run at the same time. */
export const describeShared = (engine: Engine) =>
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
    async function deploy(pages: string[], service: SandboxOptions = {}, more: Partial<Round> = {}) {
      sandbox = await startSandbox({ reports: 0, now: Date.now, ...service });
      await group.deploy({ service: sandbox, pages, ...more });
      return sandbox;
    }
    const stored = ({ reports }: Sandbox) => reports.list({}).map(({ url }) => `https://${url}`);
    const machine = (index: number) => group.machines[index] ?? assert.fail();
    const relay = (index: number) => group.relays[index] ?? assert.fail();
    const next = (index: number, by = 1) => (index + by) % group.machines.length;
    const reported = (count: number) => group.until(() => group.results().length >= count, PATIENCE);
    const leader = () => group.leader(PATIENCE);
    const senders = () => [0, 1, 2].filter((index) => machine(index).results().length > 0);

    /** The machine that leads although it has no batch yet: the other ones stand by. */
    async function idleLeader(): Promise<number> {
      const statusOf = (one: Machine) => one.statuses().at(-1);
      const leads = (one: Machine) => statusOf(one) !== undefined && statusOf(one)?.text === undefined;
      const standsBy = (one: Machine) => statusOf(one)?.text?.startsWith("stands by");
      const { machines } = group;
      await group.until(() => machines.some(leads) && machines.filter(standsBy).length === 2, PATIENCE);
      return machines.findIndex(leads);
    }

    /** Asserts that each page was requested once and reported as created, and the end once. */
    function complete(pages: string[], service: Sandbox): void {
      assert.deepEqual(stored(service).sort(), [...pages].sort());
      const results = group.results();
      const first = results.filter(({ repeated }) => !repeated);
      const indexes = [...new Set(results.map(({ index }) => index))].sort((a, b) => a - b);
      assert.deepEqual(indexes, [...pages.keys()]);
      assert.ok(first.length <= pages.length, "A page was reported twice, and not as repeated.");
      for (const { outcome, error } of results) assert.equal(outcome, "created", JSON.stringify(error));
      const progress = group.machines.flatMap((one) => one.progress());
      const last = progress.filter(({ finished }) => finished);
      const again = last.filter(({ repeated }) => !repeated).length > 1;
      assert.ok(last.length > 0 && !again, "The end of the batch was reported twice, and not as repeated.");
      assert.deepEqual([last[0]?.total, last[0]?.done, last[0]?.created], Array(3).fill(pages.length));
      assert.ok(progress.every(({ total }) => total === pages.length));
    }

    it("leave the work to the lead, and each reports the progress", async () => {
      const pages = urls(60);
      const service = await deploy(pages, { latency: 200 });
      await idleLeader();
      await Promise.all(group.machines.map((one) => one.red().inject("start")));
      await group.finished(pages.length, PATIENCE);
      complete(pages, service);
      const [lead = -1, ...others] = senders();
      assert.deepEqual(others, []);
      for (const index of [next(lead), next(lead, 2)]) {
        const during = (one: { text?: string }) => /^stands by · \d+ of 60\b/.test(one.text ?? "");
        assert.ok(machine(index).statuses().some(during), JSON.stringify(machine(index).statuses()));
        await group.until(() => machine(index).statuses().at(-1)?.text === "stands by · 60 of 60", SOON);
        await group.until(() => machine(index).progress().at(-1)?.done === pages.length, SOON);
        for (const { finished } of machine(index).progress()) assert.equal(finished, false);
      }
      assert.doesNotMatch(machine(lead).statuses().at(-1)?.text ?? "", /^stands by/);
    });

    it("show and control the same batches in each editor", async () => {
      const service = await deploy(["no url", ...urls(60)], { latency: 200 });
      const lead = await idleLeader();
      const node = "shared";
      const cards = async (index: number) =>
        (await (await machine(index).red().ask("GET", "/seo-report-audit/batches")).json()) as Card[];
      const every = async (holds: (card: Card) => boolean) => {
        let all: Card[][] = [];
        await group.until(async () => {
          all = await Promise.all([0, 1, 2].map(cards));
          return all.every((one) => one.some((card) => card.batch === node && holds(card)));
        }, PATIENCE);
        return all;
      };
      const control = (index: number, id: string, how: string) =>
        machine(index).red().ask("POST", "/seo-report-audit/control", { node: id, batch: node, do: how });
      await machine(next(lead)).red().inject("start");
      const [[card] = []] = await every(({ done, failed }) => done > 5 && failed === 1);
      const id = card?.node ?? "";
      await control(next(lead), id, "pause");
      await every(({ reason }) => reason === "message");
      await control(next(lead, 2), id, "resume");
      await every(({ finished, created }) => finished && created === 60);
      const rows = await Promise.all(
        [0, 1, 2].map(async (index) => {
          return (await machine(index).red().ask("GET", `/seo-report-audit/rows?node=${id}&batch=${node}`)).text();
        }),
      );
      assert.match(String(rows[0]), /^\[\{"index":0,"url":"no url","outcome":"failed"/);
      assert.deepEqual(rows, [rows[0], rows[0], rows[0]]);
      await control(next(lead), id, "retry");
      await control(next(lead, 2), id, "reset");
      assert.equal(stored(service).length, 60);
    });

    it("continue within seconds if the lead is deployed again, and if it is stopped", async () => {
      const pages = urls(120);
      let last = 0;
      const latency = () => {
        last = Date.now();
        return 250;
      };
      const service = await deploy(pages, { latency }, { settings: { reconcile: "5" } });
      await machine(0).red().inject("start");
      await reported(15);
      await group.redeploy(await leader());
      await leader();
      await reported(45);
      const lead = await leader();
      await machine(lead).stop();
      const stopped = Date.now();
      await group.until(() => last > stopped, SOON);
      await machine(lead).start();
      await group.finished(pages.length, PATIENCE);
      complete(pages, service);
    });

    it("lose and duplicate nothing if the lead dies, freezes and loses its network, and the server restarts", async () => {
      const pages = urls(300);
      // What was noted, but not sent, is sent again only after this; it is longer than a machine is asleep. Seconds.
      const service = await deploy(pages, { latency: 250 }, { settings: { reconcile: "25" } });
      await machine(0).red().inject("start");
      await reported(40);
      const first = await leader();
      machine(first).kill("SIGKILL");
      const second = await leader();
      assert.notEqual(second, first);
      await machine(first).start();
      machine(second).kill("SIGSTOP");
      // A result that was written at that moment is not of the next lead.
      await sleep(SECOND);
      const third = await leader();
      assert.notEqual(third, second);
      machine(second).kill("SIGCONT");
      relay(third).cut();
      await sleep(3 * SECOND);
      relay(third).mend();
      await leader();
      await server.stop("SIGKILL");
      await sleep(SECOND);
      await server.start();
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

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { clock as realClock } from "../../../src/audit/clock.js";
import { type FindJournals, readKept } from "../../../src/audit/failures.js";
import { BETWEEN, type Progress } from "../../../src/audit/progress.js";
import type { Requests } from "../../../src/audit/requests.js";
import { lostData } from "../../../src/audit/shared/faults.js";
import { type JobEntry, pack, prefixOf } from "../../../src/audit/shared/letter.js";
import { appendAlone, entriesIn, type Line, openLog, readLines } from "../../../src/audit/shared/log.js";
import type { Lease, Queue } from "../../../src/audit/shared/server.js";
import { createShared, type Shared } from "../../../src/audit/shared/shared.js";
import { deposed } from "../../../src/audit/trouble.js";
import { SeoError } from "../../../src/errors.js";
import { deferred } from "../../../src/turns.js";
import { closeAfterEach } from "../../support/opened.js";
import { type Relay, startRelay } from "../../support/relay.js";
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
  key,
  unreadable,
  urls,
} from "./fake.js";
import { createMemory, fastClock, type Way } from "./memory.js";

/** Of machines in memory. */
const SHORT = { lockDuration: 200, stalledInterval: 50 };
/** Of one that keeps the lead although the process is busy. */
const CALM = { lockDuration: 3000, stalledInterval: 50 };
const PAGES = 8;
/** So many lives of a lead at the same time. */
const LIVES = 40;
/** Milliseconds after which a life that has not ended hangs. */
const HANGS = 60_000;

const rejected = new SeoError("SEO_REJECTED", "No.", { attempts: 1 });
const unauthorized = new SeoError("SEO_UNAUTHORIZED", "No.", { attempts: 1 });
const refused = new SeoError("SEO_FORBIDDEN", "No.", { statusCode: 403, attempts: 1 });

/** A client whose API key is invalid. */
const withoutKey = (service: FakeService) => (): Requests => ({
  ...service.connect(),
  request: () => Promise.reject(unauthorized),
  pages: unreadable(unauthorized),
});

/** The same as long as `isBroken`; with `canRead`, but for the list of reports. */
const withoutKeyWhile =
  (service: FakeService, isBroken: () => boolean, canRead = false) =>
  (): Requests => {
    const [works, fails] = [service.connect(), withoutKey(service)()];
    const now = () => (isBroken() ? fails : works);
    return {
      ...works,
      request: (...one) => now().request(...one),
      pages: (...one) => (canRead ? works : now()).pages(...one),
    };
  };

/** No response arrives. */
const silence = (what: string) => (what.startsWith("carried out") ? new Promise<void>(() => {}) : undefined);

/** Each page was requested once, and each row reported. */
function checkPages(service: FakeService, benches: Bench[], rows: number, pages = rows): void {
  assert.equal(new Set(service.carriedOut).size, service.carriedOut.length, "a page was requested twice");
  assert.equal(service.carriedOut.length, pages);
  const results = benches.flatMap((one) => one.results).filter(({ batch }) => batch === "default");
  assert.equal(new Set(results.map(({ index }) => index)).size, rows);
  const first = results.filter(({ outcome, repeated }) => outcome === "created" && !repeated);
  assert.equal(new Set(first.map(({ index }) => index)).size, first.length, "a row was reported twice");
}

/** A message: what is sent before, and how many rows or batches it is about. */
interface Message {
  before(lead: Bench, memory: Memory): Promise<unknown>;
  send(sender: Bench): Promise<number>;
  count: number;
  /** The rows of its batch, if they are not as many as its pages. */
  rows?: number;
  /** Before it, a page fails. */
  fails?: boolean;
  /** The batch is paused, until it is resumed. */
  pauses?: boolean;
  drops?: boolean;
  lease?: Lease;
}

type Memory = ReturnType<typeof createMemory>;

const jobsIn = ({ queues }: Memory) => [...(queues.get("service")?.values() ?? [])];
const kept = (memory: Memory) => jobsIn(memory).filter(({ state }) => state === "prioritized");
/** Whether a line has such an entry. */
const hasEntry = (line: string, type: JobEntry["type"]) => line.includes(`"type":"${type}"`);
/** The entries that count of all jobs. */
const entriesOf = (memory: Memory) =>
  jobsIn(memory).flatMap(({ logs }) => entriesIn<JobEntry>(logs.map((text) => JSON.parse(text))));

const addPaused = (pages: number) => async (lead: Bench) => {
  await lead.add(urls(pages));
  assert.equal(await lead.audit.pause(), 1);
};
const addKept =
  (pages: number) =>
  async ({ add }: Bench, memory: Memory) => {
    await add(urls(pages));
    await until(() => kept(memory).length === 2);
  };
const addAll = ({ add }: Bench) => add(urls(PAGES));
const reset = ({ audit }: Bench) => audit.reset("default");
/** More than one line of a journal. */
const MANY = 1100;
const many = Array.from({ length: MANY }, (_, row) => urls(1, 1 + (row % PAGES))).flat();
const longList: Message = {
  before: async () => {},
  send: ({ add }) => add(many),
  count: MANY,
  rows: MANY,
  lease: CALM,
};
const messages: Record<string, Message> = {
  "a new list": { before: async () => {}, send: addAll, count: PAGES },
  "a list for an open batch": { before: addPaused(6), send: addAll, count: 2, pauses: true },
  "a list for a batch that has finished": { before: addKept(1), send: addAll, count: PAGES, fails: true },
  "msg.pause": { before: addAll, send: ({ audit }) => audit.pause(), count: 1, pauses: true },
  "msg.resume": { before: addPaused(PAGES), send: ({ audit }) => audit.resume(), count: 1 },
  "msg.retry": { before: addKept(PAGES), send: ({ audit }) => audit.retry("default"), count: 1, fails: true },
  "msg.reset": { before: addPaused(PAGES), send: reset, count: 1, drops: true },
  "msg.reset of a page in flight": { before: addAll, send: reset, count: 1, drops: true },
  "msg.reset of a batch that has finished": { before: addKept(PAGES), send: reset, count: 1, fails: true, drops: true },
};

/**
 * Sends a message to another machine than the lead. One of the lead's next commands, or that which appends a line, goes that
 * way, and so does another one so many later; or it dies. Returns how many commands the message took.
 */
async function live(message: Message, at: number | string, way: Way, dies: boolean, gap = 1): Promise<number> {
  // Messages take longer than usual, because many lives share the process.
  const memory = createMemory(HANGS);
  let commands = Number.NEGATIVE_INFINITY;
  let isDead = false;
  let fails = true;
  const answered = deferred();
  const held = message.fails ? undefined : answered.promise;
  const service = createFake({
    latency: 5,
    fate: (page) => (fails && page.endsWith("/1") ? rejected : "answered"),
    // Otherwise the batch of a message could be over before that is handled.
    step: (what) => (/^carried out .*[678]$/.test(what) ? held : undefined),
    look: () => held,
  });
  let first = Number.POSITIVE_INFINITY;
  function next(line: string): Way {
    if (isDead) return "lost";
    const begins = ++commands > 0 && (typeof at === "number" ? commands === at : line.includes(at));
    if (begins) first = Math.min(first, commands);
    if (commands !== first && commands !== first + gap) return "answered";
    isDead = dies;
    return way;
  }
  const lead: Bench = createBench("", service, {
    share: 1,
    clock: fastClock,
    result: (result) => isDead || lead.results.push(result),
    create: memory.auditing(message.lease ?? SHORT, {}, next),
  });
  await lead.add(["no page"], { batch: "first" });
  const sender = createBench("", service, { create: memory.auditing(SHORT), clock: fastClock });
  try {
    // The sender may be too late to see the progress of the first batch.
    await until(() => kept(memory).length === 1);
    fails = message.fails ?? false;
    await message.before(lead, memory);
    fails = false;
    const ids = new Set(memory.queues.get("service")?.keys());
    commands = 0;
    const answer = await message.send(sender);
    const took = commands;
    assert.ok(typeof at === "number" || first <= took, `no line has ${at}`);
    answered.resolve();
    assert.ok(answer > 0 && answer <= message.count, `${answer} instead of ${message.count}`);
    const letter = jobsIn(memory).find(({ id }) => !ids.has(id))?.id;
    if (message.pauses) {
      await until(() => sender.progress.at(-1)?.paused === "Paused.");
      await sender.audit.resume();
    }
    await until(() => kept(memory).length === 1 && memory.unfinished().length === 0);
    const effects = entriesOf(memory).filter((entry) => "letter" in entry && entry.letter === letter);
    if (!(message.drops && message.fails)) assert.equal(effects.length, 1, "effects of the message");
    if (!message.drops) checkPages(service, [lead, sender], message.rows ?? PAGES, PAGES);
    const told = new Set([lead, sender].flatMap(({ results }) => results.map(({ input }) => key(String(input)))));
    for (const page of service.carriedOut) assert.ok(told.has(page.replace("create ", "")), `${page} was not reported`);
    return took;
  } finally {
    answered.resolve();
    await Promise.all([lead, sender].map(({ audit }) => audit.close()));
  }
}

/** Does things, some at the same time, of which none may fail. */
async function tryAll(all: (() => Promise<unknown>)[]): Promise<void> {
  const failed: string[] = [];
  const next = all.entries();
  const work = async () => {
    for (const [index, one] of next) {
      const late = sleep(HANGS, undefined, { ref: false }).then(() => assert.fail("it hangs"));
      await Promise.race([one(), late]).catch(({ message }) => failed.push(`${index}: ${message}`));
    }
  };
  await Promise.all(Array.from({ length: LIVES }, work));
  assert.deepEqual(failed, []);
}

/** The fate of a command, and whether the lead dies then. */
const ways: [Way, boolean][] = [
  ["lost", true],
  ["mute", true],
  ["lost", false],
  ["mute", false],
  ["late", false],
];

describe("The messages that one machine handles for all", () => {
  let memory: Memory;
  const use = closeAfterEach();

  beforeEach(() => {
    memory = createMemory();
  });

  /** A node of a machine, which is closed after the test. */
  function open(service: FakeService, options: BenchOptions = {}, way?: (line: string) => Way): Bench {
    const bench = createBench("", service, { create: memory.auditing(SHORT, {}, way), ...options });
    void use(bench.audit);
    return bench;
  }
  /** One with a list of so many pages. */
  async function begin(pages: number, ...parameters: Parameters<typeof open>): Promise<Bench> {
    const bench = open(...parameters);
    await bench.add(urls(pages));
    return bench;
  }

  const leadJob = () => memory.queues.get("service-lead")?.get("lead");
  const changeLead = (changes: object) => Object.assign(leadJob() ?? assert.fail("no machine has led"), changes);
  /** What the lead says. */
  const news = () => Object(leadJob()?.data);

  for (const [name, message] of Object.entries(messages))
    it(`takes effect once if two commands of ${name} fail, or the lead dies`, async () => {
      let took = 0;
      // A lead that the machine holds up loses its lock, and then another one takes the message.
      for (let tries = 0; took <= 4 && tries < 5; tries++)
        took = await live(message, Number.POSITIVE_INFINITY, "answered", false);
      assert.ok(took > 4, `${took} commands`);
      const commands = Array.from({ length: took + 6 }, (_, index) => index + 1);
      await tryAll(ways.flatMap(([way, dies]) => commands.map((command) => () => live(message, command, way, dies))));
    });

  it("takes effect once if a line of a long list cannot be appended, or the lead dies at it", async () => {
    const lines = ['"from":0', '"from":1000', '"type":"list"'];
    await tryAll(ways.flatMap(([way, dies]) => lines.map((line) => () => live(longList, line, way, dies))));
  });

  it("adds a list once if its result cannot be saved, and another command fails after that", async () => {
    const gaps = Array.from({ length: 12 }, (_, index) => index + 1);
    const list = messages["a list for an open batch"] as Message;
    await tryAll(gaps.map((gap) => () => live(list, '"type":"answer"', "lost", false, gap)));
  });

  for (const way of ["lost", "mute"] as const)
    it(`takes effect once if its result cannot be saved until its batch has finished: ${way}`, async () => {
      let misses = 0;
      const requested: string[] = [];
      let failing = /[1357]$/;
      const service = createFake({
        latency: 30,
        fate: (page) => (failing.test(page) ? rejected : "answered"),
        step: (what) => void (what.startsWith("request") && requested.push(what)),
      });
      const wayOf = (line: string) => (hasEntry(line, "answer") && misses-- > 0 ? way : "answered");
      const { add, audit, finished, progress } = await begin(4, service, { share: 1 }, wayOf);
      misses = 15;
      assert.ok((await add(urls(PAGES))) > 0);
      await finished();
      progress.length = 0;
      misses = 10;
      // The others show that its failure is not the account's, while the batch is open.
      failing = /1$/;
      assert.equal(await audit.retry(), 1);
      await finished();
      const twice = requested.filter((page, index) => requested.indexOf(page) < index);
      const failed = [1, 3, 5, 7].map((page) => `request example.org/page/${page}`);
      assert.deepEqual(twice, failed);
    });

  it("continues a batch that was reopened if the command that kept it took effect after that, and its lead dies", async () => {
    let isDead = false;
    let fails = true;
    const service = createFake({ latency: 50, fate: () => (fails ? rejected : "answered") });
    const lead = await begin(1, service, {}, () => (isDead ? "lost" : "answered"));
    await until(() => kept(memory).length === 1);
    fails = false;
    assert.equal(await lead.audit.retry(), 1);
    const putAside = () => {
      for (const job of jobsIn(memory)) job.state = "prioritized";
    };
    putAside();
    assert.equal(await lead.audit.retry(), 1);
    putAside();
    isDead = true;
    const { created, failed } = await open(service).finished();
    assert.deepEqual([created, failed], [1, 0]);
  });

  it("requests no invalid row if its batch is retried and it was not noted that its result was sent", async () => {
    const requested: string[] = [];
    let fails = true;
    const fate = (page: string) => (fails && page.endsWith("/1") ? rejected : "answered");
    const service = createFake({ fate, step: (what) => void requested.push(what) });
    const wayOf = (line: string) => (hasEntry(line, "delivered") ? "lost" : "answered");
    const { add, audit, finished, progress } = open(service, {}, wayOf);
    await add([...urls(3), "no page"]);
    await finished();
    progress.length = 0;
    fails = false;
    assert.equal(await audit.retry(), 1);
    const { total, done, created, failed } = await finished();
    assert.deepEqual([total, done, created, failed], [4, 4, 3, 1]);
    for (const what of requested) assert.match(what, /example\.org\/page/);
  });

  it("requests each page once, and reports each row, at whatever side effect the lead dies", async () => {
    const sides = Array.from({ length: 3 * PAGES }, (_, index) => index + 1);
    await tryAll(
      sides.map((last) => async () => {
        const memory = createMemory();
        let side = 0;
        const isDead = () => side >= last;
        const count = () => {
          side++;
        };
        const service = createFake({ latency: 5, step: count });
        const start = (isLost: () => boolean): Bench => {
          const bench: Bench = createBench("", service, {
            result(result) {
              if (!isLost()) bench.results.push(result);
              count();
            },
            create: memory.auditing(SHORT, {}, () => (isLost() ? "lost" : "answered")),
          });
          return bench;
        };
        const lead = start(isDead);
        await lead.add(urls(PAGES)).catch(() => {});
        // If the process is busy, this machine leads before the other one dies.
        const other = start(() => false);
        await until(() => isDead() && memory.unfinished().length === 0);
        checkPages(service, [lead, other], PAGES);
        await Promise.all([lead, other].map(({ audit }) => audit.close()));
      }),
    );
  });

  it("takes a list back that no machine has handled, which then has no effect", async () => {
    const server = memory.connect();
    await server.queue("service-lead").add("lead", { holder: "", progress: "{}" }, { jobId: "lead" });
    const silent = await server.worker("service-lead", LEASE).getNextJob("silent", { block: false });
    // Nobody takes the lead from it.
    changeLead({ until: Number.POSITIVE_INFINITY });
    const service = createFake();
    const { add, finished, results } = open(service);
    await assert.rejects(add(urls(PAGES)), {
      code: "SEO_NETWORK",
      message: "No machine that leads has responded. The message has no effect: send it again.",
    });
    await silent?.moveToWait("silent");
    await add(["no page"], { batch: "next" });
    await finished("next");
    await sleep(SHORT.lockDuration);
    assert.deepEqual([service.carriedOut, results.length], [[], 1]);
    assert.equal(await add(urls(PAGES)), PAGES);
    await finished();
  });

  it("has another lead for each SEO service node", async () => {
    const service = createFake({ latency: 5 });
    const [one, two] = [memory.share(SHORT), memory.share(SHORT)];
    const openNode = (shared: Shared, id: string) =>
      open(service, { create: inQueue(shared, { service: id, node: `node of ${id}` }) });
    const first = openNode(one, "a");
    await first.add(["no page"], { batch: "first" });
    const second = openNode(two, "b");
    await second.add(["no page"], { batch: "first" });
    const [others, otherFirst] = [openNode(one, "b"), openNode(two, "a")];
    assert.deepEqual(await Promise.all([others.add(urls(3)), otherFirst.add(urls(5, 4))]), [3, 5]);
    await Promise.all([first.finished(), second.finished()]);
    const countOf = ({ results }: Bench) => results.filter(({ batch }) => batch === "default").length;
    const counts = [first, second, others, otherFirst].map(countOf);
    assert.deepEqual([counts, service.carriedOut.length], [[5, 3, 0, 0], 8]);
  });

  it("continues the batches of a node if another one of its process is closed", async () => {
    const service = createFake({ latency: 20 });
    const shared = memory.share(SHORT);
    const openNode = (node: string) => open(service, { create: inQueue(shared, { node }) });
    const [closed, other] = [openNode("closed"), openNode("other")];
    await closed.add(urls(50));
    await other.add(urls(20, 100));
    await until(() => other.results.length > 0);
    await closed.audit.close();
    assert.equal((await other.finished()).created, 20);
    // Longer than the time after which it looks for letters of nodes that it does not have.
    await sleep(SHORT.lockDuration);
    await other.add(urls(2, 200));
    await until(() => new Set(other.results.map(({ input }) => input)).size === 22);
    assert.deepEqual(other.errors, []);
    const again = open(service, { create: inQueue(shared, { node: "closed" }) });
    await again.finished();
    checkPages(service, [closed, again], 50, 72);
  });

  it("lets a machine lead that has a node which the lead lacks", async () => {
    const service = createFake({ latency: 20 });
    const openNode = (shared: Shared, node: string) => open(service, { create: inQueue(shared, { node }) });
    const lead = openNode(memory.share(SHORT), "both");
    await lead.add(urls(60));
    const shared = memory.share(SHORT);
    const [both, own] = [openNode(shared, "both"), openNode(shared, "own")];
    await until(() => both.audit.latest().length > 0);
    assert.deepEqual(own.audit.latest(), []);
    assert.equal(await own.add(urls(5, 100)), 5);
    assert.equal((await own.finished()).created, 5);
    await both.finished();
    assert.equal(own.results.length, 5);
    checkPages(service, [lead, both], 60, 65);
  });

  it("takes over what is open, the oldest first", async () => {
    const service = createFake({ latency: 20 });
    const before = open(service, { share: 1 });
    const names = Array.from({ length: 25 }, (_, index) => `batch ${index}`);
    for (const batch of names) {
      await before.add(urls(30), { batch });
      assert.equal(await before.audit.pause(batch), 1);
    }
    await before.audit.close();
    // The last command that reads a journal is the fastest.
    let wait = 100;
    function pause(id: string): number {
      if (!id.startsWith(prefixOf("node"))) return 0;
      wait = Math.max(0, wait - 4);
      return wait;
    }
    const { audit } = open(service, { create: memory.auditing(SHORT, {}, undefined, pause) });
    const found = async () => (await audit.progress()).map(({ batch }) => batch);
    await until(async () => (await found()).length === names.length);
    assert.deepEqual(await found(), names);
  });

  it("hands over for a node that it does not have, although the node's letter could not be read at first", async () => {
    const service = createFake();
    let fails = true;
    function way(id: string): Way {
      if (!fails || !id.startsWith(prefixOf("other"))) return "answered";
      fails = false;
      return "lost";
    }
    await open(service, { create: memory.auditing(SHORT, { node: "own" }, way) }).add(["no page"]);
    const other = open(service, { create: memory.auditing(SHORT, { node: "other" }) });
    assert.equal(await other.add(urls(3)), 3);
    assert.equal(fails, false);
    await other.finished();
  });

  it("shows the end of each batch to the machines that stand by, whatever the server returns together with it", async () => {
    // Before a batch ends, the lead checks that it still leads. That is answered together with the next jobs, which follow some
    // microtasks later, one more each time.
    let answered: ReturnType<typeof deferred> | undefined;
    let later = 0;
    async function pause(what: string) {
      if (what.includes('"entries":[]')) {
        answered = deferred();
        await Promise.race([answered.promise, sleep(20)]);
      } else if (what === "jobs" && answered) {
        answered.resolve();
        answered = undefined;
        for (let step = ++later; step > 0; step--) await undefined;
      }
    }
    const service = createFake();
    const lead = await begin(1, service, { create: memory.auditing(SHORT, {}, undefined, pause) });
    const other = open(service);
    for (let page = 2; page < 30; page++) {
      await lead.add(urls(1, page), { batch: String(page) });
      await until(() => other.progress.some(({ batch, finished }) => batch === String(page) && finished));
    }
    assert.ok(later > 0, "nothing was held up");
  });

  it("shows no batch that was reset after the list that was added then has finished", async () => {
    const found = deferred();
    const fate = (page: string) => (page.endsWith("/1") ? "lost" : "answered");
    const service = createFake({ latency: 50, fate, look: () => found.promise });
    const calm = { create: memory.auditing(CALM) };
    const lead = await begin(1, service, calm);
    await until(() => service.looking() === 1);
    await lead.audit.reset();
    await lead.add(urls(1, 2));
    await until(() => lead.results.length === 1);
    await lead.add(urls(5, 3), { batch: "other" });
    const other = open(service, calm);
    const shown = () => other.audit.progress();
    await until(async () => (await shown()).some(({ batch, finished }) => batch === "other" && finished));
    const left = (await shown()).filter(({ finished }) => !finished);
    assert.deepEqual(left, []);
    found.resolve();
  });

  it("shows the last figures of a pause on the machines that stand by", async () => {
    const clock = createManualClock();
    const service = createFake({ latency: 100 });
    const lead = await begin(12, service, { share: 4 });
    const other = open(service, { clock });
    await until(() => lead.results.length > 3);
    await lead.audit.pause();
    await until(() => other.progress.at(-1)?.paused);
    await until(() => lead.results.length === service.carriedOut.length);
    await until(() => {
      clock.pass(1000);
      return other.progress.at(-1)?.done === lead.results.length;
    });
    // No seconds had passed before.
    assert.ok(other.progress.filter(({ paused }) => !paused).length <= 1);
    assert.equal(await other.audit.close(), lead.audit.latest()[0]?.waiting);
  });

  for (const [what, fails] of Object.entries({ "be reached": "", "write, but can read": "-lead" }))
    it(`shows on the machines that stand by that the server cannot ${what}`, async () => {
      const service = createFake({ latency: 20 });
      let isAway = false;
      const way = (name: string) => (isAway && name.endsWith(fails) ? "lost" : "answered");
      const lead = await begin(50, service, { share: 1 }, way);
      let recoveries = 0;
      const other = open(service, { recovered: () => recoveries++ }, way);
      const last = () => other.progress.at(-1);
      await until(() => last()?.paused === false);
      isAway = true;
      await until(() => last()?.reason === "server");
      const { length } = other.progress;
      await sleep(100);
      assert.deepEqual(other.progress.slice(length), []);
      assert.deepEqual(other.audit.latest()[0]?.reason, "server");
      assert.deepEqual([other.errors.length, recoveries], [1, 0]);
      isAway = false;
      await until(() => last()?.paused === false && recoveries > 0);
      // The next lead repeats the result that could not be noted, if another one leads.
      await until(() => new Set([...lead.results, ...other.results].map(({ index }) => index)).size === 50);
    });

  it("shows finished batches on all machines, also while another one takes the lead", async () => {
    const service = createFake();
    const lead = await begin(1, service);
    await until(() => String(news().progress).includes('"finished":true'));
    const [next, other] = [open(service), open(service)];
    const has = ({ audit }: Bench) => audit.latest().some(({ finished }) => finished);
    await until(() => has(next) && has(other));
    assert.deepEqual([...next.progress, ...other.progress], []);
    let misses = 0;
    const looks = setInterval(() => (misses += Number(!has(other))), 1);
    await lead.audit.close();
    await until(() => next.add(urls(1, 2), { batch: "next" }).catch(() => 0));
    await until(() => other.progress.some(({ batch, finished }) => batch === "next" && finished));
    clearInterval(looks);
    assert.deepEqual([misses, other.audit.latest().length], [0, 2]);
  });

  it("keeps the failures of a batch until a new list of its name is saved", async () => {
    let isBroken = false;
    const service = createFake({ fate: () => rejected });
    const way = (line: string): Way => (isBroken && hasEntry(line, "batch") ? "lost" : "answered");
    const { add } = await begin(3, service, {}, way);
    await until(() => kept(memory).length === 1);
    isBroken = true;
    await assert.rejects(add(urls(3, 100)), { code: "SEO_NETWORK" });
    assert.equal(kept(memory).length, 1);
    isBroken = false;
    await until(() => kept(memory)[0]?.logs.some((line) => line.includes("page/100")));
    await until(() => kept(memory).length === 1);
  });

  it("says that the server cannot be reached, but not before a message would fail", async () => {
    let isAway = true;
    const { add, errors, finished } = open(createFake(), {}, () => (isAway ? "lost" : "answered"));
    const why = "The queue's server cannot be reached. The message has no effect: send it again.";
    const failed = assert.rejects(add(urls(1)), { code: "SEO_NETWORK", message: why });
    await sleep(200);
    assert.deepEqual(errors, []);
    await failed;
    await until(() => errors.length === 1);
    isAway = false;
    await until(() => add(urls(2)).catch(() => 0));
    assert.deepEqual([(await finished()).created, errors.length], [2, 1]);
  });

  it("says that a message can still take effect if the machine that leads has it, and does not respond", async () => {
    let isSilent = false;
    const wayOf = (line: string) => (isSilent && hasEntry(line, "answer") ? "lost" : "answered");
    const { audit } = await begin(1, createFake(), {}, wayOf);
    isSilent = true;
    const why = "The message can still take effect: look at the progress before you send it again.";
    await assert.rejects(audit.pause(), { message: `No machine that leads has responded. ${why}` });
  });

  /** Has another machine lead, which says this of its batches. */
  function leadElsewhere(...batches: object[]): unknown {
    const data = { holder: "other", progress: JSON.stringify({ node: batches }) };
    changeLead({ state: "active", token: "other", until: Number.POSITIVE_INFINITY, data });
    return data;
  }

  it("stands by, without an error, once another machine has taken the lead from it", async () => {
    const { audit, errors } = await begin(100, createFake({ latency: 50 }));
    const batch = { ...audit.latest()[0], batch: "of the other" };
    let data: unknown;
    await until(() => {
      // News that were on their way can replace them once.
      if (news().holder !== "other") data = leadElsewhere(batch);
      return audit.latest()[0]?.batch === batch.batch;
    });
    await sleep(SHORT.lockDuration);
    assert.deepEqual([errors, leadJob()?.data], [[], data]);
  });

  it("shows what the lead says at once if it is new, a pause or an end, otherwise every 5 s", async () => {
    let looks = 0;
    const clock = createManualClock();
    const way = (what: string) => {
      if (what === "service-lead") looks++;
      return "answered" as const;
    };
    await memory.connect().queue("service-lead").add("lead", {}, { jobId: "lead" });
    const old = { batch: "old", finished: true };
    const batch = { batch: "new", paused: false as const, finished: false };
    const steps: [pass: number, more: Partial<Progress>, isDue: boolean][] = [
      [0, {}, true],
      [BETWEEN - 1, { done: 2 }, false],
      [1, { done: 3 }, true],
      [BETWEEN, { done: 3 }, false],
      [0, { done: 4 }, true],
      [0, { done: 4, paused: "Paused." }, true],
      [0, { done: 4 }, true],
      [0, { done: 9, finished: true }, true],
    ];
    leadElsewhere(old, batch);
    const { audit, progress } = open(createFake(), { clock }, way);
    const look = async () => {
      const next = looks + 2;
      await until(() => looks > next);
    };
    for (const [pass, more, isDue] of steps) {
      leadElsewhere(old, { ...batch, ...more });
      await look();
      clock.pass(pass);
      await look();
      assert.deepEqual(progress.splice(0), isDue ? [{ ...batch, ...more }] : [], JSON.stringify(more));
      assert.deepEqual(audit.latest(), [old, { ...batch, ...more }]);
    }
  });

  it("publishes what has changed, and again if an older command has replaced it", async () => {
    await begin(1, createFake());
    await until(() => String(news().progress).includes('"finished":true'));
    await sleep(SHORT.lockDuration);
    const { data } = leadJob() ?? {};
    await sleep(SHORT.lockDuration);
    assert.equal(leadJob()?.data, data);
    changeLead({ data: { ...Object(data), progress: "{}" } });
    await until(() => news().progress === Object(data).progress);
  });

  it("continues if another machine has its lock, but does not lead", async () => {
    const { add, finished } = await begin(1, createFake());
    await finished();
    changeLead({ token: "other", until: Number.POSITIVE_INFINITY });
    await sleep(SHORT.lockDuration);
    assert.equal(await add(urls(3), { batch: "next" }), 3);
    assert.equal((await finished("next")).created, 3);
  });

  it("hands over once all responses are there", async () => {
    const held = deferred();
    const step = (what: string) => (what.startsWith("carried out") ? held.promise : undefined);
    const service = createFake({ step });
    const { results } = await begin(1, service);
    await until(() => service.carriedOut.length === 1);
    const { holder } = news();
    changeLead({ progress: holder });
    await sleep(2 * SHORT.lockDuration);
    assert.equal(news().holder, holder);
    held.resolve();
    await until(() => news().holder !== holder);
    assert.deepEqual([results.length, results[0]?.outcome, results[0]?.reconciled], [1, "created", undefined]);
  });

  /** What came after the end of a batch, and then its state, how many are open beside another one, and whether it was taken over. */
  const ends: [what: string, state: "wait" | "prioritized", entry: JobEntry | undefined, expected: unknown[]][] = [
    ["kept", "prioritized", undefined, ["prioritized", 0, false]],
    ["kept, which was not noted by the queue", "wait", undefined, ["prioritized", 0, true]],
    ["discarded", "prioritized", { type: "removed" }, ["prioritized", 0, false]],
    ["retried", "prioritized", { type: "retry" }, ["wait", 1, true]],
  ];
  for (const [what, state, entry, expected] of ends)
    it(`takes ${expected[1] ? "a" : "no"} batch over that was ${what}`, async () => {
      const before = await begin(1, createFake({ fate: () => rejected }));
      await until(() => kept(memory).length === 1);
      await before.audit.close();
      const [job = assert.fail()] = kept(memory);
      if (entry) await appendAlone(memory.connect().queue("service"), job.id, entry);
      Object.assign(job, { state });
      const { length } = job.logs;
      const service = createFake({ step: silence });
      const { audit, add } = open(service);
      await add(urls(1, 2), { batch: "other" });
      const unfinished = (await audit.progress()).filter(({ finished }) => !finished);
      assert.deepEqual([job.state, unfinished.length - 1, job.logs.length > length], expected);
    });

  for (const [when, command] of Object.entries({ read: "", taken: '"took"' }))
    it(`continues if a job is gone when it is ${when}`, async () => {
      await (await begin(9, createFake({ step: silence }))).audit.close();
      const [{ id } = assert.fail()] = jobsIn(memory);
      let isGone = false;
      const remove = (what: string) => {
        if (what === "jobs") isGone = true;
        else if (isGone && what.includes(command)) memory.queues.get("service")?.delete(id);
        return 0;
      };
      const { add, finished, errors } = open(createFake(), { create: memory.auditing(SHORT, {}, undefined, remove) });
      await add(urls(2), { batch: "next" });
      assert.deepEqual([(await finished("next")).created, errors], [2, []]);
    });

  it("continues a batch that another machine has made since it began to lead", async () => {
    const elsewhere = createMemory();
    const service = createFake();
    const other = open(service, { create: elsewhere.auditing(SHORT), connect: withoutKey(service) });
    await other.add(urls(3));
    await other.audit.close();
    const { finished, errors, add } = open(service);
    await add(["no page"], { batch: "first" });
    const [job = assert.fail()] = jobsIn(elsewhere);
    memory.queues.get("service")?.set(job.id, job);
    assert.deepEqual([(await finished()).created, errors], [3, []]);
  });

  it("retries the new list of a name, and not the batch that it replaces", async () => {
    const service = createFake({ fate: () => rejected });
    let isHeld = false;
    const pause = (what: string) => (isHeld && what === "jobs" ? until(() => jobsIn(memory).length === 3) : 0);
    const { add, audit } = await begin(1, service, { create: memory.auditing(CALM, {}, undefined, pause) });
    await until(() => kept(memory).length === 1);
    isHeld = true;
    assert.deepEqual(await Promise.all([add(urls(2, 2)), audit.retry("default")]), [2, 1]);
    await until(() => jobsIn(memory)[0]?.logs.some((line) => hasEntry(line, "removed")));
  });

  it("removes letters, and batches that have finished or were discarded, a minute later", async () => {
    const { now } = performance;
    let passed = 0;
    performance.now = () => now.call(performance) + passed;
    await use({
      close() {
        performance.now = now;
      },
    });
    const fate = (page: string) => (page.endsWith("/2") ? rejected : "answered");
    const { add, audit, finished } = await begin(1, createFake({ fate }));
    await finished();
    await add(urls(2), { batch: "kept" });
    await until(() => kept(memory).length === 1);
    assert.equal(await audit.reset(), 1);
    assert.equal(jobsIn(memory).length, 3);
    passed = 50_000;
    await sleep(SHORT.lockDuration);
    assert.equal(jobsIn(memory).length, 3);
    passed = 61_000;
    await until(() => jobsIn(memory).length === 0);
  });

  it("says at once that the server rejects a message", async () => {
    const server = memory.connect();
    function queue(name: string) {
      const { add, ...rest } = server.queue(name);
      const rejects: typeof add = (kind, ...more) =>
        kind === "letter" ? Promise.reject(new Error("NOPERM")) : add(kind, ...more);
      return { ...rest, add: rejects } as Queue;
    }
    const shared = memory.shareBy(CALM, () => ({ ...server, queue }));
    await assert.rejects(open(createFake(), { create: inQueue(shared) }).add(urls(1)), { code: "SEO_CONFIG" });
  });

  it("takes no message back whose reply could not be read before", async () => {
    const service = createFake();
    await begin(1, service);
    let isBack = false;
    const way = (what: string) => (isBack || !what.startsWith(prefixOf("node")) ? "answered" : "lost");
    const pause = async (what: string) => {
      if (!what.includes('"back"')) return;
      isBack = true;
      await until(() => jobsIn(memory).some(({ logs }) => logs.some((line) => line.includes("other"))));
    };
    const { add } = open(service, { create: memory.auditing(SHORT, {}, way, pause) });
    assert.equal(await add(urls(2), { batch: "other" }), 2);
    assert.ok(isBack);
  });

  it("says that a batch that is kept cannot be retried if its log is damaged", async () => {
    const { audit } = await begin(3, createFake({ fate: () => rejected }));
    await until(() => kept(memory).length === 1);
    kept(memory)[0]?.logs.push("{");
    await assert.rejects(audit.retry("default"), { code: "SEO_INPUT" });
    assert.deepEqual([await audit.reset("other"), await audit.reset()], [0, 1]);
  });

  it("does not offer the lead because of what a node that it lacks has done", async () => {
    const service = createFake();
    const before = await begin(1, service, { create: memory.auditing(SHORT, { node: "own" }) });
    await before.finished();
    await before.audit.close();
    await open(service).add(["no page"]);
    await sleep(2 * SHORT.lockDuration);
    assert.equal(news().offered, false);
  });

  it("does not take the lead that is offered if it cannot do the work", async () => {
    const service = createFake();
    const openBad = () => open(service, { connect: withoutKey(service), create: memory.auditing(CALM) });
    await openBad().add(urls(20));
    await until(() => news().offered);
    const { holder } = news();
    const { errors } = openBad();
    await sleep(CALM.lockDuration);
    assert.deepEqual([news().holder, errors], [holder, []]);
  });

  it("does not take the lead once more when it has given it back", async () => {
    const service = createFake();
    const held = deferred();
    let isHeld = false;
    let isLost = false;
    function pause(what: string) {
      if (!isLost || what !== "service-lead") return 0;
      isHeld = true;
      return held.promise;
    }
    const { audit, finished } = await begin(1, service, { create: memory.auditing(CALM, {}, undefined, pause) });
    await finished();
    const lead = leadJob();
    assert.equal(lead?.state, "active");
    // As if Redis was restarted.
    isLost = true;
    Object.assign(lead, { state: "wait", token: "" });
    await until(() => isHeld);
    setTimeout(held.resolve, 200);
    await audit.close();
    await sleep(300);
    assert.equal(lead.state, "wait");
  });

  for (const hangs of [false, true])
    it(`gives the lead back, and ends its connection, before it is closed${hangs ? ", unless the server hangs" : ""}`, async () => {
      let isClosing = false;
      let closed = 0;
      const pause = () => (hangs && isClosing ? new Promise(() => {}) : 0);
      const close = async () => void closed++;
      const shared = memory.shareBy(CALM, () => ({ ...memory.connect(undefined, pause), close }));
      const { audit } = await begin(1, createFake(), { create: inQueue(shared) });
      await until(() => jobsIn(memory).some(({ logs }) => logs.some((line) => hasEntry(line, "removed"))));
      isClosing = true;
      await audit.close();
      assert.deepEqual([leadJob()?.state, closed], [hangs ? "active" : "wait", 1]);
    });

  it("keeps the lead when it does not offer it any more", async () => {
    const service = createFake();
    let passed = 0;
    const clock = { ...realClock, now: () => performance.now() + passed };
    // Longer than a busy computer can hold up the lead.
    const options = { ...SHORT, lockDuration: 1000 };
    await begin(20, service, { connect: withoutKey(service), clock, create: memory.auditing(options) });
    await until(() => news().offered);
    passed = 20 * 60_000;
    await until(() => !news().offered);
    const { holder } = news();
    const other = open(service, { clock, create: memory.auditing(options) });
    await until(() => other.progress.length > 0);
    await sleep(2 * options.lockDuration);
    assert.equal(news().holder, holder);
  });

  for (const cause of [unauthorized, refused])
    it(`comes to rest if each machine can read the list, but request no page: ${cause.code}`, async () => {
      const service = createFake();
      let requests = 0;
      const request = () => Promise.reject(++requests && cause);
      const connect = () => ({ ...service.connect(), request });
      const [one] = [1, 2].map(() => open(service, { connect }));
      await one?.add(urls(200));
      await sleep(15 * SHORT.lockDuration);
      const before = requests;
      await sleep(10 * SHORT.lockDuration);
      assert.ok(before === requests && requests <= 30, `${before}, then ${requests}`);
    });

  for (const dies of [true, false])
    it(`replaces a batch that is kept if ${dies ? "the lead dies" : "a command fails"} once its new list is saved`, async () => {
      const service = createFake({ fate: () => rejected });
      let misses = 0;
      const way = (line: string): Way => {
        if (hasEntry(line, "removed") && misses < 3) misses++;
        else if (!dies || misses === 0) return "answered";
        return "lost";
      };
      await begin(3, service, {}, way);
      await until(() => kept(memory).length === 1);
      const [old] = kept(memory);
      assert.equal(await open(service).add(urls(3, 100)), 3);
      await until(() => old?.state === "wait" && kept(memory).length === 1);
      assert.ok(misses > 0);
    });

  it("reads a kept journal once that says that it was discarded", async () => {
    const service = createFake({ fate: () => rejected });
    const shared = memory.share(SHORT);
    await begin(3, service, { create: inQueue(shared) });
    await until(() => kept(memory).length === 1);
    let reads = 0;
    const journals: FindJournals = async function* (name) {
      for await (const { key, read } of shared.journals("node", "service")(name)) {
        const counted = () => {
          reads++;
          return read();
        };
        yield { key, read: counted };
      }
    };
    let known = await readKept(journals, new Map());
    assert.equal(([...known.values()][0] as Progress)?.failed, 3);
    const by = { by: "dead", n: 1, entries: [{ type: "removed" }] };
    kept(memory)[0]?.logs.push(...[{ took: "dead" }, by].map((line) => JSON.stringify(line)));
    for (const _ of [1, 2, 3]) {
      known = await readKept(journals, known);
      assert.deepEqual([...known.values()], [undefined]);
    }
    assert.equal(reads, 2);
  });
});

/** A machine, and the network between it and the queue. */
interface Machine {
  shared: Shared;
  relay: Pick<Relay, "cut" | "mend" | "stop">;
}

/** Starts a machine where all share a queue. */
type Start = () => Promise<Machine>;

function inMemory(): Start {
  const memory = createMemory(HANGS);
  return async () => {
    let isCut = false;
    const change = (cut: boolean) => () => {
      isCut = cut;
    };
    const shared = memory.share(LEASE, () => (isCut ? "lost" : "answered"));
    return { shared, relay: { cut: change(true), mend: change(false), stop() {} } };
  };
}

function onServer({ url, port }: Server): Start {
  const prefix = `p${randomBytes(4).toString("hex")}`;
  return async () => {
    const relay = await startRelay(port);
    const place = { url: url.replace(`:${port}`, `:${relay.port}`), prefix };
    return { shared: createShared(place, { lease: LEASE }), relay };
  };
}

describe("The lead of a queue, in memory and on each server", () => {
  let servers: Server[];
  const use = closeAfterEach();

  before(async () => {
    const started = await Promise.all(engines.map((engine) => startServer(engine)));
    servers = started.filter((server) => server !== undefined);
  });
  after(() => Promise.all(servers.map((server) => server.close())));

  type Open = (service: FakeService, options?: BenchOptions) => Promise<Bench & { die(): void }>;

  const openOn =
    (start: Start): Open =>
    async (service, options = {}) => {
      const { shared, relay } = await start();
      await use(relay);
      let isDead = false;
      const bench: Bench = createBench("", service, {
        create: inQueue(shared),
        result: (result) => isDead || bench.results.push(result),
        ...options,
      });
      await use({
        close() {
          // A machine without a network needs many seconds to close.
          relay.mend();
          return bench.audit.close();
        },
      });
      const die = () => {
        isDead = true;
        relay.cut();
      };
      return Object.assign(bench, { die });
    };

  /** A story that is told everywhere, at the same time. */
  const everywhere = (title: string, story: (open: Open) => Promise<void>) =>
    it(title, () => Promise.all([inMemory(), ...servers.map(onServer)].map((start) => story(openOn(start)))));

  everywhere("dies once a list was sent to a machine that stands by, which then leads", async (open) => {
    const service = createFake({ latency: 5 });
    const lead = await open(service);
    await lead.add(["no page"], { batch: "first" });
    const other = await open(service);
    await until(() => other.audit.latest().length > 0);
    const added = other.add(urls(30));
    await sleep(Math.random() * 100);
    lead.die();
    assert.equal(await added, 30);
    await other.finished();
    checkPages(service, [lead, other], 30);
  });

  everywhere("reports the end again, and says so, if the machine that has reported it died at once", async (open) => {
    const service = createFake();
    const progress = ({ finished }: { finished: boolean }) => finished && lead.die();
    const lead: Bench & { die(): void } = await open(service, { progress });
    // It may die before it reads the answer to its own letter.
    void lead.add(urls(5)).catch(() => {});
    assert.equal((await lead.finished()).repeated, undefined);
    const other = await open(service);
    assert.equal((await other.finished()).repeated, true);
    checkPages(service, [lead, other], 5);
  });

  everywhere("continues, paused, and handles messages if its API key is invalid and it is alone", async (open) => {
    const service = createFake();
    const alone = await open(service, { connect: withoutKey(service) });
    await alone.add(urls(20));
    await until(() => alone.errors.length > 0);
    // Meanwhile it hands over.
    await sleep(2 * LEASE.lockDuration);
    await until(async () => /requests in a row failed\. No\./.test(String((await alone.audit.progress())[0]?.paused)));
    assert.deepEqual([await alone.audit.pause(), await alone.audit.resume()], [1, 1]);
    assert.equal(await alone.add(["no page"], { batch: "next" }), 1);
    await alone.finished("next");
    assert.equal(alone.errors.length, 1);
    assert.equal(await alone.audit.reset("default"), 1);
  });

  everywhere("hands over to a machine that stands by if its own API key is invalid", async (open) => {
    const service = createFake({ latency: 5 });
    const bad = await open(service, { connect: withoutKey(service) });
    await bad.add(["no page"], { batch: "first" });
    const good = await open(service);
    await until(() => good.audit.latest().length > 0);
    await bad.add(urls(20));
    assert.equal((await good.finished()).created, 20);
    checkPages(service, [good], 20);
    assert.deepEqual([bad.errors.length, good.errors.length], [1, 0]);
    // The machine does not take the lead back.
    await sleep(2 * LEASE.lockDuration);
    await bad.add(urls(3, 100), { batch: "next" });
    assert.equal((await good.finished("next")).created, 3);
    assert.equal(bad.errors.length, 1);
  });

  everywhere("hands back to a machine that handed over before, once that can do the work again", async (open) => {
    const service = createFake({ latency: 5 });
    let repaired = false;
    const first = await open(service, { connect: withoutKeyWhile(service, () => !repaired) });
    await first.add(["no page"], { batch: "first" });
    const second = await open(service, { connect: withoutKeyWhile(service, () => repaired) });
    await first.add(urls(3));
    assert.equal((await second.finished()).created, 3);
    repaired = true;
    await second.add(urls(20, 100), { batch: "next" });
    assert.equal((await first.finished("next")).created, 20);
    repaired = false;
    await first.add(urls(20, 200), { batch: "last" });
    assert.equal((await second.finished("last")).created, 20);
    assert.equal(first.errors.length, 2);
    assert.ok(first.progress.findLast(({ batch }) => batch === "next")?.finished);
  });

  const repairs: [why: string, lists: boolean, when: "msg.resume" | "15 minutes"][] = [
    ["could not lead", false, "msg.resume"],
    ["has led in vain", true, "msg.resume"],
    ["has led in vain", true, "15 minutes"],
  ];
  for (const [why, lists, when] of repairs)
    everywhere(`hands over to a machine that ${why}, once that was repaired, after ${when}`, async (open) => {
      const service = createFake({ latency: 5 });
      let repaired = false;
      let passed = 0;
      const clock = { ...realClock, now: () => performance.now() + passed };
      const first = await open(service, { connect: withoutKeyWhile(service, () => true, lists) });
      await first.add(urls(30));
      const second = await open(service, { connect: withoutKeyWhile(service, () => !repaired, lists), clock });
      await until(() => second.errors.length > 0 || !lists);
      await sleep(4 * LEASE.lockDuration);
      repaired = true;
      await sleep(2 * LEASE.lockDuration);
      assert.deepEqual(service.carriedOut, [], "The first one leads.");
      if (when === "msg.resume") await second.audit.resume();
      else passed = 15 * 60_000;
      const { created, failed } = await second.finished();
      assert.deepEqual([created > 0, created + failed], [true, 30]);
    });

  everywhere("hands over to a machine that starts later, if it leads only because it was alone", async (open) => {
    const service = createFake({ latency: 5 });
    const openBad = () => open(service, { connect: withoutKey(service) });
    const bad = [await openBad(), await openBad()];
    await bad[0]?.add(urls(20));
    await until(() => bad.some(({ errors }) => errors.length > 0));
    await sleep(4 * LEASE.lockDuration);
    const good = await open(service);
    assert.equal((await good.finished()).created, 20);
    checkPages(service, [good], 20);
  });
});

describe("A letter", () => {
  it("lets the process do other work while its list becomes a text", async () => {
    let turns = 0;
    let next = setImmediate(function turn() {
      turns++;
      next = setImmediate(turn);
    });
    const rows = Array.from({ length: 5000 }, () => ({ input: "" }));
    await pack({ do: "list", name: "", settings: { existing: "create" }, rows });
    clearImmediate(next);
    assert.ok(turns >= 4 && turns <= 10, `${turns} turns`);
  });
});

describe("The journal of a job", () => {
  it("is read whole, however long it is", async () => {
    const memory = createMemory();
    const jobs = memory.connect().queue("service");
    await jobs.add("job", {}, { jobId: "long" });
    const lines = Array.from({ length: 100_001 }, (_, n) => ({ by: "a", n, entries: [n] }));
    Object.assign(memory.queues.get("service")?.get("long") ?? {}, { logs: lines.map((one) => JSON.stringify(one)) });
    assert.deepEqual(await readLines(jobs, "long"), lines);
  });

  it("takes nothing more if another machine has taken the job, or a part of it is missing", async () => {
    const memory = createMemory();
    let way: Way = "answered";
    const jobs = memory.connect(() => way).queue("service");
    const openJob = () => openLog<number>(jobs, "one", () => Promise.resolve("missing"));
    await jobs.add("job", {}, { jobId: "one" });
    const first = await openJob();
    way = "mute";
    await assert.rejects(async () => first?.log.add(1), { code: "ETIMEDOUT" });
    way = "answered";
    await first?.log.add(2);
    const second = await openJob();
    assert.deepEqual(entriesIn(second?.lines ?? []), [2]);
    await assert.rejects(async () => first?.log.add(3), deposed);
    await second?.log.add(4);
    assert.deepEqual(entriesIn(await readLines<number>(jobs, "one")), [2, 4]);
    memory.queues.get("service")?.get("one")?.logs.splice(2);
    await assert.rejects(async () => second?.log.add(5), lostData);
    await jobs.remove("one");
    await assert.rejects(
      async () => second?.log.add(6),
      (cause) => cause === "missing",
    );
    assert.equal(await openJob(), undefined);
  });

  const holder = fc.constantFrom("a", "b", "c");
  const number = fc.nat(4);
  const line: fc.Arbitrary<Line<number>> = fc.oneof(
    fc.record({ took: holder }),
    fc.record({
      by: holder,
      n: number,
      entries: fc.array(fc.nat(), { maxLength: 2 }),
      void: fc.option(fc.array(number, { maxLength: 2 }), { nil: undefined }),
    }),
    fc.constant({ back: true as const }),
  );
  const log = fc.array(line, { maxLength: 20 });
  const lastHolder = (lines: Line<number>[]) => {
    const last = lines.findLast((one) => "took" in one);
    return last && "took" in last ? last.took : undefined;
  };

  it("counts a line if its machine took the job last, and did not void it", () => {
    const property = fc.property(log, (lines) => {
      const counts = (index: number) => {
        const one = lines[index];
        return one && "by" in one && one.by === lastHolder(lines.slice(0, index)) ? one : undefined;
      };
      const expected: number[] = [];
      for (const index of lines.keys()) {
        const one = counts(index);
        const isVoid = [...lines.keys()].some((other) => {
          const later = counts(other);
          return one && later?.by === one.by && later.void?.includes(one.n);
        });
        if (one && !isVoid) expected.push(...one.entries);
      }
      assert.deepEqual(entriesIn(lines), expected);
    });
    fc.assert(property);
  });

  it("does not change if a machine takes the job, another one writes, or its sender takes it back", () => {
    const property = fc.property(log, line, (lines, next) => {
      if ("by" in next && next.by === lastHolder(lines)) return;
      assert.deepEqual(entriesIn([...lines, next]), entriesIn(lines));
    });
    fc.assert(property);
  });

  it("is damaged if any of its lines is no JSON", () => {
    const property = fc.property(log, fc.nat(20), (lines, at) => {
      assert.throws(() => entriesIn(lines.toSpliced(at, 0, { damaged: "{" })), /no JSON/);
    });
    fc.assert(property);
  });
});

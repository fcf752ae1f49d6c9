import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mock } from "node:test";
import { setTimeout as late } from "node:timers/promises";
import type { Node } from "node-red";
import { nodeRedModule } from "../../dev/nodered.js";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.js";
import type { Progress } from "../../src/audit/progress.js";
import { audit as row } from "../../src/operations.js";
import { batchesIn, urls } from "../src/audit/fake.js";
import { type Account, type AccountOptions, type Asked, type Fate, startAccount } from "../support/account.js";
import { type Flow, type Message, node, service, startFlow } from "../support/flow.js";
import { firstPage, shapes } from "../support/lists.js";
import { closeAfterEach, openFolder } from "../support/opened.js";
import { type FlowNode, helper } from "../support/red.js";
import { until } from "../support/time.js";

const AUDIT = "seo-report-audit";
const KEY = "seo-reports.status";

interface Result {
  topic: string;
  payload: { url: string } | null;
  seo: { batch: string; index: number; input: unknown; outcome: string; error?: { code: string; message: string } };
}

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

describe("The audit node", () => {
  let flow: Flow;
  let sandbox: Sandbox;
  let folder: string;
  const open = closeAfterEach();

  const nodes = (settings: object = {}, baseUrl = sandbox.url): FlowNode[] => [
    service("service", baseUrl, { retries: "0", reconcile: "1" }),
    node("audit", AUDIT, { folder, existing: "create", wires: [["result"], ["progress"]], ...settings }),
    node("show", "seo-report-show", { reportId: "payload", reportIdType: "msg" }),
  ];

  async function startService(options: SandboxOptions = {}): Promise<void> {
    sandbox = await open(startSandbox({ apiKey: "key-of-tests", reports: 0, ...options }));
  }
  async function start(all: FlowNode[]): Promise<void> {
    flow = await open(startFlow(all));
  }
  async function run(settings: object = {}, options: SandboxOptions = {}): Promise<void> {
    await startService(options);
    await start(nodes(settings));
  }
  /** Runs the node with a service that can lose responses. */
  async function runWith(options: AccountOptions, settings: object = {}): Promise<Account> {
    const account = await open(startAccount(options));
    await start(nodes(settings, account.url));
    return account;
  }

  beforeEach(async () => {
    folder = (await open(openFolder())).path;
  });

  const results = () => flow.of("result") as unknown as Result[];
  const progress = () => flow.of("progress").map(({ payload }) => payload as Progress);
  const last = (batch = "default") => progress().findLast((one) => one.batch === batch);
  const finished = (batch = "default") => flow.until(() => last(batch)?.finished && last(batch));
  /** The IDs in the order of the rows. */
  const rows = () => results().toSorted((a, b) => a.seo.index - b.seo.index);
  const status = () => flow.statuses("audit").at(-1);
  const ring = () => status()?.fill;
  const stored = () => sandbox.requests.filter(({ method }) => method === "POST").length;
  async function checkNothingIsStored(): Promise<void> {
    const before = stored();
    await late(100);
    assert.equal(stored(), before);
  }

  /** Unlike a payload, it need not be cloned. */
  const setList = (list: unknown) => helper.getNode("audit")?.context().flow.set("list", list);

  async function send(msg: Message = {}): Promise<Message | undefined> {
    const { caught, ends } = await flow.send("audit", msg);
    assert.equal(ends, 1);
    return caught;
  }
  async function succeed(msg: Message): Promise<void> {
    const caught = await send(msg);
    assert.equal(caught, undefined, JSON.stringify(caught?.seo));
  }
  async function fail(msg: Message): Promise<{ code: string; message: string }> {
    const caught = await send(msg);
    assert.ok(caught);
    const { operation, error } = caught.seo as { operation: string; error: { code: string; message: string } };
    const { message, code } = caught.error as { message: string; code: string };
    assert.deepEqual([operation, message, code], [AUDIT, error.message, error.code]);
    return error;
  }

  it("reads every property from where the edit dialog says", async () => {
    await run({
      ...{ pages: "list", pagesType: "flow", batch: "spring", batchType: "str" },
      ...{ existing: "how", existingType: "msg", privacy: '"private"', privacyType: "jsonata" },
    });
    setList(["example.com/a"]);
    await succeed({ how: "create" });
    await finished("spring");
    const created = sandbox.reports.list({}).map(({ url, privacy }) => [url, privacy]);
    assert.deepEqual(created, [["example.com/a", 1]]);
  });

  it("sends a result per row and the progress, with the documented properties", async () => {
    const batch = "spring";
    await run();
    await succeed({ payload: ["example.com/a", "no url", "http://example.com/a"], topic: batch });
    const end = await finished(batch);
    const [first, bad, twin] = plain(rows());
    const [report] = sandbox.reports.list({});
    const { _msgid, payload, ...message } = first;
    assert.deepEqual([typeof _msgid, payload.id, payload.url], ["string", report?.id, "example.com/a"]);
    const seo = { operation: AUDIT, batch, index: 0, input: "example.com/a", outcome: "created", attempts: 1 };
    assert.deepEqual(message, { topic: batch, seo });
    assert.deepEqual(twin.seo, { ...seo, index: 2, input: "http://example.com/a" });
    assert.deepEqual(twin.payload, payload);
    assert.equal(bad.payload, null);
    const { error, ...other } = bad.seo;
    assert.deepEqual(other, { ...seo, index: 1, input: "no url", outcome: "failed", attempts: 0 });
    assert.deepEqual([error.code, error.attempts, error.uncertain], ["SEO_INPUT", 0, false]);
    assert.match(error.message, /^The URL must be the address of a web page, .*; it is "no url"\.$/);
    assert.deepEqual([stored(), flow.of("caught").length, flow.of("completed").length], [1, 0, 1]);

    const documented = row.outputs?.[1]?.payload?.toSorted();
    assert.deepEqual([...Object.keys(end), "reason", "repeated", "reset", "secondsToWait"].toSorted(), documented);
    const { perMinute, ...figures } = end;
    assert.equal(typeof perMinute, "number");
    assert.deepEqual(figures, {
      ...{ batch, total: 3, done: 3, created: 2, regenerated: 0, fresh: 0, failed: 1, uncertain: 0 },
      ...{ invalid: 1, waiting: 0, reconciling: 0, dropped: 0, secondsLeft: 0, paused: false, finished: true },
    });
    for (const { topic } of flow.of("progress")) assert.equal(topic, batch);
    for (const key of Object.keys(other)) assert.ok(row.metadata?.includes(key), key);
  });

  it("regenerates by default, and returns a report that is recent enough", async () => {
    await run({ existing: undefined, maxAge: "1", maxAgeType: "str" });
    const report = sandbox.reports.store({ url: "example.com/new" });
    await succeed({ payload: ["example.com/new", "example.com/none"] });
    await finished();
    const outcomes = rows().map(({ seo }) => seo.outcome);
    assert.deepEqual(outcomes, ["fresh", "created"]);
    assert.equal(report.generation, 0);
    await succeed({ payload: ["example.com/new"], topic: "again" });
    await finished("again");
    flow.forget();
    await flow.deploy(nodes({ existing: undefined }));
    await succeed({ payload: ["example.com/new"] });
    await finished();
    assert.deepEqual([results()[0]?.seo.outcome, report.generation], ["regenerated", 1]);
  });

  describe("rejects, and sends no request for,", () => {
    const wrong = { pages: "$x(", pagesType: "jsonata" };
    const retry = { retry: true, batch: "x" };
    const bad: Record<string, [msg: object, message: RegExp, settings?: object]> = {
      "an empty list": [{ payload: [] }, /^The list of pages is empty: msg\.payload has no URL\.$/],
      "invalid parameters, all at once": [
        { payload: "example.com", how: "again", age: -1 },
        /^existing must be one of create .*; msg\.how is "again"\. maxAge must be a whole number.*; msg\.age is -1\.$/,
        { existing: "how", existingType: "msg", maxAge: "age", maxAgeType: "msg" },
      ],
      "an expression that fails": [{}, /^Could not read pages from the JSONata expression/, wrong],
      "an unknown batch": [{ pause: true, topic: "x" }, /^There is nothing to pause: no batch is named "x", or it has/],
      "a batch whose name cannot become text": [
        { reset: true, topic: "x", batch: { toString: () => assert.fail() } },
        /^batch must be text or a number; msg\.batch is of type object\.$/,
      ],
      "a retry without a failed page": [retry, /no batch is named "x", or no page of it has failed\.$/],
    };
    for (const [name, [msg, message, settings]] of Object.entries(bad))
      it(name, async () => {
        await run(settings);
        const error = await fail({ ...msg });
        assert.equal(error.code, "SEO_INPUT");
        assert.match(error.message, message);
        const { fill, shape, text } = status() ?? {};
        assert.deepEqual([fill, shape], ["red", "ring"]);
        assert.match(String(text), /^seo-reports\.error\.SEO_INPUT\.status · (ba|pa|ex)…$/);
        assert.equal(sandbox.requests.length, 0);
        await succeed({ resume: true });
        assert.equal(status()?.text, undefined, "an error is shown until the next message");
      });
  });

  it("sends a row that Node-RED cannot clone to Catch nodes, and continues", async () => {
    const { util } = nodeRedModule<{ util: { cloneMessage(msg: { seo?: Result["seo"] }): object } }>("@node-red/util");
    const { cloneMessage } = util;
    await open({ close: () => Object.assign(util, { cloneMessage }) });
    util.cloneMessage = (msg) => {
      if (msg.seo?.index === 0 && msg.seo.input) throw new RangeError("Maximum call stack size exceeded");
      return cloneMessage(msg);
    };
    await run({ pages: "list", pagesType: "flow", wires: [["result", "second"], ["progress"]] });
    setList(["example.com/first", "example.com/second"]);
    await succeed({});
    const { done } = await finished();
    assert.deepEqual([done, stored()], [2, 2]);
    await flow.until(() => results().some(({ payload }) => payload?.url === "example.com/second"));
    const [caught] = await flow.take("caught", 1);
    const { error, seo } = caught as unknown as { error: { message: string }; seo: Result["seo"] };
    assert.match(error.message, /^A message could not be sent: /);
    assert.deepEqual([seo.index, seo.outcome, seo.input], [0, "created", undefined]);
  });

  describe("is controlled by a message that", () => {
    const state = (batch: string) => last(batch)?.paused;

    it("pauses and resumes one batch", async () => {
      await run({}, { latency: 25 });
      for (const topic of ["one", "two"]) await succeed({ payload: urls(40), topic });
      await succeed({ pause: true, topic: "one", batch: null });
      await flow.until(() => state("one") === "Paused.");
      await finished("two");
      assert.equal(last("one")?.finished, false);
      assert.deepEqual([ring(), status()?.shape], ["yellow", "ring"]);
      const text = String(status()?.text).replace(/"done":"\d+"/, '"done":"…"');
      assert.equal(text, `${KEY}.message {} · ${KEY}.auditing {"done":"…","total":"40"}`);
      await checkNothingIsStored();
      await succeed({ resume: true, batch: " one " });
      await finished("one");
      assert.deepEqual([results().length, stored(), ring()], [80, 80, "green"]);
    });

    it("comes right behind a list", async () => {
      await run({}, { latency: 25 });
      const both = [{ payload: urls(40) }, { pause: true }];
      await Promise.all(both.map((msg) => succeed({ ...msg, topic: "one" })));
      await flow.until(() => state("one") === "Paused.");
    });

    it("retries the failed pages", async () => {
      let fate: Fate = "unauthorized";
      await runWith({ fate: ({ form }) => (/\/[24]$/.test(String(form.get("url"))) ? fate : "answered") });
      await succeed({ payload: urls(5) });
      const end = await finished();
      assert.deepEqual([end.created, end.failed], [3, 2]);
      const text = `${KEY}.auditing {"done":"5","total":"5"} · ${KEY}.failed {"count":"2"}`;
      assert.deepEqual([ring(), status()?.text], ["red", text]);
      fate = "answered";
      await succeed({ retry: true, topic: "default" });
      await flow.until(() => last()?.created === 5 && last()?.finished);
      const all = results().map(({ seo }) => `${seo.index} ${seo.outcome}`);
      assert.deepEqual(all.slice(5).sort(), ["1 created", "3 created"]);
      assert.equal(ring(), "green");
    });
  });

  it("keeps the error of an uncertain page that stays uncertain when it is retried, also after a deploy", async () => {
    const account = await runWith({
      fate() {
        account.create("other.example/theirs");
        return "cut, not carried out";
      },
    });
    await succeed({ payload: urls(1) });
    for (const count of [1, 2, 3]) {
      await until(() => results().length === count);
      await flow.until(() => last()?.finished);
      if (count === 2) await flow.deploy(nodes({}, account.url), "full");
      await succeed({ retry: true });
    }
    const [first, ...others] = results().map(({ seo: { outcome, error } }) => ({ outcome, error }));
    assert.deepEqual([first?.outcome, first?.error?.code], ["uncertain", "SEO_SERVER"]);
    assert.deepEqual(plain(others), plain([first, first]));
  });

  it("reports one error if the account cannot be used, keeps all pages, and continues after msg.resume", async () => {
    let fate: Fate = "unauthorized";
    const account = await runWith({ fate: () => fate });
    await succeed({ payload: urls(30) });
    const [caught] = await flow.take("caught", 1);
    const { seo, topic } = caught as unknown as Result;
    assert.deepEqual([topic, seo.batch, seo.error?.code], ["default", "default", "SEO_UNAUTHORIZED"]);
    assert.match(
      String(seo.error?.message),
      /^The batch "default" is paused: [5-7] requests in a row failed\. .* It continues within 15 minutes of the repair, or at msg\.resume\.$/,
    );
    await late(100);
    assert.ok(account.count("POST") < 10, `${account.count("POST")} requests`);
    assert.deepEqual([flow.of("caught").length, results().length], [1, 0]);
    const figures = 'seo-reports.status.auditing {"done":"0","total":"30"}';
    const reason = "seo-reports.error.SEO_UNAUTHORIZED.status";
    assert.deepEqual([ring(), status()?.text], ["red", `${reason} · ${figures}`]);
    assert.equal(last()?.reason, "SEO_UNAUTHORIZED");
    assert.match(String(last()?.paused), / requests in a row/);
    fate = "answered";
    await succeed({ resume: true });
    const end = await finished();
    assert.deepEqual([end.total, end.created, results().length], [30, 30, 30]);
    assert.equal(flow.of("caught").length, 1);
  });

  for (const [name, shape] of Object.entries({ ...shapes, "the page is ignored": firstPage }))
    it(`finds the reports of an account in the list of every paginator: ${name}`, async () => {
      const account = await runWith({ shape }, { existing: "regenerate" });
      for (let nth = 0; nth < 200; nth++) account.create(`example.com/${nth}`);
      await succeed({ payload: ["1", "199", "new"].map((path) => `example.com/${path}`) });
      const isCut = shape === firstPage;
      if (isCut) await until(() => last()?.paused);
      const { regenerated, created } = isCut ? (last() as Progress) : await finished();
      assert.deepEqual([regenerated, created, account.reports.length], isCut ? [0, 0, 200] : [2, 1, 201]);
    });

  it("pauses, with uncertain pages, if no response contains a report", async () => {
    const page = { error: "The quota is used up." };
    const account = await runWith({ page, fate: () => "hidden, not carried out", get: () => page });
    await succeed({ payload: Array.from({ length: 60 }, (_, nth) => `example.com/${nth}`) });
    await until(() => last()?.reason === "SEO_RESPONSE" && Number(last()?.uncertain) >= 5);
    assert.deepEqual([last()?.created, last()?.failed], [0, 0]);
    assert.ok(account.asked.filter(({ method }) => method === "POST").length < 60);
  });

  it("pauses after seven pages at most if the service responds to each with a 500", async () => {
    const account = await runWith({ fate: () => "rejected" });
    await succeed({ payload: urls(30) });
    await until(() => last()?.reason === "SEO_SERVER");
    assert.ok(Number(last()?.failed) <= 7 && account.count("POST") <= 7, `${account.count("POST")} requests`);
  });

  it("creates no second report if the dates of the reports cannot be read", async () => {
    const account = await runWith({}, { existing: "return", maxAge: "7" });
    const date = "27.11.2026 20:11";
    for (let nth = 0; nth < 250; nth++)
      Object.assign(account.create(`example.com/${nth}`), { created_at: date, generated_at: date });
    await succeed({ payload: ["example.com/1", "example.com/new"] });
    const { regenerated, created } = await finished();
    assert.deepEqual([regenerated, created, account.reports.length], [1, 1, 251]);
  });

  for (const how of ["", ", also after a deploy"])
    it(`requests other pages of the same list while it looks for those of the list that was reset${how}`, async () => {
      const isLost = ({ form, nth }: Asked) => nth === 1 && /\/[123]$/.test(String(form.get("url")));
      const fate = (asked: Asked) => (isLost(asked) ? "cut, then carried out" : "answered");
      // After the first look of the process that takes them over.
      const account = await open(startAccount({ fate, late: 2000 }));
      const [, ...rest] = nodes({}, account.url);
      const all = [service("service", account.url, { retries: "0", reconcile: "4" }), ...rest];
      await start(all);
      const reconciling = () => String(status()?.text).startsWith(`${KEY}.reconciling {"count":3} · `);
      await succeed({ payload: urls(3) });
      await until(reconciling);
      await succeed({ reset: true });
      await succeed({ payload: urls(6) });
      if (how) await flow.deploy(all, "full");
      await until(() => results().length === 3);
      const indexes = results().map(({ seo }) => seo.index);
      assert.deepEqual(indexes, [3, 4, 5]);
      await until(reconciling);
      const before = flow.statuses("audit").length;
      await until(() => results().length === 9);
      assert.equal(account.reports.length, 9);
      // A process that takes a batch over reports its end once more, as repeated.
      const ends = () => progress().flatMap(({ finished, repeated, total }) => (finished && !repeated ? total : []));
      await until(() => ends().length === 2);
      assert.deepEqual(ends(), [3, 6]);
      for (const { text } of flow.statuses("audit").slice(before)) assert.match(String(text), /"total":"6"/);
    });

  it("uses no more of the service's requests at a time than its share", async () => {
    const latency = 50;
    await run({ share: "1", folder: ` ${folder} ` }, { latency });
    const began = performance.now();
    await succeed({ payload: urls(8) });
    await finished();
    assert.ok(performance.now() - began >= 8 * latency);
    assert.ok(!existsSync(` ${folder} `));
  });

  describe("reports, with what to do,", () => {
    it("a folder that cannot be used", async () => {
      symlinkSync("nowhere", join(folder, "link"));
      folder = join(folder, "link");
      await run();
      const { code, message } = await fail({ payload: "example.com" });
      assert.deepEqual([code, message.includes(folder)], ["SEO_INPUT", true]);
      assert.match(message, /could not be read or written/);
      assert.deepEqual([ring(), status()?.text], ["red", `${KEY}.disk`]);
      await late(50);
      assert.equal(flow.of("caught").length, 1, "once, not for the message and for the folder");
      assert.equal(sandbox.requests.length, 0);
    });

    it("a variable that is not set", async () => {
      folder = "${NO_SUCH_FOLDER}";
      await run();
      const { code, message } = await fail({ payload: "example.com" });
      assert.deepEqual([code, message], ["SEO_CONFIG", "The environment variable NO_SUCH_FOLDER (folder) is not set."]);
      assert.equal(existsSync(folder), false);
    });

    it("a damaged log, with its file and line, until msg.reset", async () => {
      await run({}, { latency: 20 });
      for (const topic of ["one", "two"]) await succeed({ payload: urls(10), topic });
      await flow.until(() => results().length > 2);
      await flow.stop();
      const log = join(folder, "audit/1-one.jsonl");
      const [, ...lines] = readFileSync(log, "utf8").split("\n");
      writeFileSync(log, ["not JSON", ...lines].join("\n"));
      await start(nodes());
      const [caught] = await flow.take("caught", 1);
      const { seo, topic } = caught as unknown as { seo: { error: { message: string } }; topic: string };
      assert.deepEqual([topic, seo.error.message.startsWith(`${log}, line 1: `)], ["one", true]);
      await finished("two");
      assert.deepEqual([ring(), status()?.text], ["red", `${KEY}.damaged`]);
      assert.match((await fail({ payload: urls(10), topic: "one" })).message, /line 1: /);
      assert.equal(last("one"), undefined);
      await succeed({ reset: true, topic: "one" });
      assert.deepEqual([existsSync(log), ring()], [false, "green"]);
    });

    it("a missing service", async () => {
      await run({ service: "none" });
      const { code, message } = await fail({ payload: "example.com" });
      assert.deepEqual([code, message], ["SEO_CONFIG", "No SEO service is selected, or it is disabled."]);
    });
  });

  describe("after a deploy", () => {
    const begin = async () => {
      await run({}, { latency: 20 });
      await succeed({ payload: urls(25) });
      await flow.until(() => results().length > 2);
    };
    const isComplete = async () => {
      await finished();
      const fresh = results().filter(({ seo }) => !("repeated" in seo));
      assert.equal(new Set(results().map(({ seo }) => seo.index)).size, 25);
      assert.equal(new Set(fresh.map(({ seo }) => seo.index)).size, fresh.length);
      assert.equal(sandbox.reports.list({}).length, 25, "no page was requested twice");
    };
    const kept = () => existsSync(join(folder, "audit"));

    it("continues by itself", async () => {
      await begin();
      await flow.deploy(nodes({ name: "other" }));
      await flow.until(() => results().length > 8);
      await flow.deploy(nodes({ name: "another" }));
      await isComplete();
      assert.deepEqual([flow.warnings(), flow.of("caught")], [[], []]);
    });

    it("during a limit that is too long to wait for, requests no page twice", async () => {
      const account = await runWith({
        fate({ form }) {
          account.create(String(form.get("url")));
          return "never";
        },
      });
      await succeed({ payload: urls(3) });
      await until(() => account.reports.length === 3);
      Object.assign(account.options, { limited: true, fate: undefined });
      const before = account.asked.length;
      const [first, ...others] = nodes({ name: "other" }, account.url);
      await flow.deploy([{ ...(first as FlowNode), name: "other" }, ...others]);
      await until(() => account.asked.length > before);
      await late(100);
      account.options.limited = false;
      assert.deepEqual([(await finished()).created, account.count("POST")], [3, 3]);
    });

    it("that disables the node, keeps everything until it is enabled", async () => {
      await begin();
      await flow.deploy(nodes({ d: true }));
      assert.deepEqual([kept(), flow.warnings()], [true, []]);
      assert.deepEqual(flow.statuses("audit").at(-1)?.text, undefined);
      await checkNothingIsStored();
      await flow.deploy(nodes());
      await isComplete();
    });

    for (const kind of ["full", "flows", "nodes"] as const)
      it(`that removes the node, drops its pages with a warning that counts them (${kind})`, async () => {
        await begin();
        const rest = nodes().filter(({ id }) => id !== "audit");
        await flow.deploy(rest, kind);
        const [warning] = flow.warnings();
        const [, count] = /^seo-reports\.status\.pagesDropped \{"count":(\d+)\}$/.exec(String(warning?.msg)) ?? [];
        // A result that was on its way to the next node counts as dropped, too.
        assert.ok(Number(count) >= 25 - results().length && Number(count) <= 25, `${count} of 25`);
        assert.deepEqual(readdirSync(folder), []);
        await checkNothingIsStored();
      });

    it("that removes the node after its last page, warns of nothing", async () => {
      await run();
      await succeed({ payload: urls(2) });
      await finished();
      await flow.deploy(nodes().filter(({ id }) => id !== "audit"));
      assert.deepEqual([flow.warnings(), readdirSync(folder)], [[], []]);
    });

    it("while the service is being opened, leaves no timer", async () => {
      await run();
      const set = mock.method(globalThis, "setInterval");
      const clear = mock.method(globalThis, "clearInterval");
      await open({ close: () => mock.restoreAll() });
      const opened = helper.getNode("service") as Node & { client(): Promise<unknown> };
      const { client } = opened;
      opened.client = () => late(50).then(client);
      void flow.send("audit", { payload: urls(1) });
      await late(10);
      await flow.deploy(nodes().filter(({ id }) => id !== "audit"));
      await late(100);
      const cleared = new Set<unknown>(clear.mock.calls.map(({ arguments: [timer] }) => timer));
      const left = set.mock.calls.filter(({ result }) => !cleared.has(result));
      for (const { result } of left) clearInterval(result);
      assert.equal(left.length, 0);
    });

    it("drops a list that is not saved yet, with a warning", async () => {
      await run();
      const open = flow.send("audit", { payload: urls(300_000) });
      await late(30);
      await flow.deploy(nodes({ name: "other" }));
      const warnings = flow.warnings().map(({ msg }) => msg);
      assert.deepEqual(warnings, ['seo-reports.status.dropped {"count":1}']);
      assert.equal(await Promise.race([open, late(100)]), undefined);
      assert.deepEqual(kept() ? batchesIn(join(folder, "audit")) : [], []);
    });
  });

  describe("in a subflow", () => {
    const subflow = (instances: string[]): FlowNode[] => [
      service("service", sandbox.url, { retries: "0" }),
      {
        id: "sub",
        type: "subflow",
        name: "sub",
        in: [{ x: 0, y: 0, wires: [{ id: "the-audit" }] }],
        out: [{ x: 0, y: 0, wires: [{ id: "the-audit", port: 0 }] }],
      },
      { ...nodes()[1], id: "the-audit", z: "sub", wires: [[], []] } as FlowNode,
      ...instances.map((id) => node(id, "subflow:sub", { wires: [["result"]] })),
    ];

    it("each instance has its own batches, and they are removed with it or with the node inside", async () => {
      await startService({ latency: 20 });
      await start(subflow(["in-a", "b"]));
      for (const id of ["in-a", "b"]) (helper.getNode(id) as Node).receive({ payload: urls(25) } as never);
      await flow.until(() => results().length > 4);
      assert.deepEqual(readdirSync(folder).sort(), ["b-the-audit", "in-a-the-audit"]);
      await flow.deploy(subflow(["in-a"]), "full");
      assert.deepEqual(readdirSync(folder), ["in-a-the-audit"]);
      assert.match(String(flow.warnings()[0]?.msg), /pagesDropped/);
      const before = results().length;
      await flow.until(() => results().length > before + 3);
      await flow.deploy(
        subflow(["in-a"]).filter(({ id }) => id !== "the-audit"),
        "full",
      );
      assert.deepEqual(readdirSync(folder), []);
    });

    it("all nodes use their service again if it is restarted without them", async () => {
      await startService({ latency: 20 });
      const home = { service: "${home}" };
      const flows = (name: string) => [
        { ...service("service", sandbox.url), name },
        ...subflow(["in-a"])
          .slice(1)
          .map((one) =>
            Object.assign(one, one.z && home, { env: [{ name: "home", type: "conf-type", value: "service" }] }),
          ),
        node("store", "seo-report-store", { z: "sub", ...home }),
      ];
      await start(flows("before"));
      const store = () => (helper.getNode("in-a-store") as Node).receive({ payload: "https://example.com" } as never);
      store();
      (helper.getNode("in-a-the-audit") as Node).receive({ payload: urls(50) } as never);
      await flow.until(() => results().length > 4);
      await flow.deploy(flows("after"), "nodes");
      store();
      await flow.until(() => new Set(results().map(({ seo }) => seo.index)).size === 50);
      await until(() => stored() === 52);
    });
  });

  for (const kind of ["full", "nodes"] as const)
    it(`that is moved into a subflow, or out of one, drops its pages with a warning that counts them (${kind})`, async () => {
      await startService({ latency: 20 });
      const [home, audit] = nodes() as [FlowNode, FlowNode];
      const around = [home, { id: "sub", type: "subflow", name: "sub" }];
      const outside = [...around, audit];
      const inside = [...around, { ...audit, z: "sub" }, node("instance", "subflow:sub")];
      await start(outside);
      for (const [there, id] of [
        [inside, "audit"],
        [outside, "instance-audit"],
        [inside, "audit"],
      ] as const) {
        const { length } = sandbox.requests;
        (helper.getNode(id) as Node).receive({ payload: urls(50) } as never);
        await until(() => sandbox.requests.length > length + 3);
        const before = flow.warnings().length;
        await flow.deploy(there, kind);
        await until(() => flow.warnings().length > before);
        assert.match(String(flow.warnings()[before]?.msg), /pagesDropped/);
        assert.deepEqual(readdirSync(folder), []);
      }
    });

  it("that is in a subflow of a package, continues after a deploy", async () => {
    await startService({ latency: 20 });
    const [home, audit] = nodes() as [FlowNode, FlowNode];
    const all = [home, node("packed", "packed")];
    await start([home]);
    const registry = nodeRedModule<{ registerSubflow(set: string, flow: object): void }>("@node-red/runtime/lib/nodes");
    const more = { in: [], out: [], env: [], meta: { type: "packed" }, flow: [{ ...audit, z: "sub", wires: [] }] };
    registry.registerSubflow("", { id: "sub", type: "subflow", name: "packed", ...more });
    await flow.deploy(all);
    (helper.getNode("packed-audit") as Node).receive({ payload: urls(50) } as never);
    await until(() => stored() > 5);
    await flow.deploy(all, "full");
    await until(() => stored() === 50);
    assert.deepEqual(flow.warnings(), []);
  });

  describe("beside other nodes of the service", () => {
    for (const concurrency of ["1", "2", "4"])
      it(`does not keep them waiting, with a concurrency of ${concurrency}`, async () => {
        const methods: string[] = [];
        const latency = ({ method }: { method: string }) => {
          methods.push(method);
          return 60;
        };
        await startService({ reports: 1, latency });
        const [, ...rest] = nodes();
        await start([service("service", sandbox.url, { retries: "0", concurrency }), ...rest]);
        await succeed({ payload: urls(200) });
        await flow.until(() => results().length > 2);
        const others: number[] = [];
        for (let i = 0; i < 5; i++) {
          const before = methods.length;
          const { caught } = await flow.send("show", { payload: 1 });
          assert.equal(caught, undefined);
          others.push(methods.indexOf("GET", before) - before);
        }
        // Those of the audit that were on their way already. Node-RED can take long to deliver a message.
        const [, , usual = 0] = others.sort((a, b) => a - b);
        assert.ok(usual <= Number(concurrency), `${others} requests of the audit before each`);
        await succeed({ reset: true });
      });
  });
});

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as late } from "node:timers/promises";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.js";
import { toCsv } from "../../src/audit/failures.js";
import type { Progress } from "../../src/audit/progress.js";
import { type Flow, node, service, startFlow } from "../support/flow.js";
import { closeAfterEach, openFolder } from "../support/opened.js";
import { helper } from "../support/red.js";

const AUDIT = "seo-report-audit";

type Card = Progress & { node: string };
type Rows = { index: number; url: string; outcome: string; message: string; candidates: string[] }[];

describe("The routes of the sidebar", () => {
  let flow: Flow;
  let sandbox: Sandbox;
  let folder: string;

  const open = closeAfterEach();
  const nodes = (settings: object = {}) => [
    service("service", sandbox.url, { retries: "0", reconcile: "1" }),
    node("audit", AUDIT, { folder, existing: "create", wires: [["result"], ["progress"]], ...settings }),
  ];
  async function start(settings: object = {}): Promise<void> {
    flow = await open(startFlow(nodes(settings)));
  }
  async function run(options: SandboxOptions = {}, settings: object = {}): Promise<void> {
    sandbox = await open(startSandbox({ apiKey: "key-of-tests", reports: 0, ...options }));
    await start(settings);
  }

  beforeEach(async () => {
    folder = (await open(openFolder())).path;
  });

  const get = async <Body>(path: string, query: Record<string, string> = {}) =>
    (await helper.request().get(`/${AUDIT}/${path}?${new URLSearchParams(query)}`)) as {
      status: number;
      body: Body;
      text: string;
    };
  const cards = async () => (await get<Card[]>("batches")).body;
  const card = async (batch = "default") => (await cards()).find((one) => one.batch === batch);
  const rows = async (query: Record<string, string> = {}) =>
    (await get<Rows>("rows", { node: "audit", batch: "default", ...query })).body;
  const control = async (
    how: unknown,
    batch: unknown = "default",
    id = "audit",
  ): Promise<[number, string | undefined]> => {
    const { status, body } = await helper.request().post(`/${AUDIT}/control`).send({ node: id, batch, do: how });
    return [status, (body as { message?: string }).message];
  };
  async function until<Value>(holds: () => Promise<Value | false | undefined>): Promise<Value> {
    for (;;) {
      const value = await holds();
      if (value) return value;
      await late(20);
    }
  }
  const urls = (count: number) => Array.from({ length: count }, (_, i) => `https://example.com/${i}`);
  const send = (payload: unknown, topic = "default") => flow.send("audit", { payload, topic });

  it("show nothing before the first list, and then how far each batch is", async () => {
    await run({ latency: 20 });
    assert.deepEqual(await cards(), []);
    await send([...urls(3), "no url"], "one");
    await send(urls(100), "two");
    const sorted = await until(async () => (await card("one"))?.finished && cards());
    assert.deepEqual([sorted[0]?.batch, sorted[1]?.finished], ["two", true]);
    const all = await until(async () => (await cards()).every(({ finished }) => finished) && cards());
    assert.deepEqual(all.map(({ batch, total, created, failed }) => [batch, total, created, failed]).sort(), [
      ["one", 4, 3, 1],
      ["two", 100, 100, 0],
    ]);
  });

  it("show figures that are at most a second old", async () => {
    await run({ latency: 50 });
    await send(urls(200));
    const first = await until(async () => (await card())?.done);
    await late(1500);
    const { done, finished } = (await card()) as Card;
    assert.ok(!finished && done > first, `${first}, then ${done}`);
  });

  it("pause, resume and retry a batch, and refuse what has no effect", async () => {
    await run({ latency: 20 });
    await send(["no url", ...urls(40)]);
    assert.deepEqual(await control("pause"), [200, undefined]);
    const { reason } = (await card()) as Card;
    assert.equal(reason, "message");
    assert.deepEqual(await control("resume"), [200, undefined]);
    await until(async () => (await card())?.finished);
    assert.deepEqual(await control("retry"), [200, undefined]);
    await until(async () => (await card())?.finished);
    const [status, message = ""] = await control("pause", "other");
    assert.equal(status, 400);
    assert.match(message, /There is nothing to pause: no batch is named "other"/);
    const invalid = [["constructor"], ["pause", null], ["pause", 7], ["pause", "default", "service"]] as const;
    for (const [how, batch, id] of invalid) assert.equal((await control(how, batch, id))[0], 400);
    assert.equal((await helper.request().post(`/${AUDIT}/control`).type("text/plain").send("{}")).status, 415);
  });

  it("say how many rows a reset has dropped, and forget a finished batch", async () => {
    await run({ latency: 50 });
    await send(urls(100));
    await control("reset");
    assert.ok(Number((await card())?.dropped) > 0);
    const { dropped, done, total, finished } = await until(async () => {
      const one = await card();
      return one?.finished && one;
    });
    assert.deepEqual([finished, dropped > 0, dropped + done, total], [true, true, 100, 100]);
    const text = flow.statuses("audit").at(-1)?.text;
    assert.match(String(text), new RegExp(`status\\.pagesReset \\{"count":"${dropped}"\\}$`));
    assert.deepEqual(await control("reset"), [200, undefined]);
    assert.deepEqual(await cards(), []);
  });

  it("show finished batches that can be retried after a restart, and their failed rows", async () => {
    await run();
    const bad = Array.from({ length: 1200 }, (_, i) => ({ url: `=bad ${i}`, password: "secret" }));
    await send([...urls(2), ...bad, "=bad 0"]);
    await until(async () => (await card())?.finished);
    const before = await rows();
    await flow.stop();
    await start();
    const { created, failed, invalid, finished } = await until(() => card());
    assert.deepEqual([created, failed, invalid, finished], [2, 1201, 1201, true]);
    assert.deepEqual(await rows(), before);
    assert.equal(before.length, 1000);
    for (const [i, { index }] of before.entries()) assert.equal(index, 2 + i);
    assert.deepEqual([before[0]?.url, before[0]?.outcome], ["=bad 0", "failed"]);
    assert.match(String(before[0]?.message), /^The URL must be the address of a web page/);
    const { text } = await get("rows", { node: "audit", batch: "default", csv: "1" });
    assert.equal(text.split("\r\n").length, 1203);
    assert.match(text, /^"index","url","outcome","error","candidates"\r\n"2","'=bad 0","failed","The URL must /);
    assert.doesNotMatch(text + JSON.stringify(before), /secret/);
    assert.deepEqual(await control("reset"), [200, undefined]);
    assert.deepEqual([await cards(), await rows()], [[], []]);
  });

  it("read the failed rows of a batch that is not finished, and of no other batch or node", async () => {
    await run({ latency: 100 });
    await send(["bad one", ...urls(50)], "one");
    const nested = { url: { url: "two" } };
    await send([nested, ...urls(50)], "two");
    const named = async (batch: string, id = "audit") => (await rows({ batch, node: id })).map(({ url }) => url);
    await until(async () => (await card("one"))?.failed && (await card("two"))?.failed);
    const all = [await named("one"), await named("two"), await named("three")];
    assert.deepEqual(all, [["bad one"], [JSON.stringify(nested)], []]);
    assert.equal((await get("rows", { node: "service", batch: "one" })).status, 400);
    assert.equal((await get("rows", { node: "../audit", batch: "one" })).status, 400);
  });

  it("show why a node cannot be used, without waiting for it", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    await run({}, { folder: file });
    await send(urls(1));
    const [{ reason, paused } = {} as Card] = await cards();
    assert.equal(reason, "disk");
    assert.match(String(paused), /file/);
  });

  for (const [which, list] of [
    ["", urls(50)],
    [" and that has finished", ["no url"]],
  ] as const)
    it(`show a batch whose journal is damaged${which}, and reset it`, async () => {
      await run({ latency: 100 });
      await send(list);
      if (which) await until(async () => (await card())?.finished);
      await flow.stop();
      const own = join(folder, "audit");
      const [name = ""] = readdirSync(own).filter((one) => one.endsWith(".jsonl"));
      const lines = readFileSync(join(own, name), "utf8").split("\n");
      writeFileSync(join(own, name), [lines[0], "no JSON", ...lines.slice(1)].join("\n"));
      await start();
      assert.equal((await until(card))?.reason, "damaged");
      assert.deepEqual(await rows(), []);
      assert.deepEqual(await control("reset"), [200, undefined]);
      assert.deepEqual(await cards(), []);
    });

  it("keep the cards through a deploy, and drop those of a node that is deleted", async () => {
    await run({ latency: 100 });
    await send(urls(50));
    await until(async () => (await card())?.done);
    let isGone = false;
    let deploying = true;
    const watching = (async () => {
      while (deploying) {
        isGone ||= (await cards()).length === 0;
        await late(1);
      }
    })();
    await flow.deploy(nodes({ name: "other" }));
    deploying = false;
    await watching;
    assert.equal(isGone, false);
    await until(async () => !(await card())?.finished);
    await flow.deploy(nodes().slice(0, 1));
    assert.deepEqual(await cards(), []);
  });
});

describe("The CSV of failed rows", () => {
  it("has no cell that a spreadsheet calculates, whatever a URL or a sentence is", () => {
    const row = {
      index: 0,
      url: '=1+"x"',
      outcome: "uncertain" as const,
      message: "@SUM(A1)\n+1\t=2;=3",
      candidates: ["-2"],
    };
    assert.equal(
      toCsv([row]),
      `"index","url","outcome","error","candidates"\r\n"0","'=1+""x""","uncertain","'@SUM(A1) +1 =2;'=3","'-2"\r\n`,
    );
  });
});

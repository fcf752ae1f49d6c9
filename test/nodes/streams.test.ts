import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import { nodeRedModule } from "../../dev/nodered.js";
import { deferred } from "../../src/turns.js";
import { failure, node, startFlow } from "../support/flow.js";
import { reports, type Shape, shapes } from "../support/lists.js";
import { outputs, parts, payloads, seo, withLists } from "../support/outputs.js";
import { type Hooks, helper } from "../support/red.js";
import { received } from "../support/sentences.js";

const LIST = "seo-report-list";

describe("List streams", () => {
  const suite = withLists();
  const { serve, ask } = suite;

  afterEach(() => suite.flow.stop());

  describe("work with", () => {
    const given = { payload: ["one", "two"], topic: "nested" };

    it("the msg.parts of the input message, which Join nodes restore", async () => {
      const list = { output: "records", limit: "", searchType: "msg", search: "payload", wires: [["out", "inner"]] };
      suite.flow = await startFlow([
        suite.service(),
        node("split", "split", { splt: "\\n", spltType: "str", arraySplt: 1, arraySpltType: "len", wires: [["list"]] }),
        node("list", LIST, list),
        node("inner", "join", { mode: "auto", wires: [["joined", "outer"]] }),
        node("outer", "join", { mode: "auto", wires: [["whole"]] }),
      ]);
      serve({ all: reports(120) });
      helper.getNode("split")?.receive(given as never);
      const [whole] = await suite.flow.take("whole", 1);
      assert.deepEqual(whole?.payload, [reports(120), reports(120)]);
      assert.equal(whole?.parts, undefined);
      const joined = suite.flow.of("joined").map(parts);
      assert.deepEqual(joined.map(({ index, count }) => [index, count]).sort(), [
        [0, 2],
        [1, 2],
      ]);
      for (const msg of suite.flow.of("out")) assert.ok(joined.some(({ id }) => id === parts(msg).parts?.id));
      assert.deepEqual(new Set(suite.lists.asked.map(({ query }) => query.get("search"))), new Set(["one", "two"]));
    });

    it("a Batch node, whose last group ends with the last record", async () => {
      suite.flow = await startFlow([
        suite.service(),
        node("list", LIST, { output: "records", limit: "", wires: [["batch"]] }),
        node("batch", "batch", { mode: "count", count: 40, overlap: 0, honourParts: true, wires: [["join"]] }),
        node("join", "join", { mode: "auto", wires: [["group"]] }),
      ]);
      serve({ all: reports(90) });
      await ask("list");
      const groups = payloads(await suite.flow.take("group", 3));
      assert.deepEqual(groups, [reports(90).slice(0, 40), reports(90).slice(40, 80), reports(90).slice(80)]);
    });
  });

  describe("if a page fails", () => {
    const broken = (nth: number) =>
      (suite.lists.options.reply = ({ query }) => {
        return Number(query.get("page") ?? 1) < nth ? undefined : { status: 500, body: { message: "Broken" } };
      });

    beforeEach(async () => {
      suite.flow = await startFlow([suite.service(), ...outputs(LIST, { limit: "" })]);
      serve({ all: reports(450) });
    });

    for (const [output, count] of [
      ["all", 0],
      ["pages", 2],
      ["records", 200],
    ] as const) {
      it(`report how many records had been received, after sending their messages: ${output}`, async () => {
        broken(3);
        const caught = failure(await suite.flow.send(output, { payload: { sort: "asc" } }));
        const { code, message } = caught.error;
        assert.deepEqual([code, message], ["SEO_SERVER", `The service returned 500: Broken.${received(200, 2)}`]);
        const { error } = caught.seo;
        assert.deepEqual([error.message, error.attempts, error.statusCode], [message, 3, 500]);
        assert.deepEqual(caught.payload, { sort: "asc" });
        const came = suite.flow.of(`${output}-out`);
        assert.equal(came.length, count);
        assert.deepEqual(payloads(came).flat(), reports(450).slice(0, count && 200));
        assert.ok(came.every((one) => parts(one).count === undefined));
        await late(20);
        assert.equal(suite.flow.of("caught").length, 1);
        assert.equal(suite.flow.of("completed").length, 0);
      });
    }

    it("cancel their other requests, and send no message and show no status after the error", async () => {
      await suite.flow.stop();
      suite.flow = await startFlow([
        suite.service({ concurrency: "2", retries: "3" }),
        node("records", LIST, { output: "records", limit: "" }),
      ]);
      let failed = 0;
      serve({
        all: reports(2000),
        reply: ({ query }) => {
          if (Number(query.get("page") ?? 1) < 3) return undefined;
          // Page 3 is rejected, and the pages that were requested ahead of it would be retried.
          return { status: query.get("page") === "3" ? 403 : 500, body: { message: "Broken." } };
        },
      });
      failure(await suite.flow.send("records"));
      failed = suite.lists.asked.length;
      await suite.flow.until(() => suite.flow.statuses("records").at(-1)?.fill === "red");
      await late(1500);
      assert.equal(suite.lists.asked.length, failed);
      assert.equal(suite.flow.statuses("records").at(-1)?.fill, "red");
    });

    it("report no number of records if the first page fails", async () => {
      broken(1);
      const { error } = failure(await suite.flow.send("records"));
      assert.equal(error.message, "The service returned 500: Broken");
    });
  });

  it("stop between pages when the node is redeployed, with one error", async () => {
    const nodes = (name: string) => [suite.service(), node("list", LIST, { name, output: "pages", limit: "" })];
    suite.flow = await startFlow(nodes("before"));
    serve({ all: reports(20_000) });
    const ended = suite.flow.send("list");
    await suite.flow.take("out", 3);
    await suite.flow.deploy(nodes("after"));
    const { code, message } = failure(await ended).error;
    const { length } = suite.lists.asked;
    assert.equal(code, "SEO_CANCELLED");
    const came = suite.flow.of("out").length;
    assert.ok(came >= 3 && came < 200, `${came} pages`);
    assert.ok(message.endsWith(received(came * 100, came)), message);
    await late(50);
    assert.equal(suite.lists.asked.length, length, "no further request");
    assert.equal(suite.flow.of("out").length, came);
    assert.equal(suite.flow.of("caught").length, 1);
  });

  it("show their progress in the status", async () => {
    suite.flow = await startFlow([suite.service({ concurrency: "1" }), ...outputs(LIST, { limit: "" })]);
    for (const [shape, key] of [
      ["length-aware", 'seo-reports.status.page {"page":2,"pages":5,"records":200}'],
      ["simple", 'seo-reports.status.pageUnknown {"page":2,"pages":"","records":200}'],
    ] as const) {
      const hold = deferred();
      serve({
        all: reports(450),
        shape: shapes[shape] as Shape,
        wait: ({ query }) => (query.get("page") === "3" ? hold.promise : undefined),
      });
      const ended = ask("records");
      await suite.flow.until(() => suite.flow.statuses("records").some(({ text }) => text === key));
      hold.resolve();
      await ended;
      const done =
        shape === "simple"
          ? 'seo-reports.status.records {"count":450}'
          : 'seo-reports.status.of {"count":450,"total":450}';
      await suite.flow.until(() => suite.flow.statuses("records").at(-1)?.text === done);
    }
  });

  it("return the time waited, without counting parallel waits twice", async () => {
    suite.flow = await startFlow([
      suite.service({ concurrency: "4", retries: "1" }),
      node("list", LIST, { output: "all", limit: "" }),
    ]);
    const limited = new Set<string | null>();
    serve({
      all: reports(500),
      reply: ({ query }) => {
        const page = query.get("page");
        if (page === null || limited.has(page)) return undefined;
        limited.add(page);
        return { status: 503, body: {} };
      },
    });
    const { random } = Math;
    Math.random = () => 0.9;
    await ask("list");
    Math.random = random;
    const { waited, duration } = seo(suite.flow.of("out")[0]) as { waited: number; duration: number };
    assert.ok(waited >= 400 && waited <= duration, `waited ${waited} of ${duration} ms`);
  });

  it("let the flow process a page before they send the next one", async () => {
    suite.flow = await startFlow([
      suite.service({ concurrency: "8" }),
      node("list", LIST, { output: "records", limit: "", perPageType: "str", per_page: "100" }),
    ]);
    serve({ all: reports(2000) });
    let sent = 0;
    let most = 0;
    const { hooks } = nodeRedModule<{ hooks: Hooks<{ source: { node: { id: string } } }[]> }>("@node-red/util");
    hooks.add("onSend.backlog", (events) => {
      sent += events.filter(({ source }) => source.node.id === "list").length;
      most = Math.max(most, sent - suite.flow.of("out").length);
    });
    await ask("list");
    await suite.flow.take("out", 2000);
    hooks.remove("onSend.backlog");
    assert.ok(sent === 2000 && most <= 101, `${most} records were sent and not received`);
  });
});

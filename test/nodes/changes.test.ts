import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import { startSandbox } from "../../sandbox/server.js";
import { changes as row } from "../../src/operations.js";
import { deferred } from "../../src/turns.js";
import { fromPalette } from "../support/editor.js";
import { type Flow, failure, type Message, node, service, startFlow } from "../support/flow.js";
import { checked, type Lists, type Row, reports, type Shape, shapes, startLists } from "../support/lists.js";
import { closeAfterEach, openFolder } from "../support/opened.js";
import { type FlowNode, helper } from "../support/red.js";
import { received } from "../support/sentences.js";
import { closeStores, openStores, storeOn } from "../support/stores.js";

interface Told {
  operation: string;
  change: string;
  previous?: Row;
  fields?: string[];
}

const seo = ({ seo }: Message) => seo as Told;
/** A change as text: its kind and the report's ID. */
const short = (msg: Message) => `${seo(msg).change} ${(msg.payload as Row).id}`;
const context = () => helper.getNode("changes")?.context();
const edit = (all: readonly Row[], id: number, news: Row) =>
  all.map((row) => (row.id === id ? { ...row, ...news } : row));

/** A configured context store. */
const memory = { default: { module: "memory" } };

describe("The changes node", () => {
  let lists: Lists;
  let flow: Flow;

  afterEach(closeStores);
  const open = closeAfterEach();
  beforeEach(async () => {
    lists = await open(startLists({ all: reports(5) }));
  });
  const start = async (all: FlowNode[]) => {
    flow = await open(startFlow(all));
  };

  const nodes = (settings: object = {}, serviceId = "service") => [
    service(serviceId, lists.url, { concurrency: "1", retries: "0" }),
    node("changes", "seo-report-changes", { service: serviceId, ...settings }),
  ];

  /** Runs the node once and resolves with its changes as text. */
  const look = async (msg: Message = {}) => {
    const { length } = flow.of("out");
    const { caught } = await flow.send("changes", msg);
    assert.equal(caught, undefined, String((caught?.error as Error | undefined)?.message));
    return flow.of("out").slice(length).map(short);
  };

  /** Runs the node once, which must fail and send nothing. */
  const fail = async (msg: Message = {}) => {
    const { length } = flow.of("out");
    const { error } = failure(await flow.send("changes", msg));
    assert.equal(flow.of("out").length, length);
    return error;
  };

  const isShown = (text: string) => flow.until(() => flow.statuses("changes").at(-1)?.text === text);
  const warned = () => flow.warnings().map(({ id, msg }) => [id, msg]);
  const list = (all: readonly Row[]) => {
    lists.options.all = all;
  };

  describe("sends", () => {
    it("nothing in the first run, and each change once afterwards", async () => {
      await start(nodes());
      assert.deepEqual(await look(), []);
      assert.deepEqual(flow.warnings(), []);
      await isShown("seo-reports.status.baseline");
      assert.deepEqual(await look(), []);
      list([...reports(1, 6), ...edit(reports(5), 3, { score: 99 }).filter(({ id }) => id !== 1)]);
      assert.deepEqual(await look(), ["created 6", "changed 3", "deleted 1"]);
      await isShown('seo-reports.status.changes {"created":1,"changed":1,"deleted":1}');
      assert.deepEqual(await look(), []);
      list(reports(5));
      assert.deepEqual(await look(), ["changed 3", "created 1", "deleted 6"]);
      assert.deepEqual(await look(), []);
    });

    it("every report as created in the first run, if set", async () => {
      await start(nodes({ first: "created" }));
      assert.deepEqual(await look(), ["created 5", "created 4", "created 3", "created 2", "created 1"]);
      assert.deepEqual(await look(), []);
    });

    it("the record, its previous values and the changed fields, and keeps the rest of the message", async () => {
      await start(nodes());
      await look();
      const now = edit(reports(5), 3, { score: 99, privacy: 1, results: { title: "long" } }).slice(0, 4);
      list(now);
      const [req, res] = [{ of: "http in" }, { end() {} }];
      await look({ topic: "t", payload: { search: "" }, kept: { deep: 1 }, req, res });
      const [changed, deleted] = flow.of("out") as [Message, Message];
      assert.deepEqual(changed.payload, now[2]);
      const figures = { id: 3, url: "example.com/3", score: 3, result: "good", privacy: 0, created_at: "2026-01-01" };
      const previous = { ...figures, generated_at: null, updated_at: null };
      const { operation, change, fields } = seo(changed);
      assert.deepEqual([operation, change, fields], ["seo-report-changes", "changed", ["score", "privacy"]]);
      assert.deepEqual(seo(changed).previous, previous);
      assert.deepEqual(deleted.payload, { ...previous, id: 1, url: "example.com/1", score: 1 });
      assert.deepEqual(Object.keys(seo(deleted)).includes("fields"), false);
      for (const msg of [changed, deleted]) {
        assert.deepEqual([msg.topic, msg.kept, msg.parts], ["t", { deep: 1 }, undefined]);
        assert.ok(msg.req === req && msg.res === res);
        for (const key of Object.keys(seo(msg))) assert.ok(row.metadata?.includes(key), key);
      }
      assert.notEqual(changed.kept, deleted.kept);
      assert.notEqual(changed.seo, deleted.seo);
    });

    it("only changes that meet the threshold and the condition, and a new report if its score does", async () => {
      for (const [settings, expected] of [
        [{ threshold: "10" }, ["created 6", "changed 4", "changed 3"]],
        [{ only: "worse" }, ["changed 3", "changed 2"]],
        [{ only: "worse", threshold: "4" }, ["changed 3"]],
        [{ only: "below" }, ["created 6", "changed 2"]],
        [{ only: "below", below: "81" }, ["created 6", "changed 3"]],
      ] as const) {
        const scores = (...all: number[]) => list(all.map((score, index) => ({ id: all.length - index, score })));
        await start(nodes(settings));
        scores(0, 49, 90, 52, 50);
        await look();
        scores(49, 0, 60, 80, 49, 50);
        assert.deepEqual([await look(), await look()], [expected, []]);
        await flow.stop();
      }
    });

    it("only the selected changes, and never the others later", async () => {
      for (const kind of ["created", "changed", "deleted"]) {
        await start(nodes({ changes: kind }));
        list(reports(5));
        await look();
        list([...reports(1, 6), ...edit(reports(5), 3, { score: 99 }).filter(({ id }) => id !== 1)]);
        const told = { created: "created 6", changed: "changed 3", deleted: "deleted 1" }[kind];
        assert.deepEqual([await look(), await look()], [[told], []]);
        await flow.stop();
      }
    });
  });

  describe("sends, of checks,", () => {
    const good = { id: 1, score: 90 };
    const before = [checked(good, { title: true, speed: false }), checked({ id: 2, score: 40 }, { title: true })];
    const issue = (msg: Message) => `${seo(msg).change} ${(msg.payload as Row).report} ${(msg.payload as Row).check}`;
    const issues = async () => {
      const { length } = flow.of("out");
      await look();
      return flow.of("out").slice(length).map(issue);
    };

    it("each one that newly fails or is fixed, once", async () => {
      await start(nodes({ changes: "checks", first: "created", threshold: "50" }));
      list(before);
      assert.deepEqual(await issues(), []);
      await isShown("seo-reports.status.baseline");
      const checks = { title: false, speed: true, links: false };
      list([checked(good, checks), checked({ id: 3, score: 40 }, { title: false })]);
      assert.deepEqual(await issues(), ["failed 1 title", "fixed 1 speed"]);
      const [failed] = flow.of("out") as [Message];
      const { operation, check } = failed.seo as Row;
      assert.deepEqual([operation, check], ["seo-report-changes", "title"]);
      assert.deepEqual(failed.payload, {
        ...{ report: 1, url: null, project: null, check: "title" },
        ...{ importance: "high", value: null, errors: ["wrong"] },
      });
      await isShown('seo-reports.status.checks {"failed":1,"fixed":1}');
      assert.deepEqual(await issues(), []);
      list(reports(3));
      assert.deepEqual(await issues(), []);
      await isShown("seo-reports.status.noChecks");
    });

    it("none if the setting was another one before, and no report as created", async () => {
      await start(nodes());
      await openStores(memory);
      list([checked(good, { title: true })]);
      await look();
      await flow.deploy(nodes({ changes: "checks" }));
      list([checked(good, { title: false })]);
      assert.deepEqual(await issues(), []);
      list([checked(good, { title: true })]);
      assert.deepEqual(await issues(), ["fixed 1 title"]);
      await flow.deploy(nodes());
      assert.deepEqual(await look(), []);
      await flow.deploy(nodes({ changes: "checks" }));
      list(reports(2));
      assert.deepEqual(await issues(), []);
      await flow.deploy(nodes());
      assert.deepEqual(await look(), []);
      assert.deepEqual(flow.warnings(), []);
    });
  });

  describe("starts again with a first run", () => {
    it("if the filters change", async () => {
      await start(nodes());
      await look({ payload: { result: "good" } });
      list(reports(6));
      assert.deepEqual(await look({ payload: { result: "bad" } }), []);
      list(reports(7));
      assert.deepEqual(await look({ payload: { result: "bad" } }), ["created 7"]);
      assert.deepEqual(await look({ payload: { result: "bad", project: null, search: "" } }), []);
      assert.deepEqual(lists.asked.at(-1)?.query.get("result"), "bad");
    });

    it("if the base URL or the service changes", async () => {
      await start(nodes());
      await openStores(memory);
      await look();
      const moved = lists.url.replace("127.0.0.1", "localhost");
      for (const id of ["service", "other"]) {
        list(reports(6));
        await flow.deploy([service(id, moved), node("changes", "seo-report-changes", { service: id })]);
        assert.ok(context()?.get("reports"), "Node-RED has kept the saved state");
        assert.deepEqual(await look(), []);
        list(reports(7));
        assert.deepEqual(await look(), ["created 7"]);
      }
    });

    for (const rubbish of [
      "text",
      [],
      null,
      { of: 1, reports: {} },
      { of: "x", reports: [] },
      { of: "x", reports: {}, others: [{ of: "y" }] },
    ]) {
      it(`and warns if the saved state is invalid: ${JSON.stringify(rubbish)}`, async () => {
        await start(nodes());
        await look();
        context()?.set("reports", rubbish);
        list(reports(6));
        assert.deepEqual(await look(), []);
        assert.deepEqual(warned(), [["changes", "seo-reports.status.overwritten"]]);
        list(reports(7));
        assert.deepEqual(await look(), ["created 7"]);
      });
    }
  });

  describe("loses no change and reports no false deletion", () => {
    const later = [...reports(1, 251), ...edit(reports(250), 200, { score: 0 }).filter(({ id }) => id !== 240)];
    const expected = ["created 251", "changed 200", "deleted 240"];

    beforeEach(async () => {
      list(reports(250));
      await start(nodes());
      await openStores(memory);
      await look();
      list(later);
    });

    it("if a later page fails", async () => {
      lists.options.reply = ({ query }) =>
        query.get("page") === "3" ? { status: 500, body: { message: "Broken." } } : undefined;
      const { message } = await fail();
      assert.ok(message.endsWith(`Broken.${received(200, 2)}`), message);
      delete lists.options.reply;
      assert.deepEqual(await look(), expected);
    });

    for (const settings of [{}, { changes: "checks" }])
      it(`if a list comes from a cache, or has a record without an ID, with ${JSON.stringify(settings)}`, async () => {
        await flow.deploy(nodes(settings));
        const older = { headers: { age: "60" }, body: { data: reports(249) } };
        const wrong = (record: unknown) => ({ body: { data: [...reports(250), record] } });
        for (const [reply, error] of [
          [older, /from a cache/],
          ...[{}, { id: null }, { id: {} }, { id: true }].map((record) => [wrong(record), /without id/] as const),
          ...[null, "text"].map((record) => [wrong(record), /something that is not an object/] as const),
        ] as const) {
          lists.options.reply = () => reply;
          const { code, message } = await fail();
          assert.equal(code, "SEO_RESPONSE");
          assert.match(message, error);
        }
        delete lists.options.reply;
        await flow.deploy(nodes());
        assert.deepEqual(await look(), expected);
      });

    for (const name of ["length-aware", "simple"])
      it(`if the limit truncates the list, ${name}`, async () => {
        lists.options.shape = shapes[name] as Shape;
        await flow.deploy(nodes({ limit: "100" }));
        assert.deepEqual(await look(), ["created 251", "changed 200"]);
        assert.deepEqual(await look(), []);
        await flow.deploy(nodes());
        assert.deepEqual(await look(), ["deleted 240"]);
      });

    for (const [run, name] of [
      ...["length-aware", "simple", "plain array"].map((name) => ["run", name] as const),
      ...["length-aware", "simple"].map((name) => ["first run", name] as const),
    ])
      it(`if a report is deleted during the ${run}, which moves another to a page already read, ${name}`, async () => {
        lists.options.shape = shapes[name] as Shape;
        list(reports(250));
        // The newest report is deleted after page 1 was read: the first report of page 2 moves to page 1 and is on neither.
        lists.options.wait = async ({ query }) => {
          if (query.get("page") === "2") list(reports(249));
        };
        if (run === "first run") await flow.deploy(nodes({ search: "example.com" }));
        assert.deepEqual(await look(), []);
        delete lists.options.wait;
        assert.deepEqual(await look(), ["deleted 250"]);
      });

    it("if a report that moves to a page already read is replaced by another one, so that the total stays", async () => {
      const without = (id: number) => reports(250).filter((row) => row.id !== id);
      list(without(1));
      await look();
      // One of the first page is gone before the second one is read, and one of the last page is new.
      lists.options.wait = async ({ query }) => {
        if (query.get("page") === "2") list(without(200));
      };
      assert.deepEqual(await look(), ["created 1"]);
      delete lists.options.wait;
      assert.deepEqual(await look(), ["deleted 200"]);
    });

    it("with one reading, of three pages, if no report is missing", async () => {
      lists.options.shape = shapes.simple as Shape;
      list(reports(250));
      let requests = 0;
      lists.options.reply = () => void requests++;
      await look();
      assert.equal(requests, 3);
      list(reports(50));
      await look();
      assert.equal(requests, 4, "a single page, from which nothing can move");
    });

    it("if the second reading fails, whose error counts the attempts of both", async () => {
      lists.options.shape = shapes.simple as Shape;
      list(reports(250));
      let requests = 0;
      lists.options.reply = () => {
        if (++requests === 2) list(reports(249));
        return requests > 3 ? { status: 500, body: { message: "Broken." } } : undefined;
      };
      const { seo } = failure(await flow.send("changes"));
      assert.deepEqual([seo.error.attempts, requests > 3], [requests, true]);
    });

    it("if a redeploy happens at any moment", async () => {
      for (let ms = 0; ms < 40; ms += 2) {
        list(later.map((row) => ({ ...row, score: 1000 + ms })));
        const before = flow.of("out").length;
        const run = flow.send("changes");
        await late(ms);
        await flow.deploy(nodes({ name: `after ${ms} ms` }));
        await Promise.race([run, late(50)]);
        await look();
        const sent = flow.of("out").slice(before);
        const told = new Set(sent.map(({ payload }) => (payload as Row).id));
        for (const { id } of later) assert.ok(told.has(id), `after ${ms} ms: ${id}`);
      }
    });

    it("if a message cannot be sent: the error is not uncertain, because a list changes nothing", async () => {
      list(later);
      const msg: Message = {};
      for (let i = 0, inner = msg; i < 20_000; i++) inner = inner.deep = {} as Message;
      const { seo } = failure(await flow.send("changes", msg));
      assert.deepEqual([seo.error.code, seo.error.uncertain], ["SEO_INPUT", false]);
    });

    it("if the state cannot be saved: the next run sends all changes again", async () => {
      const disk = { full: false };
      await openStores({ default: { module: () => storeOn(disk) } });
      list(reports(250));
      assert.deepEqual(await look(), []);
      list(later);
      disk.full = true;
      const { error, seo } = failure(await flow.send("changes"));
      assert.match(error.message, /^The context store could not be accessed: ./);
      assert.deepEqual([error.code, seo.error.attempts], ["SEO_INPUT", 6]);
      assert.deepEqual(flow.of("out").map(short), expected);
      disk.full = false;
      assert.deepEqual(await look(), expected);
      assert.deepEqual(await look(), []);
    });
  });

  it("sends a message for each new report if it is new from the palette and wired to store report", async () => {
    const sandbox = await open(startSandbox({ apiKey: "key-of-tests" }));
    const store = { ...fromPalette("seo-report-store"), output: "data", wires: [["changes"]] };
    await start([
      service("service", sandbox.url),
      node("store", "seo-report-store", { ...store, service: "service" }),
      node("changes", "seo-report-changes", { ...fromPalette("seo-report-changes"), service: "service" }),
    ]);
    await flow.send("changes");
    for (const host of ["a", "b", "c"]) await flow.send("store", { payload: `https://${host}.example/` });
    await flow.take("completed", 7);
    const urls = flow.of("out").map(({ payload }) => (payload as Row).url);
    assert.deepEqual(urls, ["a.example", "b.example", "c.example"]);
  });

  it("processes hundreds of simultaneous messages one at a time", async () => {
    await start(nodes());
    await look();
    lists.asked.length = 0;
    let most = 0;
    let now = 0;
    lists.options.wait = async () => {
      most = Math.max(most, ++now);
      await late(0);
      now--;
    };
    list([...reports(1, 6), ...reports(5)]);
    const outcomes = await Promise.all(Array.from({ length: 500 }, () => flow.send("changes")));
    assert.ok(outcomes.every(({ ends, caught }) => ends === 1 && !caught));
    assert.deepEqual(flow.of("out").map(short), ["created 6"]);
    assert.deepEqual([lists.asked.length, most], [500, 1]);
  });

  it("queues its messages within the service's queue size and rate limit", async () => {
    const hold = deferred();
    lists.options.wait = () => hold.promise;
    const limits = { concurrency: "4", queue: "4", rate: "5" };
    await start([service("service", lists.url, limits), node("changes", "seo-report-changes")]);
    const sent = Array.from({ length: 7 }, () => flow.send("changes"));
    for (const full of await Promise.all(sent.slice(5))) assert.equal(failure(full).error.code, "SEO_QUEUE_FULL");
    const running = 'seo-reports.status.running {"running":1,"queued":4}';
    await flow.until(() => flow.statuses("changes").some(({ text }) => text === running));
    hold.resolve();
    for (const { caught } of await Promise.all(sent.slice(0, 5))) assert.equal(caught, undefined);
    assert.equal(lists.asked.length, 5, "one request per message, as many as the rate limit allows");
  });

  it("processes the next message after a failed one", async () => {
    await start(nodes());
    await look();
    list(reports(6));
    lists.options.reply = ({ nth }) => (nth === 2 ? { status: 403, body: { message: "No." } } : undefined);
    const [first, second] = await Promise.all([flow.send("changes"), flow.send("changes")]);
    assert.deepEqual([first.caught !== undefined, second.caught !== undefined], [true, false]);
    assert.deepEqual(flow.of("out").map(short), ["created 6"]);
  });

  describe("saves its state", () => {
    it("through a redeploy, without a configured store", async () => {
      await start(nodes());
      await look();
      list(reports(6));
      for (const type of ["nodes", "flows", "full"] as const) await flow.deploy(nodes({ name: type }), type);
      assert.deepEqual(await look(), ["created 6"]);
    });

    it("across a restart, in a persistent store", async () => {
      const { path: dir } = await open(openFolder());
      const stores = { file: { module: "localfilesystem", config: { dir, flushInterval: 1 } } };
      await start(nodes({ store: "file" }));
      await openStores(stores);
      await look();
      await closeStores();
      await flow.stop();
      list(reports(6).filter(({ id }) => id !== 2));
      await start(nodes({ store: "file" }));
      await openStores(stores);
      assert.deepEqual(await look(), ["created 6", "deleted 2"]);
    });

    it("for each combination of filters, and so loses no change if these differ from run to run", async () => {
      await start(nodes());
      const filters = [{ result: "good" }, { result: "bad" }, { search: "x" }];
      for (const payload of filters) assert.deepEqual(await look({ payload }), []);
      list(reports(6));
      for (const payload of filters) assert.deepEqual(await look({ payload }), ["created 6"]);
      list(reports(7));
      for (const payload of filters) assert.deepEqual(await look({ payload }), ["created 7"]);
      assert.deepEqual(flow.warnings(), []);
    });

    it("beside one that an earlier version saved", async () => {
      await start(nodes());
      await look({ payload: { result: "good" } });
      const { of, reports: all } = Object(context()?.get("reports")) as Row;
      context()?.set("reports", { of, reports: all });
      list(reports(6));
      assert.deepEqual(await look({ payload: { result: "bad" } }), []);
      assert.deepEqual(await look({ payload: { result: "good" } }), ["created 6"]);
      assert.deepEqual(flow.warnings(), []);
    });

    it("of at most 100,000 reports: the filters used least recently start again, with one warning", async () => {
      await start(nodes({ changes: "created" }));
      const good = { payload: { result: "good" } };
      await look({ ...good });
      const { of, reports: all } = Object(context()?.get("reports")) as { of: string; reports: Row };
      /** Runs with other filters after one with many reports, and once more with the first filters. */
      const turn = async (count: number) => {
        const many = Array.from({ length: count }, (_, id) => [id, all[1]]);
        context()?.set("reports", { of, reports: Object.fromEntries(many) });
        list(reports(5));
        await look({ payload: { result: "bad" } });
        list(reports(1, 200_000));
        return look({ ...good });
      };
      assert.deepEqual([await turn(99_000), flow.warnings()], [["created 200000"], []]);
      for (let i = 0; i < 2; i++) assert.deepEqual(await turn(100_000), []);
      assert.deepEqual(warned(), [["changes", 'seo-reports.status.runsDropped {"most":"100,000"}']]);
    });

    it("only in a store of Node-RED's settings: otherwise the error names the node and the stores", async () => {
      await start(nodes({ store: "third", name: "Watch" }));
      await openStores({ first: { module: "memory" }, second: { module: "memory" } });
      lists.asked.length = 0;
      const { code, message } = failure(await flow.send("changes")).error;
      const sentence = 'Watch: the context store "third" is not in Node-RED\'s settings, which have: first, second.';
      assert.deepEqual([code, message], ["SEO_CONFIG", sentence]);
      assert.equal(lists.asked.length, 0);
    });

    it("only in the selected store, and only the compared fields", async () => {
      await start(nodes({ store: "second" }));
      await openStores({ first: { module: "memory" }, second: { module: "memory" } });
      list(reports(2).map((row) => ({ ...row, results: { title: "long" }, password: true })));
      await look();
      assert.deepEqual(context()?.keys("first"), []);
      assert.deepEqual(context()?.keys("second"), ["reports"]);
      const { reports: kept } = Object(context()?.get("reports", "second")) as { reports: Record<string, Row> };
      const names = ["created_at", "generated_at", "id", "privacy", "result", "score", "updated_at", "url"];
      assert.deepEqual(Object.keys(kept[1] ?? {}).toSorted(), names);
    });
  });
});

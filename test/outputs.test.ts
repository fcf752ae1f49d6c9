import assert from "node:assert/strict";
import { type Flow, type Message, node, run, service } from "./support/flow.js";
import { type Lists, latch, late, listed, reports, type Shape, shapes, startLists } from "./support/lists.js";
import { helper } from "./support/red.js";

interface Parts {
  id: string;
  index: number;
  count?: number;
  type: string;
  len: number;
  parts?: Message;
}

const LIST = "seo-report-list";
const parts = (msg: Message | undefined) => msg?.parts as Parts;
const seo = (msg: Message | undefined) => msg?.seo as Record<string, unknown>;
const payloads = (messages: Message[]) => messages.map(({ payload }) => payload);

/** A list node for each output, the streams with a join node behind them. */
const outputs = (type: string, settings: object = {}) => [
  ...["body", "data", "all"].map((output) => node(output, type, [`${output}-out`], { output, ...settings })),
  ...["pages", "records"].flatMap((output) => [
    node(output, type, [`${output}-out`, `${output}-join`], { output, ...settings }),
    node(`${output}-join`, "join", [`${output}-joined`], { mode: "auto" }),
  ]),
];

describe("Outputs of a list", () => {
  let lists: Lists;
  let flow: Flow;

  before(async () => {
    lists = await startLists({ all: [] });
  });

  after(() => lists.close());

  const serve = (options: Lists["options"]) => {
    lists.asked.length = 0;
    lists.options = options;
    flow.forget();
  };

  /** Sends a message to a node and expects it to succeed. */
  const ask = async (id: string, msg: Message = {}) => {
    const { by, msg: ended } = await flow.send(id, msg);
    assert.equal(by, "completed", String((ended.error as Error | undefined)?.message));
  };

  for (const [type, make] of Object.entries(listed)) {
    describe(`of ${type}`, () => {
      before(async () => {
        flow = await run([service(lists.url), ...outputs(type, { limit: "" })]);
      });

      after(() => helper.unload());

      for (const [name, shape] of Object.entries(shapes)) {
        it(`join gives back the array of all, ${name}`, async () => {
          for (const count of [1, 10, 25]) {
            serve({ all: make(count), shape });
            await Promise.all(["all", "pages", "records"].map((output) => ask(output, { payload: { per_page: 10 } })));
            const [all] = await flow.take("all-out", 1);
            assert.deepEqual(all?.payload, make(count));
            for (const output of ["pages", "records"]) {
              const [joined] = await flow.take(`${output}-joined`, 1);
              assert.deepEqual(joined?.payload, all?.payload, `${output}, ${count} records`);
              assert.equal(joined?.parts, undefined);
              assert.equal(flow.of(`${output}-joined`).length, 1);
            }
          }
        });
      }

      it("an empty list is [] as a whole, and nothing as a stream", async () => {
        for (const shape of Object.values(shapes)) {
          serve({ all: [], shape });
          await Promise.all(["all", "pages", "records"].map((output) => ask(output)));
          assert.deepEqual(payloads(await flow.take("all-out", 1)), [[]]);
          assert.deepEqual([...flow.of("pages-out"), ...flow.of("records-out")], []);
          assert.equal(flow.of("completed").length, 3);
        }
      });
    });
  }

  describe("each in a flow of its own", () => {
    afterEach(() => helper.unload());

    describe("are", () => {
      beforeEach(async () => {
        flow = await run([service(lists.url), ...outputs(LIST, { limit: "" })]);
      });

      it("the answer, and its data, of one page", async () => {
        serve({ all: reports(25) });
        await ask("body", { payload: { per_page: 25 } });
        const [body] = await flow.take("body-out", 1);
        const { data, meta } = (body as Message).payload as { data: unknown; meta: { last_page: number } };
        assert.deepEqual(data, reports(25));
        assert.equal(meta.last_page, 1);
        await ask("data");
        assert.deepEqual(payloads(await flow.take("data-out", 1)), [reports(25).slice(0, 10)]);
        assert.deepEqual([seo(body).page, seo(body).pages, seo(body).total], [1, 1, 25]);
        assert.equal(lists.asked.length, 2);
        serve({ all: reports(3), shape: shapes["plain array"] as Shape });
        await ask("data");
        assert.deepEqual(payloads(await flow.take("data-out", 1)), [reports(3)]);
      });

      it("a message for each page, or for each record, in order", async () => {
        serve({ all: reports(250) });
        await ask("pages");
        assert.deepEqual(payloads(flow.of("pages-out")), [
          reports(250).slice(0, 100),
          reports(250).slice(100, 200),
          reports(250).slice(200),
        ]);
        await ask("records");
        assert.deepEqual(payloads(flow.of("records-out")), reports(250));
      });

      it("numbered from 0, of one group, and counted on the last alone", async () => {
        serve({ all: reports(250) });
        for (const [output, count, len] of [
          ["pages", 3, 2],
          ["records", 250, 1],
        ] as const) {
          await ask(output);
          const all = (await flow.take(`${output}-out`, count)).map(parts);
          assert.equal(all.length, count);
          const { id } = all[0] as Parts;
          const expected = all.map((_, index) => ({
            id,
            type: "array",
            len,
            index,
            ...(index === count - 1 && { count }),
          }));
          assert.deepEqual(all, expected);
        }
        serve({ all: reports(1) });
        await Promise.all([ask("records"), ask("records")]);
        const [one, two] = await flow.take("records-out", 2);
        assert.notEqual(parts(one).id, parts(two).id);
      });

      it("with what msg.seo tells of the page, and of the whole", async () => {
        serve({ all: reports(250) });
        const told = (msg: Message) => {
          const { operation, statusCode, page, pages, total, truncated } = seo(msg);
          return { operation, statusCode, page, pages, total, truncated };
        };
        const at = (page: number) => ({
          ...{ operation: LIST, statusCode: 200, page, pages: 3, total: 250, truncated: false },
        });
        await ask("all");
        await ask("pages");
        await ask("records");
        assert.deepEqual(flow.of("all-out").map(told), [at(3)]);
        assert.deepEqual(flow.of("pages-out").map(told), [at(1), at(2), at(3)]);
        assert.deepEqual(
          flow.of("records-out").map(told),
          reports(250).map((_, i) => at(Math.floor(i / 100) + 1)),
        );
        for (const output of ["all", "pages", "records"]) {
          const last = seo(flow.of(`${output}-out`).at(-1));
          assert.equal(last.attempts, 3);
          assert.equal(typeof last.duration, "number");
          assert.ok(last.headers);
        }
        serve({ all: reports(5), shape: shapes["plain array"] as Shape });
        await ask("all");
        assert.deepEqual(Object.keys(seo(flow.of("all-out")[0])).includes("total"), false);
      });

      it("with everything else of the message, each its own", async () => {
        serve({ all: reports(120) });
        for (const output of ["all", "pages", "records"]) {
          const [req, res] = [{ of: "http in" }, { end() {} }];
          const given = {
            topic: "t",
            payload: { per_page: 100 },
            headers: { a: 1 },
            url: "u",
            kept: { deep: [1] },
            req,
            res,
          };
          await ask(output, given);
          const came = await flow.take(`${output}-out`, 1);
          for (const msg of came) {
            assert.deepEqual([msg.topic, msg.headers, msg.url, msg.kept], ["t", { a: 1 }, "u", { deep: [1] }]);
            assert.equal(msg.statusCode, undefined);
            assert.equal(msg._msgid, (given as Message)._msgid);
          }
          assert.equal(new Set(came.map(({ kept }) => kept)).size, came.length);
          assert.equal(new Set(came.map(({ seo }) => seo)).size, came.length);
          assert.equal(new Set(came.map(({ parts }) => parts)).size, output === "all" ? 1 : came.length);
          assert.ok(came.every((msg) => msg.req === req && msg.res === res));
        }
      });

      it("refused with a limit that is none", async () => {
        for (const limit of ["-1", "1.5", "some"]) {
          await helper.unload();
          flow = await run([service(lists.url), ...outputs(LIST, { limit })]);
          serve({ all: reports(5) });
          for (const output of ["all", "pages", "records"]) {
            const { by, msg } = await flow.send(output);
            assert.equal(by, "caught");
            assert.equal((msg.error as { code: string }).code, "SEO_INPUT");
            assert.equal(
              (msg.error as { message: string }).message,
              `limit must be a whole number from 0; the node's limit is "${limit}".`,
            );
          }
          assert.equal(lists.asked.length, 0);
        }
      });

      it("cut at the limit, and said to be", async () => {
        await helper.unload();
        flow = await run([service(lists.url), ...outputs(LIST, { limit: "150" })]);
        serve({ all: reports(250) });
        await Promise.all(["all", "pages", "records"].map((output) => ask(output)));
        for (const output of ["all-out", "pages-joined", "records-joined"]) {
          const [msg] = await flow.take(output, 1);
          assert.deepEqual(msg?.payload, reports(250).slice(0, 150), output);
          assert.equal(seo(msg).truncated, true);
        }
      });

      it("at most 1 000 records where the node says nothing of it", async () => {
        await helper.unload();
        flow = await run([service(lists.url), ...outputs(LIST)]);
        serve({ all: reports(1200) });
        await ask("all");
        const [msg] = await flow.take("all-out", 1);
        assert.equal(((msg as Message).payload as unknown[]).length, 1000);
        assert.equal(seo(msg).truncated, true);
      });
    });

    describe("work with", () => {
      const given = { payload: ["one", "two"], topic: "nested" };

      it("parts that the message had: they are kept, and are back after join", async () => {
        flow = await run([
          service(lists.url),
          node("split", "split", ["list"], { splt: "\\n", spltType: "str", arraySplt: 1, arraySpltType: "len" }),
          node("list", LIST, ["out", "inner"], { output: "records", limit: "", searchType: "msg", search: "payload" }),
          node("inner", "join", ["joined", "outer"], { mode: "auto" }),
          node("outer", "join", ["whole"], { mode: "auto" }),
        ]);
        serve({ all: reports(120) });
        helper.getNode("split")?.receive(given as never);
        const [whole] = await flow.take("whole", 1);
        assert.deepEqual(whole?.payload, [reports(120), reports(120)]);
        assert.equal(whole?.parts, undefined);
        const joined = flow.of("joined").map(parts);
        assert.deepEqual(
          joined.map(({ index, count }) => [index, count]),
          [
            [0, 2],
            [1, 2],
          ],
        );
        for (const msg of flow.of("out")) assert.ok(joined.some(({ id }) => id === parts(msg).parts?.id));
        assert.deepEqual(new Set(lists.asked.map(({ query }) => query.get("search"))), new Set(["one", "two"]));
      });

      it("split, which makes records of pages, and two joins, which make all of them again", async () => {
        flow = await run([
          service(lists.url),
          node("list", LIST, ["split"], { output: "pages", limit: "" }),
          node("split", "split", ["single", "inner"], {
            splt: "\\n",
            spltType: "str",
            arraySplt: 1,
            arraySpltType: "len",
          }),
          node("inner", "join", ["page", "outer"], { mode: "auto" }),
          node("outer", "join", ["whole"], { mode: "auto" }),
        ]);
        serve({ all: reports(250) });
        await ask("list");
        const [whole] = await flow.take("whole", 1);
        assert.deepEqual(whole?.payload, reports(250));
        assert.deepEqual(payloads(flow.of("single")), reports(250));
        assert.equal(flow.of("page").length, 3);
      });

      it("batch, which ends its last group with the last record", async () => {
        flow = await run([
          service(lists.url),
          node("list", LIST, ["batch"], { output: "records", limit: "" }),
          node("batch", "batch", ["join"], { mode: "count", count: 40, overlap: 0, honourParts: true }),
          node("join", "join", ["group"], { mode: "auto" }),
        ]);
        serve({ all: reports(90) });
        await ask("list");
        const groups = payloads(await flow.take("group", 3));
        assert.deepEqual(groups, [reports(90).slice(0, 40), reports(90).slice(40, 80), reports(90).slice(80)]);
      });
    });

    describe("that fail in the middle", () => {
      const broken = (nth: number) =>
        (lists.options.reply = ({ query }) => {
          return Number(query.get("page") ?? 1) < nth ? undefined : { status: 500, body: { message: "Broken." } };
        });

      beforeEach(async () => {
        flow = await run([service(lists.url), ...outputs(LIST, { limit: "" })]);
        serve({ all: reports(450) });
      });

      for (const [output, count] of [
        ["all", 0],
        ["pages", 2],
        ["records", 200],
      ] as const) {
        it(`keep what was sent and tell how much it was: ${output}`, async () => {
          broken(3);
          const { by, msg } = await flow.send(output, { payload: { sort: "asc" } });
          assert.equal(by, "caught");
          const { code, message } = msg.error as { code: string; message: string };
          assert.deepEqual(
            [code, message],
            ["SEO_SERVER", "The service answered 500: Broken. 200 records of 2 pages had come."],
          );
          const { error } = seo(msg) as { error: { message: string; attempts: number; statusCode: number } };
          assert.deepEqual([error.message, error.attempts, error.statusCode], [message, 3, 500]);
          assert.deepEqual(msg.payload, { sort: "asc" });
          const came = flow.of(`${output}-out`);
          assert.equal(came.length, count);
          assert.deepEqual(payloads(came).flat(), reports(450).slice(0, count && 200));
          assert.ok(came.every((one) => parts(one).count === undefined));
          await late(20);
          assert.equal(flow.of("caught").length, 1);
          assert.equal(flow.of("completed").length, 0);
        });

        it(`tell of a record without an id, after what came before it: ${output}`, async () => {
          const all = reports(450).map((row, i) => (i === 250 ? { url: row.url } : row));
          serve({ all });
          const { by, msg } = await flow.send(output);
          assert.equal(by, "caught");
          const { code, message } = msg.error as { code: string; message: string };
          assert.equal(code, "SEO_RESPONSE");
          assert.match(message, /a record without id.* 200 records of 2 pages had come\.$/);
          assert.equal(flow.of(`${output}-out`).length, count);
        });
      }

      it("are no failure of the other outputs: records without an id", async () => {
        const all = reports(5).map(({ url }) => ({ url }));
        serve({ all });
        await ask("data");
        assert.deepEqual(payloads(await flow.take("data-out", 1)), [all]);
        await ask("body");
        assert.deepEqual((flow.of("body-out")[0] as { payload: { data: unknown } }).payload.data, all);
      });

      it("say nothing of pages when none had come", async () => {
        broken(1);
        const { msg } = await flow.send("records");
        assert.equal((msg.error as Error).message, "The service answered 500: Broken.");
      });
    });

    it("stop between pages when the node is deployed anew, and say so once", async () => {
      const nodes = (name: string) => [
        service(lists.url),
        node("list", LIST, ["out"], { name, output: "pages", limit: "" }),
      ];
      flow = await run(nodes("before"));
      serve({ all: reports(20_000) });
      const ended = flow.send("list");
      await flow.take("out", 3);
      await flow.deploy(nodes("after"));
      const { by, msg } = await ended;
      const { length } = lists.asked;
      assert.equal(by, "caught");
      const { code, message } = msg.error as { code: string; message: string };
      assert.equal(code, "SEO_CANCELLED");
      const came = flow.of("out").length;
      assert.ok(came >= 3 && came < 200, `${came} pages`);
      assert.match(message, new RegExp(` ${came * 100} records of ${came} pages had come\\.$`));
      await late(50);
      assert.equal(lists.asked.length, length, "nothing more is asked for");
      assert.equal(flow.of("out").length, came);
      assert.equal(flow.of("caught").length, 1);
    });

    it("show how far they are", async () => {
      flow = await run([service(lists.url, { concurrency: "1" }), ...outputs(LIST, { limit: "" })]);
      for (const [shape, key] of [
        ["length-aware", 'seo-reports.status.page {"page":2,"pages":5,"records":200}'],
        ["simple", 'seo-reports.status.pageUnknown {"page":2,"pages":"","records":200}'],
      ] as const) {
        const hold = latch();
        serve({
          all: reports(450),
          shape: shapes[shape] as Shape,
          wait: ({ query }) => (query.get("page") === "3" ? hold.opened : undefined),
        });
        const ended = ask("records");
        await flow.until(() => flow.statuses("records").includes(key));
        hold.open();
        await ended;
        const done = shape === "simple" ? "450" : 'seo-reports.status.of {"count":450,"total":450}';
        await flow.until(() => flow.statuses("records").at(-1) === done);
      }
    });

    it("leave other nodes of the service their turn", async () => {
      flow = await run([
        service(lists.url, { concurrency: "2" }),
        node("list", LIST, ["out"], { output: "records", limit: "" }),
        node("show", "seo-report-show", ["shown-out"], { reportId: "7", reportIdType: "str" }),
      ]);
      serve({
        all: reports(4000),
        wait: () => late(5),
        reply: ({ path }) => (path.endsWith("/7") ? { body: { data: { id: 7 } } } : undefined),
      });
      const long = ask("list");
      for (const after of [300, 900, 1500]) {
        await flow.take("out", after);
        const { length } = lists.asked;
        await ask("show");
        const place = lists.asked.findIndex(({ path }, i) => i >= length && path.endsWith("/7"));
        assert.ok(place - length <= 2, `${place - length} pages were asked for before it`);
      }
      await long;
      assert.equal(flow.of("out").length, 4000);
    });
  });
});

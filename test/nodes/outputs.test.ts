import assert from "node:assert/strict";
import { type Message, startFlow } from "../support/flow.js";
import { reports, type Shape, shapes } from "../support/lists.js";
import { outputs, type Parts, parts, payloads, seo, withLists } from "../support/outputs.js";

const LIST = "seo-report-list";

describe("The outputs of a list node", () => {
  const suite = withLists();
  const { serve, ask } = suite;

  afterEach(() => suite.flow.stop());

  beforeEach(async () => {
    suite.flow = await startFlow([suite.service(), ...outputs(LIST, { limit: "" })]);
  });

  it("return one page as the full response or as its data", async () => {
    serve({ all: reports(25) });
    await ask("body", { payload: { per_page: 25 } });
    const [body] = await suite.flow.take("body-out", 1);
    const { data, meta } = (body as Message).payload as { data: unknown; meta: { last_page: number } };
    assert.deepEqual(data, reports(25));
    assert.equal(meta.last_page, 1);
    await ask("data");
    assert.deepEqual(payloads(await suite.flow.take("data-out", 1)), [reports(25).slice(0, 10)]);
    assert.deepEqual([seo(body).page, seo(body).pages, seo(body).total], [1, 1, 25]);
    assert.equal(suite.lists.asked.length, 2);
    serve({ all: reports(3), shape: shapes["plain array"] as Shape });
    await ask("data");
    assert.deepEqual(payloads(await suite.flow.take("data-out", 1)), [reports(3)]);
  });

  it("number msg.parts from 0, with count only in the last message", async () => {
    serve({ all: reports(250) });
    for (const [output, count, len] of [
      ["pages", 3, 2],
      ["records", 250, 1],
    ] as const) {
      await ask(output);
      const all = (await suite.flow.take(`${output}-out`, count)).map(parts);
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
    const [one, two] = await suite.flow.take("records-out", 2);
    assert.notEqual(parts(one).id, parts(two).id);
  });

  it("describe the page and the list in msg.seo", async () => {
    serve({ all: reports(250) });
    const told = (msg: Message) => {
      const { operation, statusCode, page, pages, total, truncated } = seo(msg);
      return { operation, statusCode, page, pages, total, truncated };
    };
    const list = { operation: LIST, statusCode: 200, pages: 3, total: 250, truncated: false };
    const at = (page: number) => ({ ...list, page });
    await ask("all");
    await ask("pages");
    await ask("records");
    assert.deepEqual(suite.flow.of("all-out").map(told), [at(3)]);
    assert.deepEqual(suite.flow.of("pages-out").map(told), [at(1), at(2), at(3)]);
    const each = reports(250).map((_, i) => at(Math.floor(i / 100) + 1));
    assert.deepEqual(suite.flow.of("records-out").map(told), each);
    for (const output of ["all", "pages", "records"]) {
      const last = seo(suite.flow.of(`${output}-out`).at(-1));
      assert.equal(last.attempts, 3);
      assert.equal(typeof last.duration, "number");
      assert.ok(last.headers);
    }
    serve({ all: reports(5), shape: shapes["plain array"] as Shape });
    await ask("all");
    assert.deepEqual(Object.keys(seo(suite.flow.of("all-out")[0])).includes("total"), false);
  });

  it("keep the other properties, in a separate copy for each message", async () => {
    serve({ all: reports(120) });
    for (const output of ["all", "pages", "records"]) {
      const [req, res] = [{ of: "http in" }, { end() {} }];
      const kept = { deep: [1] };
      const given = { topic: "t", payload: { per_page: 100 }, headers: { a: 1 }, url: "u", kept, req, res };
      await ask(output, given);
      const came = await suite.flow.take(`${output}-out`, 1);
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

  it("show the number of records in the status, with the total if that is known", async () => {
    for (const [count, shape, text] of [
      [1, "plain array", 'record {"count":1}'],
      [3, "plain array", 'records {"count":3}'],
      [25, "length-aware", 'of {"count":10,"total":25}'],
      [3, "no list", 'records {"count":0}'],
    ] as const) {
      serve({ all: reports(count), shape: shapes[shape] ?? (({ all }) => ({ data: { ...all } })) });
      await ask("data");
      await suite.flow.until(() => suite.flow.statuses("data").at(-1)?.text === `seo-reports.status.${text}`);
    }
  });

  it("stop at the limit and set truncated", async () => {
    await suite.flow.stop();
    suite.flow = await startFlow([suite.service(), ...outputs(LIST, { limit: "150" })]);
    serve({ all: reports(250) });
    await Promise.all(["all", "pages", "records"].map((output) => ask(output)));
    for (const output of ["all-out", "pages-joined", "records-joined"]) {
      const [msg] = await suite.flow.take(output, 1);
      assert.deepEqual(msg?.payload, reports(250).slice(0, 150), output);
      assert.equal(seo(msg).truncated, true);
    }
  });
});

import assert from "node:assert/strict";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { node, startFlow } from "../support/flow.js";
import { checked, type Row, reports } from "../support/lists.js";
import { parts, payloads, seo, withLists } from "../support/outputs.js";

const LIST = "seo-report-list";

const issues = (id: string, type: string, settings: object = {}) => [
  node(id, type, { output: "issues", ...settings, wires: [["out", "join"]] }),
  node("join", "join", { mode: "auto", wires: [["joined"]] }),
];

describe("The output “issues”", () => {
  const suite = withLists();
  const { serve, ask } = suite;
  const shown = (text: string) => suite.flow.until(() => suite.flow.statuses().some((status) => status.text === text));

  afterEach(() => suite.flow.stop());

  describe("of a list", () => {
    const list = (settings: object = {}) =>
      startFlow([suite.service(), ...issues("list", LIST, { limit: "", ...settings })]);

    it("sends a message for each failed check of all pages, which a Join node combines", async () => {
      suite.flow = await list();
      serve({ all: reports(250).map((one) => checked(one, { title: false, speed: true, links: one.id === 7 })) });
      await ask("list", { topic: "t", kept: 1 });
      const sent = suite.flow.of("out");
      assert.equal(sent.length, 250 + 249);
      const { payload } = sent[0] ?? {};
      const facts = { check: "title", importance: "high", value: null, errors: ["wrong"] };
      assert.deepEqual(payload, { report: 250, url: "example.com/250", project: null, ...facts });
      assert.deepEqual([sent[0]?.topic, sent[0]?.kept], ["t", 1]);
      assert.deepEqual([seo(sent[0]).operation, seo(sent[0]).total], [LIST, 250]);
      for (const [index, msg] of sent.entries())
        assert.deepEqual([parts(msg).id, parts(msg).index], [parts(sent[0]).id, index]);
      assert.equal(parts(sent.at(-1)).count, 499);
      const [joined] = await suite.flow.take("joined", 1);
      assert.deepEqual(joined?.payload, payloads(sent));
      await shown('seo-reports.status.issues {"count":499}');
    });

    it("counts reports in its limit", async () => {
      suite.flow = await list({ limit: "3" });
      serve({ all: reports(9).map((one) => checked(one, { title: false, links: false })) });
      await ask("list");
      const ids = suite.flow.of("out").map(({ payload }) => (payload as Row).report);
      assert.deepEqual(ids, [9, 9, 8, 8, 7, 7]);
      assert.equal(seo(suite.flow.of("out").at(-1)).truncated, true);
    });

    it("says in the last message that there are more, also if the last page has no failed check", async () => {
      suite.flow = await list({ limit: "200" });
      serve({ all: reports(500).map((one) => checked(one, { title: Number(one.id) <= 400 })) });
      await ask("list");
      assert.equal(seo(suite.flow.of("out").at(-1)).truncated, true);
    });

    it("sends nothing if no check failed, or if the response has none", async () => {
      suite.flow = await list();
      serve({ all: reports(3).map((one) => checked(one, { title: true })) });
      await ask("list");
      await shown("seo-reports.status.noIssues");
      for (const results of [undefined, null, [], "text", { note: "text" }, [{ passed: false }]]) {
        serve({ all: reports(3).map((one) => ({ ...one, results })) });
        await ask("list");
        assert.deepEqual(suite.flow.of("out"), []);
      }
      await ask("list");
      await shown("seo-reports.status.noChecks");
      assert.equal(suite.flow.statuses("list").at(-1)?.fill, "grey");
    });
  });

  describe("of a single report", () => {
    let sandbox: Sandbox;
    beforeEach(async () => {
      sandbox = await startSandbox();
    });
    afterEach(() => sandbox.close());

    const inputs = {
      "seo-report-show": { payload: 1 },
      "seo-report-store": { payload: "https://example.com/gallery?images=5000" },
      "seo-report-update": { payload: { id: 1, update: 1 } },
    };

    for (const [type, msg] of Object.entries(inputs)) {
      it(`sends its failed checks, after the request took effect once: ${type}`, async () => {
        const service = { ...suite.service(), baseUrl: sandbox.url };
        suite.flow = await startFlow([service, ...issues("one", type, { target: "issue" })], {
          service: { apiKey: sandbox.apiKey },
        });
        const { ends } = await suite.flow.send("one", { ...msg });
        const sent = suite.flow.of("out");
        const found = sent.map(({ issue }) => issue as Row);
        assert.ok(found.length > 1 && ends === 1);
        const report = sandbox.reports.get(Number(found[0]?.report));
        assert.deepEqual([found[0]?.url, found[0]?.project], [report?.url, report?.project]);
        assert.ok(found.every(({ errors }) => (errors as unknown[]).length <= 10));
        assert.deepEqual(sent[0]?.payload, msg.payload);
        assert.deepEqual([parts(sent.at(-1)).count, seo(sent[0]).operation], [found.length, type]);
        assert.equal(sandbox.requests.length, 1);
      });
    }
  });
});

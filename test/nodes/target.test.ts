import assert from "node:assert/strict";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { listProperties, operations, responseProperties } from "../../src/operations.js";
import { type Flow, failure, fixedReport, node, service, startFlow } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";
import { type FlowNode, helper } from "../support/red.js";

const LIST = "seo-report-list";

describe("The target of a result", () => {
  const open = closeAfterEach();
  let sandbox: Sandbox;
  let flow: Flow;

  const start = async (...nodes: FlowNode[]) => {
    sandbox = await open(startSandbox({ reports: 12, apiKey: "key-of-tests" }));
    flow = await open(startFlow([service("service", sandbox.url), ...nodes]));
  };

  it("is a property of msg for every operation, and keeps the payload; msg.seo has what the help names", async () => {
    const inputs: Record<string, object> = {
      url: { url: "https://example.com/a", urlType: "str" },
      reportId: fixedReport,
      project: { project: "shop.example.com", projectType: "str" },
    };
    // The other operations need what these delete.
    const types = Object.entries(operations).sort(([, a], [, b]) => Number("deletes" in a) - Number("deletes" in b));
    await start(
      ...types.map(([type, { main }]) => node(type, type, { target: "found.here", ...(main ? inputs[main] : {}) })),
    );
    for (const [type, row] of types) {
      const { outputs, caught } = await flow.send(type, { payload: { row: type }, found: { kept: true } });
      assert.equal(caught, undefined, type);
      const [{ payload, found } = {}] = outputs as { payload?: unknown; found?: { kept: boolean; here: unknown } }[];
      const own = [...("list" in row ? listProperties : []), ...("existing" in row.params ? ["outcome"] : [])];
      // A single page is not cut.
      const names = [...responseProperties, ...own].filter((name) => name !== "truncated");
      assert.deepEqual(Object.keys(Object(outputs[0]?.seo)).sort(), names.sort(), type);
      assert.deepEqual([payload, found?.kept], [{ row: type }, true], type);
      assert.ok(found && "here" in found, type);
    }
  });

  it("is the payload if it is blank, as in flows of version 1", async () => {
    await start(node("list", LIST, { target: "" }), node("old", LIST));
    for (const id of ["list", "old"]) {
      const [out] = (await flow.send(id, { payload: {} })).outputs;
      assert.ok(Array.isArray(Object(out?.payload).data), id);
    }
  });

  for (const target of ["seo", "parts", "_msgid", "req.body", "a b", "a[", "__proto__.x", "x.constructor", "1+1"])
    it(`cannot be ${target}: nothing is sent`, async () => {
      await start(node("list", LIST, { target }));
      const { error } = failure(await flow.send("list", { payload: {} }));
      assert.match(error.message, /^target must be a property of msg/);
      assert.equal(sandbox.requests.length, 0);
    });

  const unusable: [target: string, msg: object, place: string][] = [
    ["row.report.found", { row: "text" }, "row"],
    ["row.report.found", { row: null }, "row"],
    ["row.report.found", { row: { report: 7 } }, "row.report"],
    ["row.report.found", { row: { report: null } }, "row.report"],
    ["payload", Object.freeze({}), ""],
    ["payload", Object.defineProperty({}, "payload", { value: "old", enumerable: true }), ""],
    ["row.found", { row: Object.defineProperty({}, "found", { get: () => "old", enumerable: true }) }, "row"],
    ["row.found", Object.freeze({ row: {} }), ""],
    ["row.found", { row: Object.freeze({}) }, "row"],
  ];
  for (const [target, msg, place] of unusable)
    it(`cannot be inside what is not an object, or frozen: ${target} of ${JSON.stringify(msg)}`, async () => {
      await start(node("store", "seo-report-store", { url: "example.com", urlType: "str", target }));
      helper.getNode("store")?.receive(msg as never);
      const [{ error } = {}] = await flow.take("caught", 1);
      const { message, code } = error as { message: string; code: string };
      const reason = `${["msg", place].filter(Boolean).join(".")} is not an object, or it is frozen.`;
      assert.deepEqual([message, code], [`The result cannot be set in msg.${target}: ${reason}`, "SEO_INPUT"]);
      assert.equal(sandbox.requests.length, 0);
    });

  for (const msg of [{}, { row: {} }, { row: { kept: 1 } }, { row: { report: { kept: 1, found: "old" } } }])
    for (const output of Object.keys(operations[LIST].options.output?.values ?? {}))
      it(`is made in what the message has: ${JSON.stringify(msg)}, ${output}`, async () => {
        await start(node("list", LIST, { target: "row.report.found", output }));
        const { outputs } = await flow.send("list", { payload: "kept", ...structuredClone(msg) });
        const [{ payload, row } = {}] = outputs as { payload?: unknown; row?: { report: { found: unknown } } }[];
        assert.equal(payload, "kept");
        const { row: before = {} } = msg as { row?: { report?: object } };
        assert.deepEqual(row, { ...before, report: { ...before.report, found: row?.report.found } });
        assert.ok(![undefined, "old"].includes(row?.report.found as string));
      });

  it("is an existing report, returned or regenerated as the node says, with msg.seo.outcome", async () => {
    await start(
      node("old", "seo-report-store"),
      ...["create", "regenerate", "return"].map((existing) =>
        node(existing, "seo-report-store", { existing, existingType: "str", maxAge: "", maxAgeType: "str" }),
      ),
      node("by message", "seo-report-store", { existing: "payload.existing", existingType: "msg" }),
    );
    const payload = { url: "https://example.com/existing" };
    const outcome = async (id: string, more = {}) => {
      const [out] = (await flow.send(id, { payload: { ...payload, ...more } })).outputs;
      return Object(out?.seo).outcome;
    };
    assert.equal(await outcome("return"), "created");
    assert.equal(await outcome("return"), "fresh");
    assert.equal(await outcome("regenerate"), "regenerated");
    assert.equal(await outcome("by message", { existing: "return" }), "fresh");
    assert.equal(await outcome("create"), "created");
    // A flow of version 1 does not read a property of the payload that came later.
    assert.equal(await outcome("old", { existing: "return" }), "created");
    const { length } = sandbox.requests;
    const { error } = failure(await flow.send("by message", { payload: { ...payload, existing: "perhaps" } }));
    assert.match(error.message, /^existing must be one of create/);
    assert.equal(sandbox.requests.length, length);
  });
});

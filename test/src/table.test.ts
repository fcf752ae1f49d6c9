import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { build } from "../../nodes/editor/forms.js";
import { page } from "../../nodes/editor/page.js";
import { createClient } from "../../src/client.js";
import { codes } from "../../src/errors.js";
import { nodeTypes, type Operation, operations } from "../../src/operations.js";

/** A new row, as a contributor would add it. A new operation needs nothing else. */
const added: Operation = {
  title: "list audits",
  help: "Lists the audits of a report.",
  returns: "A page of audits.",
  color: "#87A980",
  method: "GET",
  path: "/api/v1/reports/{id}/audits",
  list: "id",
  main: "reportId",
  options: operations["seo-report-list"]?.options ?? {},
  params: {
    reportId: {
      kind: "segment",
      wire: "id",
      label: "Report ID",
      required: true,
      help: "The ID of the report.",
    },
    since: { kind: "text", label: "Since", help: "Only audits after this date." },
  },
};

describe("The table of operations", () => {
  for (const [type, row] of Object.entries<Operation>(operations)) {
    it(`is complete and consistent: ${type}`, () => {
      const params = Object.entries(row.params).map(([name, param]) => ({ name, wire: name, ...param }));
      const wires = params.map(({ wire }) => wire);
      assert.deepEqual(wires, [...new Set(wires)], "no two parameters are sent under the same name (`wire`)");
      const segments = [...row.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const inPath = params.filter(({ kind, required }) => kind === "segment" && required);
      assert.deepEqual(
        inPath.map(({ wire }) => wire),
        segments,
        "each {name} in `path` is the `wire`, or else the name, of a parameter with `kind: segment`, which is required",
      );
      const required = Object.keys(row.params).filter((name) => row.params[name]?.required);
      assert.deepEqual(
        required,
        row.main ? [row.main] : [],
        "the row needs `main` with the name of its required parameter, and no other one is required",
      );
      assert.ok(row.list || row.done, "an operation that is not a list has the status text `done`");
      for (const { name, default: preset, values, when = {} } of params) {
        const known = preset === undefined || Object.hasOwn(values ?? {}, preset);
        assert.ok(known, `${name}: a parameter's default is one of its values`);
        for (const [other, value] of Object.entries(when))
          assert.ok(Object.hasOwn(row.params[other]?.values ?? {}, value), `${name}: ${other} has no value ${value}`);
      }
    });
  }

  it("has statuses of at most 40 characters", () => {
    for (const { status } of Object.values(codes)) assert.ok(status.length <= 40, status);
  });

  describe("with one more row", () => {
    const TYPE = "seo-audit-list";
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(`${request.method} ${request.url}`);
      response.end('{"data":[{"id":1}]}');
    });
    before((done) => {
      for (const list of [operations, nodeTypes]) Object.assign(list, { [TYPE]: added });
      server.listen(0, "127.0.0.1", done);
    });
    after(() => {
      for (const list of [operations, nodeTypes]) Reflect.deleteProperty(list, TYPE);
      server.close();
    });

    it("generates its edit dialog, definition, help and texts", () => {
      const { types, english } = build(nodeTypes);
      const html = page(types);
      assert.ok(html.includes(`registerType("${TYPE}"`) && html.includes(`data-template-name="${TYPE}"`));
      assert.ok(html.includes('value: "payload.since"'));
      assert.ok(
        JSON.stringify(english).includes(added.title) &&
          JSON.stringify(english).includes("Only audits after this date."),
      );
    });

    it("sends the request of that row", async () => {
      const { port } = server.address() as AddressInfo;
      const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey: "key" });
      const { body } = await client.call(TYPE, { reportId: { data: { id: 7 } }, since: "2026-11-01" });
      await client.close();
      assert.deepEqual(body, { data: [{ id: 1 }] });
      assert.deepEqual(seen, ["GET /api/v1/reports/7/audits?since=2026-11-01"]);
    });
  });
});

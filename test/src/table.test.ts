import assert from "node:assert/strict";
import { createClient } from "../../src/client.js";
import { type Operation, operations } from "../../src/operations.js";
import { answer, listen } from "../support/faulty.js";
import { closeAfterEach } from "../support/opened.js";

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
    reportId: { kind: "segment", wire: "id", label: "Report ID", required: true, help: "The ID of the report." },
    since: { kind: "text", label: "Since", help: "Only audits after this date." },
  },
};

describe("The table of operations", () => {
  const open = closeAfterEach();

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
      const rule = "the row needs `main` with the name of its required parameter, and no other one is required";
      assert.deepEqual(required, row.main ? [row.main] : [], rule);
      const changed: Operation | undefined = Object.entries(operations).find(([id]) => id === row.lookup?.change)?.[1];
      assert.ok(row.list || row.done, "an operation that is not a list has the status text `done`");
      for (const { name, default: preset, values, when = {}, reads } of params) {
        const isKept = name === row.main || reads === "" || Object.hasOwn((changed ?? row).params, name);
        assert.ok(isKept, `${name} is not sent if the report is changed instead: add it to that operation`);
        const known = preset === undefined || Object.hasOwn(values ?? {}, preset);
        assert.ok(known, `${name}: a parameter's default is one of its values`);
        for (const [other, value] of Object.entries(when))
          assert.ok(Object.hasOwn(row.params[other]?.values ?? {}, value), `${name}: ${other} has no value ${value}`);
      }
    });
  }

  it("sends the request of one more row", async () => {
    const TYPE = "seo-audit-list";
    const server = await open(listen((socket) => socket.write(answer(200, '{"data":[{"id":1}]}'))));
    const client = await open(createClient({ baseUrl: server.url, apiKey: "key" }));
    Object.assign(operations, { [TYPE]: added });
    try {
      const { body } = await client.call(TYPE, { reportId: { data: { id: 7 } }, since: "2026-11-01" });
      assert.deepEqual(body, { data: [{ id: 1 }] });
      const sent = server.requests.map(({ method, path }) => `${method} ${path}`);
      assert.deepEqual(sent, ["GET /api/v1/reports/7/audits?since=2026-11-01"]);
    } finally {
      Reflect.deleteProperty(operations, TYPE);
    }
  });
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { buildRequest } from "../../../src/http/request.js";
import { type Operation, operations } from "../../../src/operations.js";
import { createValidator } from "../../../src/schema.js";

const root = { origin: "https://seo.example.com", prefix: "" };

describe("a request", () => {
  for (const [type, row] of Object.entries<Operation>(operations)) {
    const [before = "", after = ""] = row.path.split(/\{\w+\}/);
    const check = createValidator(row.params);

    it(`stays under its own path and is encoded as a form is, with any input: ${type}`, () => {
      const hostile = fc.constantFrom("..", ".", "%2e%2e", "//evil.com", "$&", "a?b#c");
      const any = fc.oneof(fc.string({ unit: "binary" }), fc.string(), hostile);
      // A chosen value is one of few: nearly every other text is rejected.
      const given = Object.entries(row.params).map(([param, { values }]) => [
        param,
        values ? fc.constantFrom(...Object.keys(values)) : any,
      ]);
      const property = fc.property(fc.record<Record<string, string>>(Object.fromEntries(given)), (values) => {
        let input: Record<string, string>;
        try {
          input = check(values);
        } catch {
          return;
        }
        const { path, body = "" } = buildRequest(row, input, root);
        const { origin, pathname, search, searchParams } = new URL(path, root.origin);
        assert.equal(origin, root.origin);
        assert.equal(`${pathname}${search}`, path);
        assert.deepEqual([search.slice(1), body], [`${searchParams}`, `${new URLSearchParams(body)}`]);
        assert.ok(pathname.startsWith(before) && pathname.endsWith(after));
        assert.equal(pathname.split("/").length, row.path.split("/").length);
      });
      fc.assert(property, { numRuns: 200 });
    });

    it(`contains each parameter that is set, in its place: ${type}`, () => {
      const values = Object.fromEntries(
        Object.entries(row.params).map(([param, { values }]) => [
          param,
          Object.keys(values ?? { "a b": "" }).at(-1) ?? "",
        ]),
      );
      const isSegment = (param: string) => row.path.includes(`{${row.params[param]?.wire ?? param}}`);
      const sent = Object.entries(row.params).filter(([param, { reads }]) => reads === undefined && !isSegment(param));
      const names = sent.map(([param, { wire = param }]) => wire);
      const full = buildRequest(row, values, { origin: "", prefix: "/sub" });
      assert.deepEqual([...new URL(full.path, root.origin).searchParams.keys()], row.method === "GET" ? names : []);
      assert.deepEqual([...new URLSearchParams(full.body).keys()], row.method === "GET" ? [] : names);
      assert.ok(full.path.startsWith(`/sub${before}`));
      const segments = Object.fromEntries(Object.entries(values).filter(([param]) => isSegment(param)));
      const bare = buildRequest(row, segments, root);
      assert.deepEqual([bare.body, bare.path.includes("?")], [undefined, false]);
    });
  }
});

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

    it(`stays under its own path with any input: ${type}`, () => {
      const any = fc.oneof(
        fc.string({ unit: "binary" }),
        fc.string(),
        fc.constantFrom("..", ".", "%2e%2e", "//evil.com", "$&", "a?b#c"),
      );
      fc.assert(
        fc.property(fc.record(Object.fromEntries(Object.keys(row.params).map((param) => [param, any]))), (values) => {
          let input: Record<string, string>;
          try {
            input = check(values);
          } catch {
            return;
          }
          const { path } = buildRequest(row, input, root);
          const { origin, pathname } = new URL(path, root.origin);
          assert.equal(origin, root.origin);
          assert.equal(`${pathname}${new URL(path, root.origin).search}`, path);
          assert.ok(pathname.startsWith(before) && pathname.endsWith(after));
          assert.equal(pathname.split("/").length, row.path.split("/").length);
        }),
        { numRuns: 200 },
      );
    });

    it(`contains each parameter that is set, in its place: ${type}`, () => {
      const values = Object.fromEntries(
        Object.entries(row.params).map(([param, { values }]) => [
          param,
          Object.keys(values ?? { "a b": "" }).at(-1) ?? "",
        ]),
      );
      const names = (place: string) =>
        Object.entries(row.params).flatMap(([param, one]) => (one.place === place ? [one.wire ?? param] : []));
      const full = buildRequest(row, values, { origin: "", prefix: "/sub" });
      assert.deepEqual([...new URL(full.path, root.origin).searchParams.keys()], names("query"));
      assert.deepEqual([...new URLSearchParams(full.body).keys()], names("form"));
      assert.ok(full.path.startsWith(`/sub${before}`));
      const segments = Object.fromEntries(
        Object.entries(values).filter(([param]) => row.params[param]?.place === "path"),
      );
      const bare = buildRequest(row, segments, root);
      assert.deepEqual([bare.body, bare.path.includes("?")], [undefined, false]);
    });
  }
});

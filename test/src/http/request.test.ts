import assert from "node:assert/strict";
import fc from "fast-check";
import type { SeoError } from "../../../src/errors.js";
import { buildRequest, parseBase, parseKey } from "../../../src/http/request.js";
import { type Operation, operations } from "../../../src/operations.js";
import { createValidator } from "../../../src/schema.js";

const root = { origin: "https://seo.example.com", prefix: "" };

const SCHEME = "must begin with http:// or https://";
const INVALID = "is not a valid URL";
const USER = "must not contain a user name or password";
const QUERY = "must not contain a query string or fragment";

const refusal =
  (sentence: string) =>
  ({ code, message, details }: SeoError) => {
    assert.deepEqual([code, message, details], ["SEO_CONFIG", sentence, { stage: "config" }]);
    return true;
  };

describe("a base URL", () => {
  const accepted: Record<string, [origin: string, prefix: string]> = {
    "https://seo.example.com": ["https://seo.example.com", ""],
    "HTTPS://SEO.example.com/": ["https://seo.example.com", ""],
    "http://localhost:8787": ["http://localhost:8787", ""],
    "https://example.com:443/tools/seo": ["https://example.com", "/tools/seo"],
    "https://example.com/tools/seo///": ["https://example.com", "/tools/seo"],
    "https://example.com/api/v1": ["https://example.com", ""],
    "https://example.com/tools/api/v1/": ["https://example.com", "/tools"],
    "https://[::1]:8443/x": ["https://[::1]:8443", "/x"],
  };
  for (const [text, [origin, prefix]] of Object.entries(accepted)) {
    it(`may be ${text}`, () => assert.deepEqual(parseBase(text), { origin, prefix }));
  }

  const refused: Record<string, string> = {
    "example.com": SCHEME,
    "localhost:8787": SCHEME,
    "ftp://example.com": SCHEME,
    "https://": INVALID,
    "https://exa mple": INVALID,
    "https://u:secret@example.com": USER,
    "https://secret@example.com": USER,
    "https://:secret@example.com": USER,
    "https://example.com/?key=secret": QUERY,
    "https://example.com/#secret": QUERY,
  };
  for (const [text, why] of Object.entries(refused)) {
    it(`may not be ${text}, and is not quoted`, () => {
      assert.throws(() => parseBase(text), refusal(`The service's base URL ${why}.`));
    });
  }
});

describe("an API key", () => {
  it("loses the blanks that were copied with it", () => assert.equal(parseKey(" \tkey-1\r\n"), "key-1"));
  for (const key of [undefined, "", "  ", "two words", "line\nbreak", "schlüssel", "\u0000", "ke\u2028y"]) {
    it(`may not be ${JSON.stringify(key)}, and is not quoted`, () => {
      const why = key?.trim() ? "must be printable ASCII characters, without spaces or line breaks" : "is missing";
      assert.throws(() => parseKey(key), refusal(`The service's API key ${why}.`));
    });
  }
});

describe("a request", () => {
  for (const [type, row] of Object.entries<Operation>(operations)) {
    const [before = "", after = ""] = row.path.split(/\{\w+\}/);
    const check = createValidator(row.params);

    it(`of ${type} stays under its own path, whatever the input`, () => {
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

    it(`of ${type} has every parameter in its place, and none that is not set`, () => {
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

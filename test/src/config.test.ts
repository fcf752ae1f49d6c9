import assert from "node:assert/strict";
import { parseBase, parseKey, readConfig } from "../../src/config.js";
import type { SeoError } from "../../src/errors.js";
import { parseProxy } from "../../src/http/proxy.js";

const SCHEME = "must begin with http:// or https://";
const PERCENT = "has a user name or password with a percent sign that must be written as %25";
const INVALID = "is not a valid URL";
const USER = "must not contain a user name or password";
const QUERY = "must not contain a query string or fragment";

const refusal =
  (sentence: string, stage = "config") =>
  ({ code, message, details }: SeoError) => {
    assert.deepEqual([code, message, details], ["SEO_CONFIG", sentence, { stage }]);
    return true;
  };

describe("A base URL", () => {
  const accepted: Record<string, [origin: string, prefix: string]> = {
    "https://seo.example.com": ["https://seo.example.com", ""],
    "HTTPS://SEO.example.com/": ["https://seo.example.com", ""],
    "http://localhost:8787": ["http://localhost:8787", ""],
    "https://example.com:443/tools/seo": ["https://example.com", "/tools/seo"],
    "https://example.com/tools/seo///": ["https://example.com", "/tools/seo"],
    "https://example.com/api/v1": ["https://example.com", ""],
    "https://example.com/tools/api/v1/": ["https://example.com", "/tools"],
    "https://example.com//tools//api/v1//": ["https://example.com", "//tools"],
    "https://[::1]:8443/x": ["https://[::1]:8443", "/x"],
  };
  for (const [text, [origin, prefix]] of Object.entries(accepted)) {
    it(`can be ${text}`, () => assert.deepEqual(parseBase(text), { origin, prefix }));
  }

  const refused: Record<string, string> = {
    "example.com": SCHEME,
    "ftp://example.com": SCHEME,
    "x-https://example.com": SCHEME,
    "https://": INVALID,
    "https://exa mple": INVALID,
    "https://secret@example.com": USER,
    "https://:secret@example.com": USER,
    "https://example.com/?key=secret": QUERY,
    "https://example.com/#secret": QUERY,
  };
  for (const [text, why] of Object.entries(refused)) {
    it(`is rejected and not quoted: ${text}`, () => {
      assert.throws(() => parseBase(text), refusal(`The service's base URL ${why}.`));
    });
  }
});

describe("An API key", () => {
  it("loses surrounding white space, which is often copied with it", () =>
    assert.equal(parseKey(" \tkey-1\r\n"), "key-1"));
  for (const key of [undefined, "", "  ", "two words", "line\nbreak", "schlüssel", "\u0000", "ke\u2028y"]) {
    it(`is rejected and not quoted: ${JSON.stringify(key)}`, () => {
      const why = key?.trim()
        ? "must contain only printable ASCII characters, without spaces or line breaks"
        : "is missing";
      assert.throws(() => parseKey(key), refusal(`The service's API key ${why}.`));
    });
  }
});

describe("A proxy URL", () => {
  it("can have a user name and a password, or one of them", () => {
    for (const url of ["http://proxy:3128", "https://proxy", "HTTP://me:secret@proxy:3128", "http://me@proxy"])
      assert.equal(parseProxy(url).href, new URL(url).href);
  });

  const refused: Record<string, string> = {
    "ftp://me:secret@proxy": SCHEME,
    "localhost:3128": SCHEME,
    "http://me:secret@[bad": "is not valid",
    "http://me:100%@proxy": PERCENT,
    "http://100%:secret@proxy": PERCENT,
    "http://me:100%ff@proxy": PERCENT,
  };
  for (const [text, why] of Object.entries(refused))
    it(`is rejected and not quoted: ${text}`, () => {
      assert.throws(() => parseProxy(text), refusal(`The proxy URL ${why}.`, "proxy"));
      assert.throws(() => parseProxy(text, "HTTP_PROXY"), refusal(`The proxy URL in HTTP_PROXY ${why}.`, "proxy"));
    });
});

describe("The options of a client", () => {
  const place = { baseUrl: "https://example.com", apiKey: "key" };

  it("have the defaults of the table if they are blank", () => {
    const { timeout, concurrency, rate, queue, retries } = readConfig({ ...place, rate: "", timeout: " " });
    assert.deepEqual([timeout, concurrency, rate, queue, retries], [undefined, 4, Number.POSITIVE_INFINITY, 10_000, 3]);
  });

  it("can be text or numbers", () => {
    const given = { timeout: 7, concurrency: "2", rate: 60, queue: "0", retries: 0 };
    const { timeout, concurrency, rate, queue, retries } = readConfig({ ...place, ...given });
    assert.deepEqual([timeout, concurrency, rate, queue, retries], [7, 2, 60, 0, 0]);
  });

  for (const tls of ["nope", { ca: 3 }, { cert: "x" }, { key: "y" }] as never[])
    it(`cannot have TLS options that Node.js does not accept: ${JSON.stringify(tls)}`, () => {
      const isRefusal = ({ code, message }: SeoError) =>
        code === "SEO_CONFIG" && /^The TLS configuration is not valid \(ERR_\w+\)\.$/.test(message);
      assert.throws(() => readConfig({ ...place, tls }), isRefusal);
    });

  it("do not compile if one is misspelled", () => {
    // @ts-expect-error: `retires`
    readConfig({ ...place, retires: 3 });
  });
});

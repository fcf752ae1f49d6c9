import assert from "node:assert/strict";
import fc from "fast-check";
import { type Code, codes, fromCause, SeoError } from "../../src/errors.js";

const ORIGIN = "https://seo.example.com";
const NOT_HTTP = "the response is not valid HTTP";
const NOT_DECOMPRESSED = "the response could not be decompressed";
const TLS = "the TLS certificate or protocol was not accepted";
const CONNECT_TIMEOUT = "timed out while connecting";
const LOST = "the connection was lost";

/** The message for a request that failed with `cause`. */
const failed = (cause: string) => `The request to ${ORIGIN} failed: ${cause}.`;

describe("A failed request", () => {
  const rows: [name: string, code: string | undefined, known: Code, cause: string, stage: string][] = [
    ["Error", "ECONNREFUSED", "SEO_NETWORK", "connection refused", "connect"],
    ["ConnectTimeoutError", "UND_ERR_CONNECT_TIMEOUT", "SEO_TIMEOUT", CONNECT_TIMEOUT, "connect"],
    ["Error", "ETIMEDOUT", "SEO_NETWORK", LOST, "connect"],
    ["Error", "UND_ERR_RES_EXCEEDED_MAX_SIZE", "SEO_RESPONSE", "the response is larger than 16 MiB", "answer"],
    ["RangeError", "ERR_BUFFER_TOO_LARGE", "SEO_RESPONSE", "the decompressed response is larger than 16 MiB", "answer"],
    ["Error", "UND_ERR_PRX_CONN", "SEO_NETWORK", "could not connect through the proxy", "proxy"],
    ["Error", "UND_ERR_SOMETHING_NEW", "SEO_NETWORK", LOST, "connect"],
    ["HTTPParserError", "HPE_INVALID_CONSTANT", "SEO_RESPONSE", NOT_HTTP, "answer"],
    ["HTTPParserError", undefined, "SEO_RESPONSE", NOT_HTTP, "answer"],
    ["Error", "Z_DATA_ERROR", "SEO_RESPONSE", NOT_DECOMPRESSED, "answer"],
    ["Error", "ERR__ERROR_FORMAT_PADDING_1", "SEO_RESPONSE", NOT_DECOMPRESSED, "answer"],
    ["Error", "ERR_BROTLI_INVALID_PARAM", "SEO_RESPONSE", NOT_DECOMPRESSED, "answer"],
    ["Error", "CERT_HAS_EXPIRED", "SEO_NETWORK", TLS, "tls"],
    ["Error", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "SEO_NETWORK", TLS, "tls"],
    ["Error", "ERR_SSL_WRONG_VERSION_NUMBER", "SEO_NETWORK", TLS, "tls"],
    ["Error", "EPROTO", "SEO_NETWORK", TLS, "tls"],
    ["Error", "ESOMETHINGNEW", "SEO_NETWORK", LOST, "connect"],
    ["TypeError", undefined, "SEO_NETWORK", LOST, "connect"],
  ];
  for (const [name, code, known, cause, stage] of rows)
    it(`gets its code, stage and message from the cause: ${name} ${code}`, () => {
      const error = fromCause(Object.assign(new Error("secret"), { name, code }), ORIGIN);
      assert.deepEqual([error.code, error.details.stage], [known, stage]);
      const named = code && /^[A-Z_]+$/.test(code) && !/^(UND_|ERR_BUF)/.test(code);
      assert.equal(error.message, failed(named ? `${cause} (${code})` : cause));
    });

  for (const [what, more] of [
    ["one address", { syscall: "connect" }],
    ["several addresses", { errors: [new Error()] }],
  ] as const)
    it(`timed out if the system could not connect in time: ${what}`, () => {
      const { code, message, details } = fromCause(Object.assign(new Error(), { code: "ETIMEDOUT", ...more }), ORIGIN);
      assert.equal(message, failed(`${CONNECT_TIMEOUT} (ETIMEDOUT)`));
      assert.deepEqual([code, details.uncertain, details.transient], ["SEO_TIMEOUT", false, true]);
    });

  it("is uncertain if the request had begun, whatever its code", () => {
    for (const code of ["ENETUNREACH", "ECONNREFUSED", "EPROTO", undefined])
      for (const begun of [true, false])
        assert.equal(fromCause({ code }, ORIGIN, begun).details.uncertain, begun, code);
    assert.equal(fromCause({ code: "UND_ERR_PRX_CONN" }, ORIGIN, true).details.uncertain, false);
  });

  it("does not quote its cause", () => {
    const cause = fc.oneof(
      fc.anything(),
      fc.record({ name: fc.anything(), message: fc.string(), code: fc.oneof(fc.anything(), fc.string()) }),
    );
    const known = new Set(Object.keys(codes));
    const property = fc.property(cause, (thrown) => {
      const { code, message } = fromCause(thrown, ORIGIN);
      assert.ok(known.has(code) && !/[\n<>]|undefined/.test(message), message);
    });
    fc.assert(property);
    for (const code of ["key-of-tests", "SECRET_".repeat(9), "A secret KEY", ["KEY"]])
      assert.doesNotMatch(fromCause({ code }, ORIGIN).message, /key-of-tests|SECRET|KEY/);
    assert.equal(fromCause({}, ORIGIN).message, failed(LOST));
  });

  it("keeps a cause that is already an SeoError", () => {
    const cause = new SeoError("SEO_TIMEOUT", "Late.");
    assert.equal(fromCause(cause, ORIGIN), cause);
  });
});

describe("An SeoError", () => {
  it("is one line: control characters and bidirectional overrides become spaces", () => {
    assert.equal(new SeoError("SEO_INPUT", "a\r\nb\x1b[2Kc\u2028d\u202ee\u2067f").message, "a b [2Kc d e f");
  });

  it("is shown as its message, and keeps its details when more are added", () => {
    const error = new SeoError("SEO_REJECTED", "No.", { statusCode: 422, body: "b" }).with({ attempts: 2 });
    assert.equal(String(error), "No.");
    assert.deepEqual(error.details, { statusCode: 422, body: "b", attempts: 2 });
    const { code, message, statusCode, attempts, uncertain } = error.toJSON();
    assert.deepEqual([code, message, statusCode, attempts, uncertain], ["SEO_REJECTED", "No.", 422, 2, false]);
    assert.equal(new SeoError("SEO_INPUT", "No.").toJSON().attempts, 0);
  });

  it("has the properties of msg.seo.error, and shows none of them in Node-RED's copy of the error", () => {
    const facts = { statusCode: 429, fields: { url: ["No."] }, retryAfter: 7, attempts: 3, uncertain: true };
    const error = new SeoError("SEO_RATE_LIMITED", "No.", { ...facts, candidates: [], body: null });
    const { code, message, ...rest } = error.toJSON();
    assert.deepEqual(rest, { ...facts, candidates: [], body: null });
    for (const [name, value] of Object.entries(rest)) assert.deepEqual(error[name as keyof typeof rest], value, name);
    assert.deepEqual(Object.keys(error).sort(), ["code", "details", "name"]);
  });
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { type Code, codes, fromCause, SeoError } from "../../src/errors.js";

const ORIGIN = "https://seo.example.com";

describe("A fault", () => {
  const rows: [name: string, code: string | undefined, known: Code, sentence: RegExp, stage: string][] = [
    ["Error", "ECONNREFUSED", "SEO_NETWORK", /nothing listens there/, "connect"],
    ["ConnectTimeoutError", "UND_ERR_CONNECT_TIMEOUT", "SEO_TIMEOUT", /did not accept a connection in time/, "connect"],
    ["HTTPParserError", "HPE_INVALID_CONSTANT", "SEO_RESPONSE", /does not speak HTTP/, "answer"],
    ["HTTPParserError", undefined, "SEO_RESPONSE", /does not speak HTTP/, "answer"],
    ["Error", "Z_DATA_ERROR", "SEO_RESPONSE", /cannot be decoded/, "answer"],
    ["Error", "ERR__ERROR_FORMAT_PADDING_1", "SEO_RESPONSE", /cannot be decoded/, "answer"],
    ["Error", "ERR_BROTLI_INVALID_PARAM", "SEO_RESPONSE", /cannot be decoded/, "answer"],
    ["Error", "CERT_HAS_EXPIRED", "SEO_NETWORK", /TLS certificate or protocol/, "tls"],
    ["Error", "DEPTH_ZERO_SELF_SIGNED_CERT", "SEO_NETWORK", /TLS certificate or protocol/, "tls"],
    ["Error", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "SEO_NETWORK", /TLS certificate or protocol/, "tls"],
    ["Error", "ERR_SSL_WRONG_VERSION_NUMBER", "SEO_NETWORK", /TLS certificate or protocol/, "tls"],
    ["Error", "ERR_TLS_CERT_ALTNAME_INVALID", "SEO_NETWORK", /TLS certificate or protocol/, "tls"],
    ["Error", "EPROTO", "SEO_NETWORK", /TLS certificate or protocol/, "tls"],
    ["Error", "ESOMETHINGNEW", "SEO_NETWORK", /the connection broke/, "connect"],
    ["TypeError", undefined, "SEO_NETWORK", /the connection broke/, "connect"],
  ];
  for (const [name, code, known, sentence, stage] of rows)
    it(`is told by what it is: ${name} ${code}`, () => {
      const error = fromCause(Object.assign(new Error("secret"), { name, code }), ORIGIN);
      assert.deepEqual([error.code, error.details.stage], [known, stage]);
      assert.match(error.message, sentence);
      assert.ok(error.message.startsWith(`The service at ${ORIGIN} could not be asked: `), error.message);
      const named = code && /^[A-Z_]+$/.test(code);
      assert.ok(error.message.endsWith(named ? ` (${code}).` : "."), error.message);
    });

  it("is never quoted, whatever it is", () => {
    const cause = fc.oneof(
      fc.anything(),
      fc.record({ name: fc.anything(), message: fc.string(), code: fc.oneof(fc.anything(), fc.string()) }),
    );
    const known = new Set(Object.keys(codes));
    fc.assert(
      fc.property(cause, (thrown) => {
        const { code, message } = fromCause(thrown, ORIGIN);
        assert.ok(known.has(code) && !/[\n<>]|undefined/.test(message), message);
      }),
    );
    assert.doesNotMatch(fromCause({ code: "key-of-tests" }, ORIGIN).message, /key-of-tests/);
    assert.doesNotMatch(fromCause({ code: "SECRET_".repeat(9) }, ORIGIN).message, /SECRET/);
    assert.doesNotMatch(fromCause({ code: "A secret KEY" }, ORIGIN).message, /KEY/);
    assert.doesNotMatch(fromCause({ code: ["KEY"] }, ORIGIN).message, /KEY/);
    assert.equal(fromCause({}, ORIGIN).message, `The service at ${ORIGIN} could not be asked: the connection broke.`);
  });

  it("that is told already stays as it is", () => {
    const told = new SeoError("SEO_TIMEOUT", "Late.");
    assert.equal(fromCause(told, ORIGIN), told);
  });
});

describe("An error", () => {
  it("is shown by its sentence, and adds what is known without forgetting", () => {
    const error = new SeoError("SEO_REJECTED", "No.", { statusCode: 422, body: "b" }).with({ attempts: 2 });
    assert.equal(String(error), "No.");
    assert.deepEqual(error.details, { statusCode: 422, body: "b", attempts: 2 });
    const { code, message, statusCode, attempts, uncertain } = error.toJSON();
    assert.deepEqual([code, message, statusCode, attempts, uncertain], ["SEO_REJECTED", "No.", 422, 2, false]);
    assert.equal(new SeoError("SEO_INPUT", "No.").toJSON().attempts, 0);
  });
});

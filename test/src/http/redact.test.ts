import assert from "node:assert/strict";
import fc from "fast-check";
import { SeoError } from "../../../src/errors.js";
import { forFlows, redact } from "../../../src/http/redact.js";

const KEY = "key/of (tests)";

describe("A secret", () => {
  it("is redacted in all texts and property names, also URL-encoded", () => {
    const secret = fc.string({ minLength: 6, maxLength: 30 }).filter((text) => !"***".includes(text.trim()));
    const any = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(secret, any, any, (hidden, one, two) => {
        const said = { [hidden]: [one, { [`${encodeURIComponent(hidden)}!`]: `a ${hidden}b` }], two };
        const texts = (value: unknown): string[] =>
          typeof value === "string"
            ? [value]
            : typeof value === "object" && value !== null
              ? Object.entries(value).flatMap(([name, inner]) => [name, ...texts(inner)])
              : [];
        for (const text of texts(redact(said, [hidden]))) assert.ok(!text.includes(hidden), text);
      }),
    );
  });

  it("is replaced with three asterisks, and everything else is kept", () => {
    const said = { a: `x ${KEY} y`, b: [1, null, true, encodeURIComponent(KEY)], [KEY]: { c: KEY + KEY } };
    assert.deepEqual(redact(said, ["", KEY]), { a: "x *** y", b: [1, null, true, "***"], "***": { c: "******" } });
    for (const whole of [said, "text", 7, null, undefined]) assert.equal(redact(whole, [""]), whole);
    assert.equal(redact(7, [KEY]), 7);
    assert.equal(redact(null, [KEY]), null);
  });

  it("is redacted in form-encoded text and in JSON, with and without escaped slashes", () => {
    const secret = 'my "secret" wo/rd!';
    const page = { form: new URLSearchParams({ password: secret }).toString(), json: JSON.stringify({ secret }) };
    const php = JSON.stringify({ secret }).replaceAll("/", "\\/");
    assert.deepEqual(redact({ ...page, php }, [secret]), {
      form: "password=***",
      json: '{"secret":"***"}',
      php: '{"secret":"***"}',
    });
  });

  it("of less than six characters is redacted only as a separate word", () => {
    const said = "pass, passed 1pass passé (pass) pass";
    assert.equal(redact(said, ["pass"]), "***, passed 1pass passé (***) ***");
    assert.equal(redact("secreted", ["secret"]), "***ed");
  });

  it("is redacted in the message, fields and body of an error", () => {
    const details = { statusCode: 422, fields: { [KEY]: [KEY] }, body: KEY, retryAfter: 300 };
    const { code, message, details: left } = forFlows(new SeoError("SEO_REJECTED", `No ${KEY}.`, details), [KEY]);
    assert.deepEqual([code, message], ["SEO_REJECTED", "No ***."]);
    assert.deepEqual(left, { statusCode: 422, fields: { "***": ["***"] }, body: "***", retryAfter: 300 });
  });

  it("is redacted before a text is cut to 1,000 characters", () => {
    const long = "x".repeat(990) + KEY.repeat(2);
    const { message, details } = forFlows(new SeoError("SEO_SERVER", long, { body: long }), [KEY]);
    const left = `${"x".repeat(990)}******`;
    assert.deepEqual([message, details.body], [left, left]);
    const cut = forFlows(new SeoError("SEO_SERVER", "y".repeat(1001), { body: "y".repeat(1001) }), []);
    assert.deepEqual([cut.message.length, String(cut.details.body).length], [1000, 1000]);
  });
});

describe("A wait of more than five minutes", () => {
  it("is explained in the error message", () => {
    const { message } = forFlows(new SeoError("SEO_RATE_LIMITED", "No.", { retryAfter: 301 }), []);
    assert.equal(message, "No. It asked to wait 301 s, more than the limit of 300 s.");
    assert.equal(forFlows(new SeoError("SEO_RATE_LIMITED", "No."), []).message, "No.");
  });
});

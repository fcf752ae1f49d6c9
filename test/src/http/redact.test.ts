import assert from "node:assert/strict";
import fc from "fast-check";
import { createRedactor } from "../../../src/http/redact.js";

const KEY = "key/of (tests)";

const redact = <T>(value: T, secrets: string[]): T => createRedactor(secrets)(value);

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
});

describe("An encoded secret", () => {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#039;" };
  const html = (text: string) => text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
  const unit = (code: number) => code.toString(16).padStart(4, "0");
  const php = (text: string) => JSON.stringify(text).slice(1, -1).replaceAll("/", "\\/");
  const coded = (text: string, matches: RegExp, how: (character: string) => string) => text.replace(matches, how);
  const odd = /[^A-Za-z0-9]/gu;
  const forms: Record<string, (text: string) => string> = {
    "as it is": (text) => text,
    "htmlspecialchars()": html,
    "htmlspecialchars() with &apos;": (text) => html(text).replaceAll("&#039;", "&apos;"),
    "htmlspecialchars() twice": (text) => html(html(text)),
    "decimal HTML entities": (text) => coded(text, odd, (one) => `&#${one.codePointAt(0)};`),
    "hexadecimal HTML entities": (text) => coded(text, odd, (one) => `&#x${one.codePointAt(0)?.toString(16)};`),
    "upper-case hexadecimal HTML entities": (text) =>
      coded(text, odd, (one) => `&#X00${one.codePointAt(0)?.toString(16).toUpperCase()};`),
    JSON: (text) => JSON.stringify(text).slice(1, -1),
    "JSON twice": (text) => JSON.stringify(JSON.stringify(text)).slice(3, -3),
    "JSON of PHP": php,
    "JSON of PHP, escaped to ASCII": (text) =>
      coded(php(text), /[^\x20-\x7e]/g, (one) => `\\u${unit(one.charCodeAt(0))}`),
    "JSON of PHP, with every option": (text) =>
      php(text)
        .replace(/\\(.)/g, (all, one) => (one === '"' ? "\\u0022" : all))
        .replace(/[^\x20-\x7e]|[<>&']/g, (one) => `\\u${unit(one.charCodeAt(0)).toUpperCase()}`),
    "a URL": encodeURIComponent,
    "a URL in lower case": (text) => encodeURIComponent(text).replace(/%../g, (one) => one.toLowerCase()),
    "a URL, twice": (text) => encodeURIComponent(encodeURIComponent(text)),
    "rawurlencode()": (text) =>
      coded(encodeURIComponent(text), /[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`),
    "a form": (text) => new URLSearchParams([["", text]]).toString().slice(1),
    "a form, in lower case": (text) =>
      new URLSearchParams([["", text]])
        .toString()
        .slice(1)
        .replace(/%../g, (one) => one.toLowerCase()),
    "a form in a URL": (text) => encodeURIComponent(new URLSearchParams([["", text]]).toString().slice(1)),
    "a URL in HTML": (text) => html(encodeURIComponent(text)),
    "HTML in JSON": (text) => php(html(text)),
  };
  const characters = fc.constantFrom(..."abcXYZ019 &<>\"'/\\%+-_.~!*()=;:#äßé€😀");
  const secrets = fc.string({ unit: characters, minLength: 6, maxLength: 20 });

  for (const [name, form] of Object.entries(forms))
    it(`is found: ${name}`, () => {
      fc.assert(
        fc.property(secrets, (secret) => {
          const text = form(secret);
          assert.equal(redact(`<p>${text}</p>`, [secret]), "<p>***</p>", text);
        }),
        { numRuns: 20, examples: [["it's <\"ä/\\&>"], ["\\\\\\\\\\\\"], ["%25%25%25"], ["&amp;&amp;"]] },
      );
    });

  it("is found if it is short and follows an escaped quotation mark", () => {
    for (const text of ["\\u0022pass\\u0022", "%22pass%22", "&quot;pass&quot;", '\\"pass\\"'])
      assert.equal(redact(text, ["pass"]), text.replace("pass", "***"));
  });

  const distinct = String.fromCodePoint(...Array.from({ length: 8192 }, (_, i) => 0x4e00 + i));
  for (const unit of ["é", "!", "a&", "<\"'", "😀", distinct])
    it(`is found quickly if it has 8,192 characters: ${unit.slice(0, 3)}`, () => {
      const secret = unit.repeat(8192 / unit.length);
      for (const [name, form] of Object.entries(forms)) {
        const text = form(secret);
        const began = performance.now();
        const left = redact(text, [secret]).replaceAll("***", "");
        assert.ok(performance.now() - began < 5000, `${name}: ${performance.now() - began} ms`);
        // It is redacted in parts, and one that repeats itself has no certain beginning.
        assert.ok(left.length < (unit === distinct ? 1 : text.length / 20), `${name}: ${left}`);
      }
    });

  it("is found as it was sent if it is not well-formed", () => {
    assert.equal(redact("a pass\ufffdword", ["pass\ud800word"]), "a ***");
  });

  it("is not slow to find in a text built to make the search slow", () => {
    for (const [secret, text] of [
      ['\\\\\\\\\\\\"', "\\".repeat(1 << 16)],
      ["&&&&&&&&", "&amp;".repeat(1 << 14)],
      ["%%%%%%%%%", "%25".repeat(1 << 14)],
      ["////////x", "\\/".repeat(1 << 15)],
    ] as const) {
      const began = performance.now();
      redact(text, [secret]);
      assert.ok(performance.now() - began < 1000, `${secret}: ${performance.now() - began} ms`);
    }
  });
});

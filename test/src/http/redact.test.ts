import assert from "node:assert/strict";
import fc from "fast-check";
import { createRedactor } from "../../../src/http/redact.js";

const KEY = "key/of (tests)";

const redact = <T>(value: T, secrets: string[]): T => createRedactor(secrets)(value);

describe("A secret", () => {
  it("is redacted in all texts and property names, also URL-encoded", () => {
    const secret = fc.string({ minLength: 6, maxLength: 30 }).filter((text) => !"***".includes(text.trim()));
    const any = fc.jsonValue({ maxDepth: 3 });
    const property = fc.property(secret, any, any, (hidden, one, two) => {
      const said = { [hidden]: [one, { [`${encodeURIComponent(hidden)}!`]: `a ${hidden}b` }], two };
      const texts = (value: unknown): string[] =>
        typeof value === "string"
          ? [value]
          : typeof value === "object" && value !== null
            ? Object.entries(value).flatMap(([name, inner]) => [name, ...texts(inner)])
            : [];
      for (const text of texts(redact(said, [hidden]))) assert.ok(!text.includes(hidden), text);
    });
    fc.assert(property);
  });

  it("is replaced with three asterisks, and everything else is kept", () => {
    const said = { a: `x ${KEY} y`, b: [1, null, true, encodeURIComponent(KEY)], [KEY]: { c: KEY + KEY } };
    assert.deepEqual(redact(said, ["", KEY]), { a: "x *** y", b: [1, null, true, "***"], "***": { c: "******" } });
    for (const whole of [said, "text", 7, null, undefined]) assert.equal(redact(whole, [""]), whole);
    assert.equal(redact(7, [KEY]), 7);
    assert.equal(redact(null, [KEY]), null);
  });

  it("is redacted as a number, too", () => {
    assert.deepEqual(redact({ a: [73519842, 735198421, 1] }, ["73519842", "1"]), { a: ["***", 735198421, 1] });
  });

  it("is kept as the name of a property that the client reads", () => {
    for (const name of ["data", "message", "errors", "error", "status", "url", "privacy", "password", "id", "project"])
      assert.deepEqual(redact({ [name]: { [name]: name, other: 1 } }, [name]), { [name]: { [name]: "***", other: 1 } });
  });

  it("of less than six characters is redacted only as a separate word", () => {
    const said = "pass, passed 1pass passé (pass) pass";
    assert.equal(redact(said, ["pass"]), "***, passed 1pass passé (***) ***");
    assert.equal(redact("secreted", ["secret"]), "***ed");
  });
});

describe("An encoded secret", () => {
  const every = (matches: RegExp, write: (found: string) => string) => (text: string) => text.replace(matches, write);
  const code = (character: string) => character.codePointAt(0) ?? 0;
  const units = every(/[^ -~]/g, (unit) => `\\u${code(unit).toString(16).padStart(4, "0")}`);
  const json = (text: string) => JSON.stringify(text).slice(1, -1);
  const php = (text: string) => json(text).replaceAll("/", "\\/");
  const basic: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#039;" };
  const named: Record<string, string> = { ...basic, é: "&eacute;", ö: "&ouml;", "€": "&euro;", "≂̸": "&NotEqualTilde;" };
  const form = (text: string) => new URLSearchParams([["", text]]).toString().slice(1);
  const percent = every(/%../g, (byte) => byte.toLowerCase());
  /** As languages and frameworks encode text, written independently of how it is read. */
  const encodings: Record<string, (text: string) => string> = {
    "as it is": (text) => text,
    JSON: json,
    "json_encode()": (text) => units(php(text)),
    "json_encode() with JSON_UNESCAPED_UNICODE": php,
    "json_encode() with JSON_HEX_TAG, JSON_HEX_AMP, JSON_HEX_APOS and JSON_HEX_QUOT": (text) =>
      units(php(text).replaceAll('\\"', "\u0000"))
        .replaceAll("\\u0000", "\\u0022")
        .replace(/[<>&']/g, (one) => `\\u00${code(one).toString(16).toUpperCase()}`),
    "htmlspecialchars()": every(/[&<>"']/g, (one) => basic[one] ?? one),
    "htmlspecialchars() with &apos;": every(/[&<>"']/g, (one) => (one === "'" ? "&apos;" : (basic[one] ?? one))),
    "htmlentities()": every(/≂̸|./gsu, (one) => named[one] ?? one),
    "decimal HTML entities": every(/[^a-z\d]/giu, (one) => `&#${code(one)};`),
    "decimal HTML entities without semicolons": every(/&(?=#)|[^\w](?=[\s_"'<>()*])/gu, (one) => `&#${code(one)}`),
    "hexadecimal HTML entities": every(/[^a-z\d]/giu, (one) => `&#X00${code(one).toString(16).toUpperCase()};`),
    "encodeURIComponent()": encodeURIComponent,
    "rawurlencode()": every(/[^\w.~-]+/gu, (some) => `%${Buffer.from(some).toString("hex").match(/../g)?.join("%")}`),
    "urlencode()": form,
    "urlencode() in lower case": (text) => percent(form(text)),
    NFC: (text) => text.normalize("NFC"),
    NFD: (text) => text.normalize("NFD"),
  };
  const names = Object.keys(encodings);
  const encodedBy = (chosen: string[]) => (text: string) =>
    chosen.reduce((encoded, name) => encodings[name]?.(encoded) ?? "", text);

  const fragments = [..."abcXYZ0149 &<>\"'/\\%+-_.~!*()=;:#", ..."äßé€😀Å가", "e\u0301", "ế", "q\u0323\u0307", "≂̸"];
  const escapes = ["%41", "%C3%A9", "%25", "&amp;", "&lt", "\\u0041", "\\n", "\\\\"];
  const whole = fc.string({ unit: "grapheme", maxLength: 4 });
  const secrets = fc
    .array(fc.oneof(fc.constantFrom(...fragments), fc.constantFrom(...escapes), whole), { minLength: 6, maxLength: 12 })
    .map((parts) => parts.join("").replace(/[[\]\p{Cc}\u{2f800}-\u{2fa1f}]/gu, ""))
    // A backslash at the end cannot be told from one that belongs to the character behind it.
    .filter(
      (secret) => secret.length >= 6 && /[^\s+\\]/.test(secret) && !/(\\|%5C|&#92;|&bsol;|\\u005c)$/i.test(secret),
    );

  it("is redacted with its text in whatever combination of up to three encodings", () => {
    fc.assert(
      fc.property(secrets, fc.array(fc.constantFrom(...names), { maxLength: 3 }), (secret, chosen) => {
        const encode = encodedBy(chosen);
        const text = encode(`["é _${secret}_"]`);
        assert.equal(redact(text, [secret]), text.includes(secret) ? text.replaceAll(secret, "***") : "***", text);
        const other = encode(`["é _${[...secret].slice(1).join("")}_"]`);
        assert.equal(redact(other, [`\u{1f511}${secret}`]), other);
      }),
      // NFC turns the Kelvin sign into the letter K.
      { numRuns: 1000, examples: [[], ["NFC"]].map((chosen): [string, string[]] => ["%41aa\u212a%41", chosen]) },
    );
  });

  it("is redacted in each encoding in which services return input", () => {
    const secret = 'é "a\\b/&c" €';
    const inner = JSON.stringify({ password: secret });
    for (const text of [
      "&eacute; &quot;a\\b/&amp;c&quot; &euro;",
      `<p>${JSON.stringify(inner).replaceAll('"', "&quot;")}</p>`,
      secret.normalize("NFD"),
      form(form(form(form(secret)))),
    ])
      assert.equal(redact(text, [secret]), "***");
  });

  it("is found as it was sent if it is not well-formed", () => {
    assert.equal(redact("a pass\ufffdword", ["pass\ud800word"]), "a ***");
  });

  it("is found if it is short and follows an escape", () => {
    for (const text of ["\\u0022pass\\u0022", "%22pass%22", "&quot;pass&quot;", '\\"pass\\"', "a\\npass", "a%20pass"])
      assert.ok(["***", text.replace("pass", "***")].includes(redact(text, ["pass"])), text);
  });

  it("is found if it looks like an escape together with the character before it", () => {
    for (const [secret, text] of [
      ["41abcdef", "%41abcdef"],
      ["notasecret", "a&notasecret"],
      ["new-secret", "DOMAIN\\new-secret"],
    ] as const)
      assert.equal(redact(text, [secret]), text.replace(secret, "***"));
  });

  it("is not found in a text that has its letters without its backslash", () => {
    for (const text of ["The password is missing.", "the&nbsp;password"])
      assert.equal(redact(text, ["pass\\word"]), text);
  });

  it("is redacted if it has 10,000 characters", () => {
    const secret = Array.from({ length: 5000 }, (_, i) => `é${i % 10}`).join("");
    for (const encode of Object.values(encodings)) {
      assert.doesNotMatch(redact(encode(`_${secret}_`), [secret]), /\d/);
    }
  });

  it("is found in a hostile text in less than a second of processor time", () => {
    const secret = "s3cret%&\\key";
    const length = 1 << 16;
    const units = ["&amp;", "amp;", "&", "&a", "%25", "25", "%C0%80", "\\", '\\"', "\\u005c", "+", "#37;26", "가"];
    const inTime = (text: string, sought = secret) => {
      const began = process.cpuUsage();
      const redacted = redact(text, [sought]);
      const { user, system } = process.cpuUsage(began);
      assert.ok(user + system < 1_000_000, `${text.slice(0, 20)}: ${user + system} µs`);
      return redacted;
    };
    for (const unit of units)
      for (const first of ["&", "%"]) {
        const hostile = first + unit.repeat(length / unit.length);
        assert.match(inTime(`${hostile.slice(0, length - 60)} ${form(secret)}`), /\*{3}$/);
        inTime(hostile.repeat(4));
      }
    const long = "a".repeat(length - 1);
    for (const sought of [`${"a".repeat(8191)}b`, `b${"a".repeat(8191)}`, "\\a".repeat(25), "aaaa"])
      inTime(`%${long}`, sought);
  });

  it("is redacted with its text if a value has more text than is read, which otherwise stays", () => {
    const long = "&amp;".repeat(1 << 16);
    const redacted = redact([long, `${long} KEY-secret`, "a KEY-secret", "a & b"], ["key-secret"]);
    assert.deepEqual(redacted, [long, "***", "***", "a & b"]);
  });
});

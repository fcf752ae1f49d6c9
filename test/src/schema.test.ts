import assert from "node:assert/strict";
import fc from "fast-check";
import { SeoError } from "../../src/errors.js";
import { kindOf } from "../../src/kinds.js";
import { changes, type Field, operations, rowOf, service } from "../../src/operations.js";
import { createValidator, readSettings } from "../../src/schema.js";
import { mustBe, required, wholeNumber } from "../support/sentences.js";

const FROM = "msg.payload.x";
const params = [
  ...new Map(
    Object.values(operations).flatMap(({ params }) =>
      Object.entries(params).map(([name, one]) => [`${name} (${one.kind})`, { name, one }]),
    ),
  ).values(),
];

/** Values that only JavaScript has, too. */
const strange = { withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSparseArray: true };

const check = (name: string, field: Field, value: unknown) =>
  createValidator({ [name]: field })({ [name]: value }, () => FROM)[name];

/** The error message for a rejected value. It names the parameter and the source. */
function refusal(name: string, field: Field, value: unknown): string {
  try {
    const sent = check(name, field, value);
    throw new Error(`${name} accepted ${JSON.stringify(value)} and would send ${JSON.stringify(sent)}.`);
  } catch (error) {
    assert.ok(error instanceof SeoError, String(error));
    assert.equal(error.code, "SEO_INPUT");
    assert.ok(error.message.startsWith(`${name} `), error.message);
    assert.ok(error.message.includes(FROM), error.message);
    return error.message;
  }
}

const circular: Record<string, unknown> = {};
circular.self = circular;
const never: Record<string, unknown> = {
  "an object": {},
  "an array": ["x"],
  "a circular object": circular,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "text of 100,000 characters": "x".repeat(100_000),
  "a control character": "a\u0007b",
  "a line break": "a\nb",
  "a lone surrogate": "a\ud800b",
  "an object with __proto__": JSON.parse('{"__proto__":{"x":1}}'),
  "a symbol": Symbol("x"),
  "a function": () => "x",
  "a bigint": 1n,
};

describe("Parameter validation", () => {
  for (const { name, one } of params) {
    for (const [what, value] of Object.entries(never)) {
      it(`rejects ${what} as ${name}`, () => {
        const sentence = refusal(name, one, value);
        assert.match(sentence, / must be .+; /);
        for (const allowed of Object.keys(one.values ?? {})) assert.ok(sentence.includes(allowed), sentence);
        assert.ok(sentence.length < 400);
      });
    }

    it(`accepts, skips or rejects any value of ${name}, and fails in no other way`, () => {
      const any = fc.oneof(fc.constantFrom(...Object.getOwnPropertyNames(Object.prototype)), fc.anything(strange));
      const property = fc.property(any, (value) => {
        try {
          const sent = check(name, one, value);
          assert.ok(sent === undefined || (typeof sent === "string" && /^[^\p{Cc}\p{Cs}]+$/u.test(sent)));
          if (one.values && sent !== undefined) assert.ok(Object.hasOwn(one.values, sent));
        } catch (error) {
          assert.ok(error instanceof SeoError, String(error));
        }
      });
      fc.assert(property);
    });

    if (kindOf(one.kind).types.some((type) => type === "number"))
      it(`rejects a number as ${name} that JavaScript may have rounded`, () => {
        for (const big of [Number.MAX_SAFE_INTEGER + 1, -(2 ** 60), 1e21])
          assert.match(refusal(name, one, big), / must be text: JavaScript rounds a number of this size; .* is .+\.$/);
      });

    it(`${one.required ? "rejects" : "skips"} a blank ${name}`, () => {
      for (const blank of [undefined, null, "", ...(one.kind === "secret" ? [true, false] : ["  "])]) {
        if (one.required) assert.equal(refusal(name, one, blank), required(name, FROM));
        else assert.equal(check(name, one, blank), undefined);
      }
    });
  }
});

describe("A parameter value", () => {
  const accepted: [type: string, param: string, value: unknown, sent: string][] = [
    ["seo-report-store", "privacy", 2, "2"],
    ["seo-report-store", "privacy", 0, "0"],
    ["seo-report-store", "password", " kept as it is ", " kept as it is "],
    ["seo-report-store", "url", " https://example.com \n", "https://example.com"],
    ["seo-report-update", "update", "FALSE", "0"],
    ["seo-report-list", "per_page", 25, "25"],
    ["seo-report-list", "search", 404, "404"],
    ["seo-report-show", "reportId", 7, "7"],
    ["seo-project-delete", "project", "a b%c", "a b%c"],
  ];
  for (const [type, param, value, sent] of accepted) {
    it(`is sent as ${JSON.stringify(sent)}: ${param} ${JSON.stringify(value)} of ${type}`, () => {
      assert.equal(check(param, rowOf(type).params[param] as Field, value), sent);
    });
  }

  for (const value of ["..", ".", "a/b", "a\\b", " / "]) {
    it(`is rejected in a path: ${JSON.stringify(value)}`, () =>
      void refusal("reportId", operations["seo-report-show"]?.params.reportId as Field, value));
  }
});

describe("Settings", () => {
  const defaults = (fields: Record<string, Field>) =>
    Object.fromEntries(Object.entries(fields).flatMap(([key, { default: preset }]) => (preset ? [[key, preset]] : [])));
  const base = { baseUrl: "https://a.example" };

  it("have the defaults of the table if they are missing or blank", () => {
    const blank = Object.fromEntries(Object.keys(service).map((name) => [name, ""]));
    for (const config of [base, { ...blank, ...base }])
      assert.deepEqual(readSettings(service, config), { ...defaults(service), ...base });
    for (const row of [...Object.values(operations), changes])
      assert.deepEqual(readSettings(row.options, {}), defaults(row.options));
  });

  for (const [name, values] of Object.entries({
    concurrency: [0, -1, "many", "1.5", Number.NaN],
    rate: [0.5, 0, "fast"],
    queue: [-1, "long"],
    retries: ["x", -1, 1.5],
    timeout: [0, -3, "soon"],
    limit: [-1, 1.5, "all", {}],
    threshold: [-1, "much"],
  })) {
    for (const value of values as unknown[]) {
      it(`reject ${name} ${JSON.stringify(value)} and name the allowed range`, () => {
        const fields: Record<string, Field> =
          [service, ...Object.values(operations).map(({ options }) => options), changes.options].find(
            (all) => name in all,
          ) ?? {};
        const rule = `${name} must be ${wholeNumber(fields[name]?.min)}; `;
        const isNamed = ({ message }: SeoError) => message.startsWith(rule);
        assert.throws(() => readSettings(fields, { ...base, [name]: value }, "SEO_CONFIG"), isNamed);
      });
    }
  }
});

describe("A validation error", () => {
  const values = { 0: "Public", 1: "Private", good: "Good" };
  const field = (kind: Field["kind"]): Field => ({ kind, label: "x", help: "x", values });
  const long = "y".repeat(61);
  const oneOf = "one of 0 (Public), 1 (Private), good";
  for (const [kind, value, allowed, actual] of [
    ["choice", "none", oneOf, '"none"'],
    ["choice", ["good"], oneOf, "an array (in Node-RED, put a Split node in front)"],
    ["choice", {}, oneOf, "of type object"],
    ["choice", () => {}, oneOf, "of type function"],
    ["choice", long.slice(1), oneOf, `"${long.slice(1)}"`],
    ["choice", long, oneOf, `"${long.slice(0, 60)}…"`],
    ["flag", "maybe", "0 (no) or 1 (yes)", '"maybe"'],
    ["count", "-1", wholeNumber(), '"-1"'],
    ["secret", { a: "s3cret" }, "text", "of type object"],
    ["secret", "s3cret\n", "text without control characters", "of type string"],
    ["text", "a\tb", "text or a number without control characters", '"a\\tb"'],
    // The time of an Inject node.
    ["url", 1795318145000, "text such as https://example.com/pricing", "1795318145000"],
    ["url", true, "text such as https://example.com/pricing", "true"],
    ["url", "x".repeat(8193), "text of at most 8192 characters", `"${"x".repeat(60)}…"`],
    ["segment", [1], "text or a number", "an array (in Node-RED, put a Split node in front)"],
    ["segment", "a/b", 'text or a number without slashes, and not "." or ".."', '"a/b"'],
  ] as const)
    it(`names the allowed values, the source and the actual value: ${kind} ${typeof value} ${JSON.stringify(String(value).slice(0, 8))}`, () => {
      assert.throws(() => createValidator({ x: field(kind) })({ x: value }, () => FROM), {
        message: mustBe("x", allowed, FROM, actual),
      });
    });

  it("does not occur for any spelling of yes and no", () => {
    const check = createValidator({ x: { ...field("flag"), values: { 0: "No", 1: "Yes" } } });
    const said = (value: unknown) => check({ x: value }).x;
    for (const value of [true, 1, "1", "yes", "Yes", "TRUE"]) assert.equal(said(value), "1");
    for (const value of [false, 0, "0", "no", "NO", "false"]) assert.equal(said(value), "0");
  });
});

describe("A parameter that depends on another", () => {
  const validate = createValidator(operations["seo-report-store"].params);
  const base = { url: "https://example.com" };

  it("is accepted if the other has the value that it needs", () => {
    const sent = validate({ ...base, privacy: "password", password: "s" });
    assert.deepEqual(sent, { ...base, privacy: "2", password: "s" });
  });

  it("is not mentioned if one of the two is invalid", () => {
    const lacksIt = ({ message }: SeoError) => !message.includes("if password is set");
    for (const invalid of [
      { privacy: "open", password: "s" },
      { privacy: 0, password: {} },
    ])
      assert.throws(() => validate({ ...base, ...invalid }), lacksIt);
  });
});

describe("The names in the table", () => {
  it("are checked by the compiler", () => {
    // @ts-expect-error: no such row
    assert.equal(operations["seo-report-lst"], undefined);
    // @ts-expect-error: no such parameter
    assert.equal(operations["seo-report-store"].params.passwrd, undefined);
  });

  it("do not include the names that every object inherits", () => {
    for (const type of ["constructor", "__proto__", "toString", ""])
      assert.throws(() => rowOf(type), { code: "SEO_INPUT", message: `Unknown operation: ${type}.` });
  });
});

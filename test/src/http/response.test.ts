import assert from "node:assert/strict";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { type Code, SeoError } from "../../../src/errors.js";
import { decode, readAnswer } from "../../../src/http/response.js";
import { type Operation, operations } from "../../../src/operations.js";
import { returned } from "../sentences.js";

const show = operations["seo-report-show"] as Operation;
const remove = operations["seo-report-delete"] as Operation;
const NOT_FROM_API = "the response is not JSON, so it did not come from the API.";
const TOO_DEEP = "nested too deeply";
const HTML = "<!doctype html><title>Log in</title>";

/** The message for a successful status whose body cannot be used. */
const unreadable = (why: string) => `The service returned 200, but the response is ${why}.`;

/** The error that a response causes. */
function failure(status: number, body: unknown, headers: Record<string, string> = {}, row = show): SeoError {
  try {
    readAnswer(row, status, headers, typeof body === "string" ? body : JSON.stringify(body));
  } catch (error) {
    return error as SeoError;
  }
  return assert.fail("The response caused no error.");
}

describe("The service's error message", () => {
  const nothing = "no error message.";
  const rows: [name: string, body: unknown, said: string, fields?: Record<string, string[]>][] = [
    ["is read from message", { message: "No.", status: 422 }, "No."],
    [
      "is read from message by field",
      { message: { url: ["Bad.", "Worse."], x: "One." } },
      "Bad. Worse. One.",
      { url: ["Bad.", "Worse."], x: ["One."] },
    ],
    [
      "is read from message, with the fields from errors",
      { message: "Both.", errors: { url: ["Bad."] } },
      "Both.",
      { url: ["Bad."] },
    ],
    [
      "is read from errors by field",
      { errors: { url: ["Bad."], x: [7, null, "Two."] } },
      "Bad. Two.",
      { url: ["Bad."], x: ["Two."] },
    ],
    [
      "is read from errors by field rather than message by field",
      { message: { a: ["A."] }, errors: { b: ["B."] } },
      "B.",
      { b: ["B."] },
    ],
    ["is read from message by field if errors is null", { errors: null, message: { a: ["A."] } }, "A.", { a: ["A."] }],
    ["is read from error", { error: "Forbidden" }, "Forbidden"],
    ["is read from error if message is blank", { message: "", error: "Forbidden" }, "Forbidden"],
    ["is not read from an array", { message: ["A."], errors: ["B."] }, nothing],
    ["is not read from a number", { message: 7, errors: 8, error: 9 }, nothing],
    ["is absent in an empty object", {}, nothing],
    ["is absent if no field has a message", { message: {}, errors: { url: [] } }, nothing, { url: [] }],
    ["is absent in null", null, nothing],
    ["is absent in HTML", HTML, NOT_FROM_API],
  ];
  for (const [name, body, said, fields] of rows)
    it(name, () => {
      const { message, details } = failure(422, body);
      assert.equal(message, returned(422, said));
      assert.deepEqual(details.fields, fields);
      assert.deepEqual(details.body, body);
    });

  it("comes with the first 64 KiB of a body that is not JSON", () => {
    const most = 1 << 16;
    for (const status of [500, 200]) assert.equal(failure(status, "x".repeat(most + 1)).details.body, "x".repeat(most));
  });
});

describe("The time to wait", () => {
  const unix = (seconds: number) => String(Math.floor(Date.now() / 1000) + seconds);
  const date = (seconds: number) => new Date(Date.now() + seconds * 1000).toUTCString();
  const rows: [name: string, headers: () => Record<string, string>, seconds: number | undefined][] = [
    ["is read from Retry-After in seconds", () => ({ "retry-after": "20" }), 20],
    ["is zero if Retry-After is 0", () => ({ "retry-after": "0" }), 0],
    ["is read from Retry-After with spaces around it", () => ({ "retry-after": " 20 " }), 20],
    ["is read from a date in Retry-After", () => ({ "retry-after": date(20) }), 20],
    ["is zero for a past date in Retry-After", () => ({ "retry-after": date(-20) }), 0],
    ["is read from X-RateLimit-Reset", () => ({ "x-ratelimit-reset": ` ${unix(20)} ` }), 20],
    ["is zero for a past X-RateLimit-Reset", () => ({ "x-ratelimit-reset": unix(-20) }), 0],
    [
      "is read from Retry-After rather than X-RateLimit-Reset",
      () => ({ "retry-after": "20", "x-ratelimit-reset": unix(90) }),
      20,
    ],
    [
      "is read from X-RateLimit-Reset if Retry-After is not valid",
      () => ({ "retry-after": "soon", "x-ratelimit-reset": unix(20) }),
      20,
    ],
    ["is not read from a negative Retry-After", () => ({ "retry-after": "-20" }), undefined],
    ["is not read from a fraction in Retry-After", () => ({ "retry-after": "1.5" }), undefined],
    ["is not read from ten digits in Retry-After", () => ({ "retry-after": "1234567890" }), undefined],
    ["is not read from a Retry-After with a unit", () => ({ "retry-after": "20s" }), undefined],
    ["is not read from a Retry-After that begins with a word", () => ({ "retry-after": "in 20" }), undefined],
    ["is not read from an invalid date in Retry-After", () => ({ "retry-after": "soon GMT" }), undefined],
    [
      "is not read from a date with a UTC offset in Retry-After",
      () => ({ "retry-after": `${date(20)}+0200` }),
      undefined,
    ],
    [
      "is not read from a date without a time zone in Retry-After",
      () => ({ "retry-after": "Fri, 20 Nov 2026 10:00:00" }),
      undefined,
    ],
    ["is not read from an X-RateLimit-Reset in seconds from now", () => ({ "x-ratelimit-reset": "20" }), undefined],
    [
      "is not read from an X-RateLimit-Reset in milliseconds",
      () => ({ "x-ratelimit-reset": `${unix(20)}000` }),
      undefined,
    ],
    ["is not read from an X-RateLimit-Reset with a sign", () => ({ "x-ratelimit-reset": `-${unix(20)}` }), undefined],
    ["is absent without either header", () => ({}), undefined],
  ];
  for (const [name, headers, seconds] of rows)
    it(name, () => {
      for (const status of [429, 503]) {
        const { retryAfter } = failure(status, HTML, headers()).details;
        if (seconds === undefined || retryAfter === undefined) assert.equal(retryAfter, seconds);
        else assert.ok(Math.abs(retryAfter - seconds) <= 1, `${retryAfter} of ${seconds} s`);
      }
      assert.equal(failure(500, HTML, headers()).details.retryAfter, undefined);
    });
});

describe("An HTTP status", () => {
  const rows: [statuses: number[], code: Code, stage: string, transient: boolean, uncertain: boolean][] = [
    [[401], "SEO_UNAUTHORIZED", "key", false, false],
    [[403], "SEO_FORBIDDEN", "key", false, false],
    [[404], "SEO_NOT_FOUND", "path", false, false],
    [[405], "SEO_REJECTED", "path", false, false],
    [[407], "SEO_NETWORK", "proxy", false, false],
    [[400, 402, 409, 422, 499], "SEO_REJECTED", "service", false, false],
    [[408], "SEO_REJECTED", "service", true, true],
    [[429], "SEO_RATE_LIMITED", "service", true, false],
    [[500, 502, 503, 504], "SEO_SERVER", "service", true, true],
    [[501, 505, 520, 599], "SEO_SERVER", "service", false, true],
  ];
  for (const [statuses, code, stage, transient, uncertain] of rows)
    for (const status of statuses)
      it(`sets the code, the stage, and whether the error is transient and uncertain: ${status}`, () => {
        const { code: found, details } = failure(status, { message: "No." });
        assert.deepEqual(
          [found, details.statusCode, details.stage, details.transient, details.uncertain],
          [code, status, stage, transient, uncertain],
        );
      });

  it("with Retry-After leaves the outcome uncertain for 500, but not for 503", () => {
    assert.equal(failure(503, HTML, { "retry-after": "1" }).details.uncertain, false);
    assert.equal(failure(500, HTML, { "retry-after": "1" }).details.uncertain, true);
  });

  for (const [location, to] of [
    ["https://other.example.com/login?secret=1", " to https://other.example.com"],
    ["/login", ""],
    [undefined, ""],
  ] as const)
    it(`of a redirect is an error that names only the origin of the target: ${location}`, () => {
      for (const status of [100, 199, 300, 302, 399]) {
        const { code, message, details } = failure(status, HTML, location ? { location } : {});
        assert.deepEqual([code, details], ["SEO_RESPONSE", { statusCode: status, stage: "redirect" }]);
        assert.equal(message, `The service redirected the request${to} (${status}). Redirects are not followed.`);
      }
    });
});

describe("A successful response", () => {
  it("is parsed as JSON, with any status from 200 to 299", () => {
    for (const status of [200, 201, 299]) assert.deepEqual(readAnswer(show, status, {}, '{"data":[1]}'), { data: [1] });
  });

  it("can be empty for a delete operation only", () => {
    for (const text of ["", " \r\n"]) {
      assert.equal(readAnswer(remove, 200, {}, text), null);
      assert.equal(failure(204, text).code, "SEO_RESPONSE");
    }
    const { message, details } = failure(200, HTML, {}, remove);
    assert.equal(message, unreadable("not JSON"));
    assert.deepEqual(details, { statusCode: 200, body: HTML, stage: "answer", uncertain: true });
  });

  const levels = (value: unknown): number =>
    typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(levels)) : 0;
  const text = fc.stringMatching(/^[[\]{}"\\a]{0,80}$/);
  const wrap = (value: unknown, how: string[]) =>
    how.reduce<unknown>((inner, key) => (key ? { [key]: inner, "]": "}" } : [inner, "["]), value);

  it("can be nested 64 levels deep, whatever its strings contain", () => {
    fc.assert(
      fc.property(
        text,
        fc.array(fc.oneof(fc.constant(""), text), { minLength: 50, maxLength: 70 }),
        fc.boolean(),
        (inner, how, spaced) => {
          const value = wrap(inner, how);
          const said = JSON.stringify(value, null, spaced ? 1 : undefined);
          if (levels(value) <= 64) assert.deepEqual(readAnswer(show, 200, {}, said), value);
          else assert.equal(failure(200, said).message, unreadable(TOO_DEEP));
        },
      ),
    );
    const [deepest, deeper] = [64, 65].map((count) => "[".repeat(count) + "]".repeat(count)) as [string, string];
    assert.equal(levels(readAnswer(show, 200, {}, deepest)), 64);
    assert.equal(failure(200, deeper).message, unreadable(TOO_DEEP));
    assert.equal(failure(422, deeper).message, returned(422, NOT_FROM_API));
    assert.ok(readAnswer(show, 200, {}, `[${"[],".repeat(100)}{}]`), "the number of siblings is not limited");
  });

  it("loses properties that could change a prototype", () => {
    const said = '{"__proto__":{"a":1},"constructor":{"prototype":{"a":1}},"id":7}';
    assert.deepEqual(readAnswer(show, 200, {}, said), { id: 7 });
  });
});

describe("A content encoding", () => {
  const bytes = Buffer.from('\ufeff{"é":"\u{1f600}"}');
  const said = '{"é":"\u{1f600}"}';
  for (const [name, coded] of [
    ["identity", bytes],
    ["gzip", gzipSync(bytes)],
    [" X-GZIP ", gzipSync(bytes)],
    ["deflate", deflateSync(bytes)],
    ["br", brotliCompressSync(bytes)],
  ] as const)
    it(`is decoded: ${name}`, async () => assert.equal(await decode(coded, { "content-encoding": name }), said));

  it("is optional", async () => assert.equal(await decode(bytes, {}), said));

  it("is rejected if it was not requested", async () => {
    const refused = new SeoError("SEO_RESPONSE", "The response uses a content encoding that was not requested.", {
      stage: "answer",
      uncertain: true,
    });
    for (const name of ["zstd", "gzip, gzip", "", "__proto__", "constructor"])
      await assert.rejects(decode(bytes, { "content-encoding": name }), (error: SeoError) => {
        assert.deepEqual([error.code, error.message, error.details], [refused.code, refused.message, refused.details]);
        return true;
      });
  });
});

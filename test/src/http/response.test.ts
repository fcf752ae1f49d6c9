import assert from "node:assert/strict";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import type { Code, SeoError } from "../../../src/errors.js";
import { parseJson } from "../../../src/http/json.js";
import { createRedactor } from "../../../src/http/redact.js";
import { decode, readResponse } from "../../../src/http/response.js";
import { type Operation, operations } from "../../../src/operations.js";
import type { Headers } from "../../../src/responses.js";
import { returned } from "../../support/sentences.js";

const show = operations["seo-report-show"] as Operation;
const remove = operations["seo-report-delete"] as Operation;
const NOT_FROM_API = "the response is not JSON, so it did not come from the API.";
const TOO_DEEP = "is nested too deeply";
const TOO_MANY = "has too many values";
const canParse = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
const HTML = "<!doctype html><title>Log in</title>";

/** The message for a successful status whose body cannot be used. */
const unreadable = (why: string) => `The service returned 200, but the response ${why}.`;

/** Reads a response as a transport does. */
const read = async (
  row: Operation,
  statusCode: number,
  body: string | Buffer,
  headers: Headers = {},
  { secrets = [], subject, duration = 0 }: { secrets?: string[]; subject?: string; duration?: number } = {},
) => {
  const received = { statusCode, headers, bytes: Buffer.from(body), sentAt: performance.now() - duration };
  return readResponse(row, received, () => createRedactor(secrets), subject).body;
};

const mustFail = () => assert.fail("The response is a success.");
const failed = (reading: Promise<unknown>) => reading.then(mustFail, (error: SeoError) => error);
/** The error that a response is read as. */
const failure = (status: number, body: unknown, headers: Headers = {}, row = show) =>
  failed(read(row, status, typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body), headers));

describe("The service's error message", () => {
  const nothing = "no error message.";
  const bad = { url: ["Bad."] };
  const [message, errors] = [{ a: ["A."] }, { b: ["B."] }];
  const odd = { url: ["Bad."], x: [7, null, "", "Two."] };
  const rows: [name: string, body: unknown, said: string, fields?: Record<string, string[]>][] = [
    ["is read from message", { message: "No.", status: 422 }, "No."],
    ["is read from message by field", { message: { ...bad, x: "X." } }, "url: Bad. x: X.", { ...bad, x: ["X."] }],
    ["is read from each text of a field", { message: { a: ["A.", "B."] } }, "a: A. B.", { a: ["A.", "B."] }],
    ["is read from errors before message", { message: "Both.", errors: bad }, "url: Bad.", bad],
    ["is read from errors by field", { errors: odd }, "url: Bad. x: Two.", { ...bad, x: ["Two."] }],
    ["is read from errors before message, if both are by field", { message, errors }, "b: B.", errors],
    ["is read from message by field, if errors is null", { errors: null, message }, "a: A.", message],
    ["is read from error", { error: "Forbidden" }, "Forbidden"],
    ["is read from error, if message is blank", { message: "", error: "Forbidden" }, "Forbidden"],
    ["is not read from a list", { message: ["A."], errors: ["B."] }, nothing],
    ["is not read from a number", { message: 7, errors: 8, error: 9 }, nothing],
    ["is not in an empty object", {}, nothing],
    ["is not in empty fields", { message: {}, errors: { url: [] } }, nothing, { url: [] }],
    ["is not in null", null, nothing],
    ["is not in HTML", HTML, NOT_FROM_API],
  ];
  for (const [name, body, said, fields] of rows)
    it(name, async () => {
      const { message, details } = await failure(422, body);
      assert.equal(message, returned(422, said));
      assert.deepEqual(details.fields, fields);
      assert.deepEqual(details.body, body);
    });

  it("cannot forge a line of a log: control characters become spaces in the sentence and the fields", async () => {
    const words = fc
      .array(fc.constantFrom("a", "é", "\n", "\r", "\t", "\0", "\x1b[2K", "\x7f", "\x85", "\u2028", "\u202e", "\u2066"))
      .map((parts) => parts.join(""));
    const property = fc.asyncProperty(words, words, async (name, text) => {
      for (const body of [{ message: text }, { message: { [`f${name}`]: [text] } }, { error: text }]) {
        const { message, details } = await failure(422, body);
        const shown = JSON.stringify([message, details.fields]);
        assert.doesNotMatch(shown, /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]|\\/u);
        assert.deepEqual(details.body, body);
      }
    });
    await fc.assert(property);
    const { message, details } = await failure(422, { errors: { url: ["a\r\n1 Jan [error] b"] } });
    assert.equal(message, returned(422, "url: a 1 Jan [error] b"));
    assert.deepEqual(details.fields, { url: ["a 1 Jan [error] b"] });
  });

  it("is shortened, and not returned by field if that is long", async () => {
    const errors = { url: ["x".repeat(600)], page: ["y".repeat(600), "z"] };
    const { message, details } = await failure(422, { errors });
    assert.deepEqual([details.fields, message.length], [errors, 1000]);
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`field${index}`, []]));
    for (const long of [many, { url: ["x".repeat(10_000)] }])
      assert.equal((await failure(422, { errors: long })).details.fields, undefined);
  });
});

describe("The time to wait", () => {
  const unix = (seconds: number) => String(Math.floor(Date.now() / 1000) + seconds);
  const date = (seconds: number) => new Date(Date.now() + seconds * 1000).toUTCString();
  /** `values`: of Retry-After, X-RateLimit-Reset and Date; blank values are not sent. */
  type Row = [name: string, values: () => string[], seconds?: number];
  const clocks = [-600, 600].flatMap((ahead): Row[] => [
    [`Retry-After, by the clock of Date, ahead by ${ahead} s`, () => [date(ahead + 20), "", ` ${date(ahead)}`], 20],
    [`X-RateLimit-Reset, by the clock of Date, ahead by ${ahead} s`, () => ["", unix(ahead + 20), date(ahead)], 20],
  ]);
  const valid: Row[] = [
    ["Retry-After in seconds", () => ["20"], 20],
    ["Retry-After, which is 0", () => ["0"], 0],
    ["Retry-After with spaces around it", () => [" 20 "], 20],
    ["a date in Retry-After", () => [date(20)], 20],
    ["a past date in Retry-After, as zero", () => [date(-20)], 0],
    ["X-RateLimit-Reset", () => ["", ` ${unix(20)} `], 20],
    ["a past X-RateLimit-Reset, as zero", () => ["", unix(-20)], 0],
    ["X-RateLimit-Reset in the second of the response, as zero", () => ["", unix(600), date(600)], 0],
    ...clocks,
    ["a date in Retry-After by this computer's clock, if Date is not valid", () => [date(20), "", "now"], 20],
    ["Retry-After rather than X-RateLimit-Reset", () => ["20", unix(90)], 20],
    ["X-RateLimit-Reset if Retry-After is not valid", () => ["soon", unix(20)], 20],
    ["several Retry-After, the longest", () => ["2, 20,3"], 20],
    ["ten digits in Retry-After", () => ["1234567890"], 1_234_567_890],
    ["a larger Retry-After, as 2³¹ s", () => ["99999999999999"], 2 ** 31],
    ["400 digits in Retry-After, as 2³¹ s", () => ["9".repeat(400)], 2 ** 31],
  ];
  const ignored: Row[] = [
    ["a negative Retry-After", () => ["-20"]],
    ["a fraction in Retry-After", () => ["1.5"]],
    ["a Retry-After with a unit", () => ["20s"]],
    ["a Retry-After that begins with a word", () => ["in 20"]],
    ["an invalid date in Retry-After", () => ["soon GMT"]],
    ["a date with a UTC offset in Retry-After", () => [`${date(20)}+0200`]],
    ["a date without a time zone in Retry-After", () => ["Fri, 20 Nov 2026 10:00:00"]],
    ["an X-RateLimit-Reset in seconds from now", () => ["", "20"]],
    ["an X-RateLimit-Reset in milliseconds", () => ["", `${unix(20)}000`]],
    ["an X-RateLimit-Reset with a sign", () => ["", `-${unix(20)}`]],
    ["a response without either header", () => []],
  ];
  for (const [name, values, seconds] of [...valid, ...ignored])
    it(`is ${seconds === undefined ? "not read" : "read"} from ${name}`, async () => {
      const names = ["retry-after", "x-ratelimit-reset", "date"];
      const headers = () => Object.fromEntries(values().flatMap((value, i) => (value ? [[names[i], value]] : [])));
      for (const status of [429, 503]) {
        const { retryAfter } = (await failure(status, HTML, headers())).details;
        if (seconds === undefined || retryAfter === undefined) assert.equal(retryAfter, seconds);
        else assert.ok(Math.abs(retryAfter - seconds) <= 1, `${retryAfter} of ${seconds} s`);
      }
      assert.equal((await failure(500, HTML, headers())).details.retryAfter, undefined);
    });

  it("is not read from X-RateLimit-Reset while requests remain, as of a gateway", async () => {
    for (const [remaining, seconds] of Object.entries({ 0: 0, 4990: undefined })) {
      const headers = { "x-ratelimit-remaining": remaining, "x-ratelimit-reset": "1000000000" };
      for (const status of [429, 503]) assert.equal((await failure(status, HTML, headers)).details.retryAfter, seconds);
    }
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
    [[500, 502, 503, 504, 507, 520, 522, 524, 529, 530, 599], "SEO_SERVER", "service", true, true],
    [[501, 505, 506, 508, 510, 511], "SEO_SERVER", "service", false, true],
  ];
  for (const [statuses, code, stage, transient, uncertain] of rows)
    for (const status of statuses)
      it(`has its code, stage and certainty, and says whether a retry may succeed: ${status}`, async () => {
        const { code: found, details } = await failure(status, { message: "No." });
        const got = [found, details.statusCode, details.stage, details.transient, details.uncertain];
        assert.deepEqual(got, [code, status, stage, transient, uncertain]);
      });

  it("of 503 with Retry-After is certain to have had no effect, if it is JSON or prompt", async () => {
    for (const [duration, uncertain] of [
      [5000, false],
      [10_000, true],
    ] as const) {
      for (const [body, of] of Object.entries({ [HTML]: uncertain, '{"message":"Busy"}': false })) {
        const reading = read(show, 503, body, { "retry-after": "1" }, { duration });
        assert.equal((await failed(reading)).details.uncertain, of);
      }
    }
    for (const after of ["1", "0"])
      assert.equal((await failure(503, HTML, { "retry-after": after })).details.uncertain, false);
    assert.equal((await failure(500, HTML, { "retry-after": "1" })).details.uncertain, true);
    const reset = String(Math.ceil(Date.now() / 1000) + 9);
    for (const after of [{}, { "retry-after": "" }, { "retry-after": "1.5" }])
      assert.equal((await failure(503, HTML, { "x-ratelimit-reset": reset, ...after })).details.uncertain, true);
  });

  for (const [location, to, target] of [
    ["https://other.example.com/login?secret=1", " to https://other.example.com", "https://other.example.com"],
    ["/login", "", "…"],
    ["javascript:alert(1)", "", "…"],
    [undefined, "", "…"],
  ] as const)
    it(`of a redirect names only the origin of its target: ${location}`, async () => {
      for (const status of [100, 199, 300, 302, 303, 399]) {
        const { code, message, details } = await failure(status, HTML, location ? { location } : {});
        // "See other" can follow an effect.
        const expected = { statusCode: status, stage: "redirect", values: { target }, uncertain: status === 303 };
        assert.deepEqual([code, details], ["SEO_RESPONSE", expected]);
        assert.equal(message, `The service redirected the request${to} (${status}). Redirects are not followed.`);
      }
    });
});

describe("A successful response", () => {
  it("is read as JSON, with every status from 200 to 299", async () => {
    for (const status of [200, 201, 299]) assert.deepEqual(await read(show, status, '{"data":[1]}'), { data: [1] });
  });

  it("can be empty only for a delete", async () => {
    for (const text of ["", " \r\n"]) {
      assert.equal(await read(remove, 200, text), null);
      assert.equal((await failure(204, text)).code, "SEO_RESPONSE");
    }
    const { message, details } = await failure(200, HTML, {}, remove);
    assert.equal(message, unreadable("is not JSON"));
    assert.deepEqual(details, { statusCode: 200, body: HTML, stage: "answer", uncertain: true, transient: false });
    for (const status of [500, 200])
      assert.equal((await failure(status, "x".repeat(1001))).details.body, "x".repeat(1000));
  });

  const levels = (value: unknown): number =>
    typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(levels)) : 0;
  const text = fc.stringMatching(/^[[\]{}"\\a]{0,80}$/);
  const wrap = (value: unknown, how: string[]) =>
    how.reduce<unknown>((inner, key) => (key ? { [key]: inner, "]": "}" } : [inner, "["]), value);

  it("can be nested 64 levels deep, whatever characters its texts contain", async () => {
    const wraps = fc.array(fc.oneof(fc.constant(""), text), { minLength: 50, maxLength: 70 });
    const property = fc.asyncProperty(text, wraps, fc.boolean(), async (inner, how, spaced) => {
      const value = wrap(inner, how);
      const json = JSON.stringify(value, null, spaced ? 1 : undefined);
      if (levels(value) <= 64) assert.deepEqual(await read(show, 200, json), value);
      else assert.equal((await failure(200, json)).message, unreadable(TOO_DEEP));
    });
    await fc.assert(property);
    const [deepest, deeper] = [64, 65].map((count) => "[".repeat(count) + "]".repeat(count)) as [string, string];
    assert.equal(levels(await read(show, 200, deepest)), 64);
    assert.equal((await failure(200, deeper)).message, unreadable(TOO_DEEP));
    assert.equal((await failure(422, deeper)).message, returned(422, NOT_FROM_API));
    assert.ok(await read(show, 200, `[${"[],".repeat(100)}{}]`), "any number side by side");
  });

  const integer = fc.oneof(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), fc.bigInt(-(2n ** 54n), 2n ** 54n));
  const fraction = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((one) => /[.e]/.test(String(one)));
  const { any } = fc.letrec((tie) => ({
    any: fc.oneof({ maxDepth: 4 }, tie("leaf"), fc.array(tie("any")), fc.dictionary(fc.string(), tie("any"))),
    leaf: fc.oneof(integer, fraction, fc.string(), fc.constant(null)),
  }));
  /** Writes a value as JSON, with big integers as numbers. */
  const write = (value: unknown, space: string): string => {
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    const inner = Array.isArray(value)
      ? value.map((part) => write(part, space))
      : Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}${space}:${space}${write(part, space)}`);
    const [open, close] = Array.isArray(value) ? "[]" : "{}";
    return `${open}${space}${inner.join(`${space},${space}`)}${space}${close}`;
  };
  const exact = (value: unknown): unknown => {
    if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    if (Array.isArray(value)) return value.map(exact);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, exact(part)]));
  };

  it("keeps integers exactly: as text, if a number does not hold them", async () => {
    const property = fc.asyncProperty(any, fc.constantFrom("", " ", "\n"), async (value, space) => {
      const text = write(value, space);
      // Prototypes have a test of their own, and a number cannot be negative zero in text.
      fc.pre(!/__proto__|-0/.test(text));
      assert.deepEqual(await read(show, 200, text), exact(value));
    });
    await fc.assert(property);
    const long = ["12345678901234567", 1.1234567890123457, 0];
    assert.deepEqual(await read(show, 200, "[12345678901234567,1.12345678901234567,1e-12345678901234567]"), long);
  });

  it("is JSON exactly if it was before long integers became text", async () => {
    // A search that tries each digit of a long number again would take minutes.
    const long = `{${"1".repeat(500_000)}:1}`;
    for (const text of ["{12345678901234567890:1}", "{-12345678901234567890:1}", "[12345678901234567890:1]", long])
      for (const end of ["", "x", '{"a":'])
        assert.equal((await failure(200, text + end)).message, unreadable("is not JSON"));
    for (const text of ["{'a':1}", " [Error] ", "", "a {"])
      assert.equal((await failure(200, text)).details.transient, false);
    const token = fc.constantFrom("12345678901234567", '"a"', "E1", "e1", ".5", ...'[]{},:0-+." \\');
    const property = fc.property(fc.array(token, { maxLength: 12 }), (tokens) => {
      const text = tokens.join("");
      assert.equal("json" in parseJson(text), canParse(text), text);
    });
    fc.assert(property, { numRuns: 8000 });
  });

  it("can have 250,000 values", async () => {
    const check = (i: number) => ({ passed: i % 2 === 0, importance: "high", value: i, errors: [] });
    const results = Object.fromEntries(Array.from({ length: 390 }, (_, i) => [`check_${i}`, check(i)]));
    const page = { data: Array.from({ length: 100 }, (_, id) => ({ id, results })) };
    assert.deepEqual(await read(show, 200, JSON.stringify(page)), page);
    const many = (count: number, part: (i: number) => string) =>
      Array.from({ length: count }, (_, i) => part(i)).join();
    for (const [most, text] of [
      [249_999, (count: number) => `[${many(count, () => "1")}]`],
      [125_000, (count: number) => `[${many(count, () => "[]")}]`],
      [249_999, (count: number) => `[${many(count, () => "12345678901234567890")}]`],
      [249_999, (count: number) => `{${many(count, (i) => `"${i}":1`)}}`],
      [125_000, (count: number) => `[${many(count, (i) => `{"${i}":1}`)}]`],
    ] as const) {
      await read(show, 200, text(most));
      assert.equal((await failure(200, text(1.01 * most))).message, unreadable(TOO_MANY));
    }
    const strings = JSON.stringify(['\\",[{'.repeat(125_000), "\\", ","]);
    assert.deepEqual(await read(show, 200, strings), JSON.parse(strings));
    assert.equal((await failure(200, `"${",".repeat(300_000)}`)).message, unreadable("is not JSON"));
  });

  it("loses the properties that could change a prototype, whichever of their characters are escaped", async () => {
    const escaped = (plain: string) => `\\u${plain.charCodeAt(0).toString(16).padStart(4, "0")}`;
    const written = (name: string) =>
      fc
        .tuple(...[...name].map((plain) => fc.constantFrom(plain, escaped(plain))))
        .map((characters) => `"${characters.join("")}"`);
    const said = fc.oneof(
      written("__proto__").map((name) => `{${name}:{"a":1},"id":7}`),
      fc
        .tuple(written("constructor"), written("prototype"))
        .map(([outer, inner]) => `{${outer}:{${inner}:{"a":1}},"id":7}`),
      fc.constantFrom('{"__proto__":{"a":1},"id":7}', '{"constructor":{"prototype":{"a":1}},"id":7}'),
    );
    await fc.assert(fc.asyncProperty(said, async (text) => assert.deepEqual(await read(show, 200, text), { id: 7 })));
  });
});

describe("A content encoding", () => {
  const bytes = Buffer.from('\ufeff{"é":"\u{1f600}"}');
  const said = '{"é":"\u{1f600}"}';
  for (const [name, coded] of [
    ["identity", bytes],
    ["", bytes],
    ["None", bytes],
    ["utf-8", bytes],
    ["UTF-8, identity", bytes],
    ["__proto__", bytes],
    ["gzip", gzipSync(bytes)],
    [" X-GZIP ", gzipSync(bytes)],
    ["GZIP, identity", gzipSync(bytes)],
    ["none,gzip,", gzipSync(bytes)],
    ["utf-8, gzip", gzipSync(bytes)],
    ["deflate", deflateSync(bytes)],
    ["br", brotliCompressSync(bytes)],
  ] as const)
    it(`is decoded: ${JSON.stringify(name)}`, () =>
      assert.equal(decode({ bytes: coded, headers: { "content-encoding": name } }), said));

  it("can be absent", () => assert.equal(decode({ bytes, headers: {} }), said));

  it("is named in the error if the request did not offer it and the response is not JSON", async () => {
    const message = async (name: string) => (await failure(200, gzipSync(bytes), { "content-encoding": name })).message;
    for (const name of ["zstd", "gzip, gzip", "gzip, br"])
      assert.equal(await message(name), unreadable("uses a content encoding that was not requested"));
    for (const name of ["none", "identity", " "]) assert.equal(await message(name), unreadable("is not JSON"));
    const html = failed(read(show, 200, gzipSync("<p>"), { "content-encoding": "gzip" }));
    assert.equal((await html).message, unreadable("is not JSON"));
  });
});

describe("The HTTP status takes precedence over the body", () => {
  for (const coding of ["gzip", "br", "zstd", "gzip, gzip"])
    it(`if the body is empty, or that of an error cannot be decoded: ${coding}`, async () => {
      assert.equal(await read(remove, 204, "", { "content-encoding": coding }), null);
      for (const [status, code, wait] of [
        [401, "SEO_UNAUTHORIZED", undefined],
        [404, "SEO_NOT_FOUND", undefined],
        [429, "SEO_RATE_LIMITED", 7],
      ] as const) {
        const error = await failure(status, "garbage", { "content-encoding": coding, "retry-after": "7" });
        assert.deepEqual([error.code, error.details.statusCode, error.details.retryAfter], [code, status, wait]);
      }
    });
});

describe("An error response", () => {
  const error = (status: number, body: unknown, secrets: string[] = [], subject?: string) =>
    failed(read(show, status, JSON.stringify(body), {}, { secrets, ...(subject && { subject }) }));

  it("names the record that was not found, if the request names one", async () => {
    const said = { message: "Resource not found." };
    const rows: [status: number, subject: string | undefined, begins: string, stage: string][] = [
      [404, "report ID 27", "The service returned 404 for report ID 27", "service"],
      [404, undefined, "The service returned 404", "path"],
      [403, "x", "The service returned 403", "key"],
    ];
    for (const [status, subject, begins, stage] of rows) {
      const { message, details } = await error(status, said, [], subject);
      assert.deepEqual([message, details.stage], [`${begins}: Resource not found.`, stage]);
    }
  });

  it("keeps the client's own details, even if a secret is the name of one", async () => {
    const facts = { statusCode: 500, retryAfter: undefined, stage: "service", transient: true, uncertain: true };
    for (const secret of ["uncertain", "transient", "message", "details", "statusCode", "service", "true", "500"]) {
      const said = { message: `No ${secret} here.`, [secret]: secret };
      const { code, message, details } = await error(500, said, [secret]);
      const { body, fields, ...rest } = details;
      assert.deepEqual([code, rest, fields], ["SEO_SERVER", facts, undefined], secret);
      const names = { message: "No *** here.", [secret === "message" ? secret : "***"]: "***" };
      assert.deepEqual(body, names, secret);
      assert.equal(message, `The service returned 500: ${secret === "message" ? "***" : "No *** here."}`);
    }
  });

  it("is redacted before it is shortened", async () => {
    const secret = "key/of (tests)";
    const long = "x".repeat(990) + secret.repeat(2);
    for (const body of [long, `${JSON.stringify({ message: long })}`]) {
      const { message, details } = await failed(read(show, 500, body, {}, { secrets: [secret] }));
      assert.ok(message.length <= 1000 && !/key|tests/.test(message), message);
      assert.ok(!/key|tests/.test(JSON.stringify(details.body)));
    }
  });

  it("names the limit if the required wait exceeds it, and not otherwise", async () => {
    const message = async (after: string, words = "No.") =>
      (await failure(429, { message: words }, { "retry-after": after })).message;
    const said = "The service returned 429: No.";
    for (const words of ["No.", "No"])
      assert.equal(await message("301", words), `${said} The required wait of 301 s exceeds the limit of 300 s.`);
    assert.equal(await message("300"), said);
  });
});

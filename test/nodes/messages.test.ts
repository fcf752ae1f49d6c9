import assert from "node:assert/strict";
import fc from "fast-check";
import type { Node } from "node-red";
import { operations } from "../../src/operations.js";
import { answer, type FaultyServer, listen } from "../support/faulty.js";
import { type Failure, type Flow, failure, type Message, node, service, startFlow } from "../support/flow.js";
import { openFolder } from "../support/opened.js";
import { helper } from "../support/red.js";

const types = Object.keys(operations);
const others = ["seo-report-changes", "seo-report-audit"];
const valid = { url: "https://example.com", id: 7, project: "p" };

const nested = (levels: number) => {
  let value: object = {};
  for (let i = 0; i < levels; i++) value = { value };
  return value;
};
/** Values that fast-check does not generate or cannot print. */
const hostile: Record<string, () => unknown> = {
  "very deep nesting": () => nested(20_000),
  "a getter that throws": () => Object.defineProperty({}, "url", { enumerable: true, get: () => assert.fail("get") }),
  "a proxy that throws": () => new Proxy({}, { get: () => assert.fail("get"), ownKeys: () => assert.fail("keys") }),
  "an object that cannot become text": () => ({ toString: null, valueOf: null }),
  "a toString that throws": () => ({ toString: () => assert.fail("text"), toJSON: () => assert.fail("JSON") }),
  "a getter that throws a symbol": () => Object.defineProperty({}, "url", { get: () => thrown(Symbol("thrown")) }),
  "a symbol": () => Symbol("symbol"),
  "a function": () => () => assert.fail("called"),
  "a buffer": () => Buffer.from("https://example.com"),
  "a very large BigInt": () => 10n ** 40n,
  "a lone surrogate": () => "\ud800",
  "a string of 1 MB": () => "x".repeat(1 << 20),
  "a circular reference": () => {
    const circle: Record<string, unknown> = {};
    return Object.assign(circle, { url: circle, id: circle, value: circle });
  },
};

const thrown = (value: unknown) => {
  throw value;
};

const value = fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true });
const names = [...new Set(Object.values(operations).flatMap(({ params }) => Object.keys(params)))];
const payload = fc.oneof(value, fc.dictionary(fc.constantFrom("id", "page", ...names), value));

describe("Any message", () => {
  let server: FaultyServer;
  let flow: Flow;
  const { path: folder, close } = openFolder();

  before(async () => {
    server = await listen((socket) => socket.write(answer(200, '{"data":[{"id":7}],"meta":{"last_page":1}}')));
    flow = await startFlow([
      service("service", server.url, { retries: "0" }),
      ...types.map((type) => node(type, type)),
      ...others.map((type) => node(type, type, { folder, wires: [[], []] })),
      node("two", "seo-report-store", { wires: [["out", "out"]] }),
      ...["all", "records"].map((output) => node(output, "seo-report-list", { output, wires: [["out", "out"]] })),
      node("two-list", "seo-report-list", { wires: [["out", "out"]] }),
    ]);
  });

  after(async () => {
    await flow.stop();
    await server.close();
    close();
  });

  async function handle(type: string, msg: Message): Promise<void> {
    const seen = server.requests.length;
    const outcome = await flow.send(type, msg);
    assert.equal(outcome.ends, 1);
    if (!outcome.caught) return;
    const { error } = failure(outcome).seo;
    assert.equal(error.code, "SEO_INPUT", error.message);
    assert.equal(server.requests.length, seen, error.message);
    assert.match(error.message, /^\S/);
  }

  for (const type of types) {
    it(`ends once, with a response or an error code: ${type}`, () =>
      fc.assert(
        fc.asyncProperty(payload, fc.dictionary(fc.string(), value, { maxKeys: 2 }), (payload, rest) =>
          handle(type, { ...rest, payload }),
        ),
        { numRuns: 60 },
      ));

    for (const [name, make] of Object.entries(hostile))
      it(`ends once, with a response or an error code: ${type}, ${name}`, async () => {
        await handle(type, { payload: make() });
        for (const param of ["id", ...names]) await handle(type, { payload: { ...valid, [param]: make() } });
      });
  }

  for (const [id, uncertain] of [
    ["two", true],
    ["all", false],
    ["records", false],
    ["two-list", false],
  ] as const)
    it(`gets an error that says the service responded, if only its output cannot be sent: ${id}`, async () => {
      const msg: Message = { payload: { url: "https://example.com" }, deep: nested(20_000) };
      const seen = server.requests.length;
      const outcome = await flow.send(id, msg);
      assert.equal(server.requests.length, seen + 1);
      assert.equal(outcome.ends, 1);
      const { seo } = failure(outcome);
      assert.deepEqual([seo.error.code, seo.error.attempts, seo.error.uncertain], ["SEO_INPUT", 1, uncertain]);
      assert.match(seo.error.message, /^The service responded, but the message could not be sent: ./);
    });

  it("goes to Catch nodes with the sentence, the code and the stack of its error", async () => {
    const { error, seo } = failure(await flow.send("seo-report-show", { payload: {} }));
    assert.deepEqual([error.message, error.code], [seo.error.message, "SEO_INPUT"]);
    assert.match(String(error.stack), /^SeoError: .*\n +at /);
  });

  it("goes to Catch nodes without its payload if Complete nodes cannot get it", async () => {
    const outcome = await flow.send("seo-report-list", { payload: {}, deep: nested(20_000) });
    const { error, seo, payload } = failure(outcome);
    assert.match(error.message, /^Complete or Catch nodes could not get the message: ./);
    assert.deepEqual([seo.operation, payload, outcome.outputs.length], ["seo-report-list", undefined, 1]);
  });

  const deep = { value: nested(20_000), writable: true };
  const unusable: [what: string, property: string, how: PropertyDescriptor][] = [
    ["_msgid is nested too deeply", "_msgid", deep],
    ["seo is nested too deeply", "seo", deep],
    ["seo throws", "seo", { get: () => assert.fail("get") }],
  ];
  for (const [what, property, how] of unusable)
    for (const payload of [undefined, "https://example.com"])
      for (const type of [...types, ...others])
        it(`ends if its ${what}: ${type}, payload ${payload}`, async () => {
          flow.forget();
          const target = helper.getNode(type) as Node;
          target.receive(Object.defineProperty({ payload }, property, { enumerable: true, ...how }) as never);
          // Of some messages the node replaces msg.seo, and they can be cloned.
          const { message = "" } = await flow.until(() =>
            [...flow.of("caught"), ...flow.of("completed")]
              .map(({ error, complete }) => (error ?? complete) as Failure["error"])
              .find(({ source }) => source.id === type),
          );
          if (property === "_msgid") assert.match(message, /^Complete or Catch nodes could not get the message: ./);
        });
});

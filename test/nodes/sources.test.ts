import assert from "node:assert/strict";
import { thrownText } from "../../nodes/sources.js";
import { answer, type FaultyServer, listen } from "../support/faulty.js";
import { type Flow, failure, type Message, node, service, startFlow } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";
import { helper } from "../support/red.js";
import { unreadable } from "../support/sentences.js";

/** A source, the field's value, and the result for the message `msg` and the context `context`. */
type Row = [source: string, value: string, expected: string];

const msg = (): Message => ({
  payload: { search: "of the payload", list: ["one", { "a b": "deep" }] },
  topic: "list",
  text: "x",
  key: "search",
});
const context = { plain: "of the context", nested: { list: ["first", "second"] } };

const rows: Row[] = [
  ["str", "fixed", "fixed"],
  ["str", "", ""],
  ["msg", "payload.search", "of the payload"],
  ["msg", "msg.payload.search", "of the payload"],
  ["msg", "payload.list[0]", "one"],
  ["msg", 'payload.list[1]["a b"]', "deep"],
  ["msg", "payload[msg.topic][0]", "one"],
  ["msg", "payload[msg.key]", "of the payload"],
  ["msg", "payload.absent.deeper", ""],
  ["msg", "absent", ""],
  // A method of a string is not a value.
  ["msg", "text.search", ""],
  ["flow", "plain", "of the context"],
  ["flow", "nested.list[1]", "second"],
  ["global", "nested.list[0]", "first"],
  ["env", "SEO_TEST_SOURCE", "of the environment"],
  ["jsonata", "payload.list[0] & '!'", "one!"],
  ["jsonata", "$flowContext('plain')", "of the context"],
];

const bad: [source: string, value: string, from: string, reason: RegExp][] = [
  ["msg", "payload[", "msg.payload[", /^: ./],
  ["msg", "payload[msg.absent]", "msg.payload[msg.absent]", /^: ./],
  ["flow", "a[", "flow.a[", /^: ./],
  ["jsonata", "payload.(", "the JSONata expression", /^: .*expected/i],
  ["jsonata", "$number('x')", "the JSONata expression", /^: .*number: "x"/],
];

describe("A parameter", () => {
  const open = closeAfterEach();
  let server: FaultyServer;
  let flow: Flow;
  const listing = ([searchType, search]: readonly [string, string, ...unknown[]], i: number) =>
    node(`node-${i}`, "seo-report-list", { search, searchType, retries: "0" });

  const secret = node("secret", "seo-report-store", { password: "$number(payload.pin)", passwordType: "jsonata" });

  const lookalike = node("lookalike", "seo-report-list", {
    ...{ search: "payload", searchType: "msg" },
    ...{ project: "'a'", projectType: "jsonata" },
  });

  const several = node("several", "seo-report-list", {
    ...{ search: "payload[", searchType: "msg" },
    ...{ project: "payload.(", projectType: "jsonata" },
    ...{ sort: "a[", sortType: "flow" },
  });

  const slow = node("slow", "seo-report-list", {
    service: "one-at-a-time",
    ...{ search: "$string($sum($map([1..payload], function($i) { $i })))", searchType: "jsonata" },
  });

  /** As in flows that were written by hand, or before a parameter existed. */
  const bare = [
    ...["list", "show", "store"].map((name) => node(name, `seo-report-${name}`)),
    node("untyped", "seo-report-list", { search: "fixed", result: "excellent" }),
    node("of-env", "seo-report-list", { result: "SEO_TEST_SOURCE", resultType: "env" }),
  ];

  beforeEach(async () => {
    process.env.SEO_TEST_SOURCE = "of the environment";
    server = await open(listen((socket) => socket.write(answer(200, '{"data":[]}'))));
    const services = [service("service", server.url), service("one-at-a-time", server.url, { concurrency: "1" })];
    const lists = [...rows, ...bad].map(listing);
    flow = await open(startFlow([...services, ...lists, secret, lookalike, several, slow, ...bare]));
    const own = helper.getNode("node-0")?.context();
    for (const [name, value] of Object.entries(context))
      for (const at of ["flow", "global"] as const) own?.[at].set(name, value);
  });

  afterEach(() => {
    delete process.env.SEO_TEST_SOURCE;
  });

  for (const [i, [source, value, expected]] of rows.entries())
    it(`is read from ${source} ${JSON.stringify(value)} as ${JSON.stringify(expected)}`, async () => {
      const { caught } = await flow.send(`node-${i}`, msg());
      assert.equal(caught, undefined);
      const query = new URL(server.requests.at(-1)?.path ?? "", server.url).searchParams;
      assert.equal(query.get("search") ?? "", expected);
    });

  for (const [i, [source, value, from, reason]] of bad.entries())
    it(`fails with SEO_INPUT and sends nothing if it cannot be read from ${source} ${JSON.stringify(value)}`, async () => {
      const { length } = server.requests;
      const outcome = await flow.send(`node-${rows.length + i}`, msg());
      const { seo, error } = failure(outcome);
      assert.equal(seo.error.code, "SEO_INPUT");
      const sentence = unreadable("search", from);
      assert.ok(error.message.startsWith(sentence), error.message);
      assert.match(error.message.slice(sentence.length), reason);
      assert.deepEqual([outcome.ends, outcome.caught?.payload], [1, msg().payload]);
      assert.equal(server.requests.length, length);
    });

  it("is not awaited if it only looks like a promise, such as a database query", async () => {
    const method = "then";
    const query = { [method]() {} };
    const { error } = failure(await flow.send("lookalike", { payload: query }));
    assert.match(error.message, /; msg\.payload is of type object\.$/);
  });

  it("is not quoted in the error of a JSONata expression if it is a secret", async () => {
    const { error } = failure(await flow.send("secret", { payload: { url: "example.com", pin: "s3cret" } }));
    assert.equal(error.message, `${unreadable("password", "the JSONata expression")}.`);
  });

  it("is named in one error with all others that cannot be read, each with its source", async () => {
    const { length } = server.requests;
    const { error } = failure(await flow.send("several", msg()));
    for (const [param, source] of [
      ["search", "msg.payload["],
      ["project", "the JSONata expression"],
      ["sort", "flow.a["],
    ] as const)
      assert.ok(` ${error.message}`.includes(` ${unreadable(param, source)}: `), error.message);
    assert.equal(server.requests.length, length);
  });

  it("is read from the payload, or its property of that name, if its node does not mention it", async () => {
    await flow.send("list", { payload: { search: "a", per_page: 25 } });
    await flow.send("show", { payload: 27 });
    const [list, show] = server.requests.map(({ path }) => path);
    assert.deepEqual([list?.split("?")[1], show?.split("/").at(-1)], ["search=a&per_page=25", "27"]);
    const { caught } = await flow.send("store", { payload: { url: "example.com", existing: "bad" } });
    assert.equal(caught, undefined, "one of a later version is blank");
  });

  it("is a fixed value if its source is missing", async () => {
    const { error } = failure(await flow.send("untyped", {}));
    assert.match(error.message, /^result must be .*; the node's result is "excellent"\.$/);
  });

  it("names its environment variable in the error", async () => {
    const { error } = failure(await flow.send("of-env", {}));
    assert.match(error.message, /; the environment variable SEO_TEST_SOURCE is "of the environment"\.$/);
  });

  it("takes long to read for one message, and later messages of the node wait for it", async () => {
    await flow.send("slow", { payload: 3 });
    await Promise.all([3000, "bad", 2, 1].map((payload) => flow.send("slow", { payload })));
    const searches = server.requests.map(({ path }) => new URL(path, server.url).searchParams.get("search"));
    assert.deepEqual(searches, ["6", "4501500", "3", "1"]);
  });

  it("has its source named in the error if its value is invalid", async () => {
    const own = helper.getNode("node-0")?.context();
    own?.flow.set("plain", {});
    own?.global.set("nested", { list: [{}] });
    for (const name of ["msg payload.search", "flow plain", "global nested.list[0]"]) {
      const i = rows.findIndex(([source, value]) => `${source} ${value}` === name);
      const { error } = failure(await flow.send(`node-${i}`, { payload: { search: {} } }));
      assert.equal(error.message.replace(/^search must be .*; /, ""), `${name.replace(" ", ".")} is of type object.`);
    }
  });
});

describe("The text of a thrown value", () => {
  for (const [thrown, reason] of [
    [new Error("Broken."), "Broken."],
    [{ message: "Broken." }, "Broken."],
    [{ message: 7 }, "object"],
    ["text", "string"],
    [null, "object"],
    [new Proxy({}, { get: () => assert.fail("get") }), "object"],
  ] as const)
    it(`is its message, or what was thrown: ${reason}`, () => assert.equal(thrownText(thrown), reason));
});

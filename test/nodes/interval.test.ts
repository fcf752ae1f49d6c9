import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { setTimeout as late } from "node:timers/promises";
import { nodeRedModule } from "../../dev/nodered.js";
import { createInterval } from "../../nodes/interval.js";
import { deferred } from "../../src/turns.js";
import { type Flow, failure, type Message, node, service, startFlow } from "../support/flow.js";
import { type Lists, type Row, reports, startLists } from "../support/lists.js";
import { closeAfterEach } from "../support/opened.js";
import { type FlowNode, type Hooks, helper } from "../support/red.js";
import { shortenMinutes, stopBackOff, stopTime } from "../support/time.js";

const short = ({ seo, payload }: Message) => `${(seo as Row).change} ${(payload as Row).id}`;
const context = () => helper.getNode("changes")?.context();
const saved = () => context()?.get("reports") as { of: string; at: number };

describe("The interval of the changes node", () => {
  let lists: Lists;
  let flow: Flow;
  let waits: number[];
  const open = closeAfterEach();

  beforeEach(async () => {
    lists = await open(startLists({ all: reports(3) }));
    waits = [];
    await open({ close: shortenMinutes(waits) });
    // No run is put off by the random part of its wait.
    await open({ close: stopBackOff() });
  });

  const nodes = (settings: object = {}) => [
    service("service", lists.url, { concurrency: "1", retries: "0" }),
    node("changes", "seo-report-changes", { interval: "1", ...settings }),
  ];
  /** Resolves when there were `count` requests. */
  const asked = async (count: number) => {
    while (lists.asked.length < count) await late(5);
  };

  it("starts a run when nothing is saved, and another one after each", async () => {
    flow = await open(startFlow(nodes()));
    await asked(2);
    lists.options.all = reports(4);
    const [out] = await flow.take("out", 1);
    assert.deepEqual([short(out as Message), typeof out?._msgid], ["created 4", "string"]);
    assert.deepEqual(Object.keys(out ?? {}).toSorted(), ["_msgid", "payload", "seo"]);
    await asked(5);
    assert.equal(flow.of("out").length, 1);
    assert.ok(flow.of("completed").length >= 4, "each run is complete");
  });

  it("is off if it is blank or absent", async () => {
    for (const interval of ["", undefined]) {
      flow = await open(startFlow(nodes({ interval })));
      await late(150);
      await flow.send("changes");
      await late(150);
      assert.equal(lists.asked.length, 1);
      lists.asked.length = 0;
      await flow.stop();
    }
  });

  it("ends if Modified Nodes moves the node into a subflow", async () => {
    const [home, changes] = nodes() as [FlowNode, FlowNode];
    flow = await open(startFlow([home, changes]));
    await asked(2);
    const inside = { ...changes, z: "sub", interval: "" };
    await flow.deploy([home, { id: "sub", type: "subflow", name: "sub" }, inside], "nodes");
    // A request that was sent before can still arrive.
    await late(50);
    const { length } = lists.asked;
    await late(400);
    assert.equal(lists.asked.length, length);
  });

  it("is counted from the end of a run, which never overlaps another one", async () => {
    const hold = deferred();
    lists.options.wait = () => hold.promise;
    flow = await open(startFlow(nodes()));
    await asked(1);
    await late(400);
    assert.equal(lists.asked.length, 1);
    hold.resolve();
    await asked(3);
    assert.equal(lists.busiest, 1);
  });

  it("lets no run wait behind another one", async () => {
    const [first, second] = [deferred(), deferred()];
    lists.options.wait = ({ nth }) => (nth === 2 ? first.promise : nth === 3 ? second.promise : undefined);
    flow = await open(startFlow(nodes()));
    await asked(1);
    const sent = flow.send("changes");
    await asked(2);
    await late(200);
    first.resolve();
    await sent;
    await asked(3);
    await late(200);
    assert.equal(lists.asked.length, 3);
    second.resolve();
    await asked(4);
  });

  it("continues after an error, which goes to Catch nodes with the run's message", async () => {
    lists.options.reply = ({ nth }) => (nth === 2 ? { status: 500, body: { message: "Broken." } } : undefined);
    flow = await open(startFlow(nodes({ interval: "5" })));
    const [caught] = await flow.take("caught", 1);
    const { error, seo, _msgid } = failure({ caught: caught as Message });
    assert.deepEqual([error.code, seo.operation, typeof _msgid], ["SEO_SERVER", "seo-report-changes", "string"]);
    await flow.until(() => flow.statuses("changes").some(({ fill }) => fill === "red"));
    lists.options.all = reports(4);
    assert.deepEqual((await flow.take("out", 1)).map(short), ["created 4"]);
  });

  it("continues after a hook of Node-RED has dropped a run's message", async () => {
    const { hooks } = nodeRedModule<{ hooks: Hooks<{ destination: { id: string } }> }>("@node-red/util");
    let dropped = 0;
    await open({ close: () => hooks.remove("onReceive.drop") });
    hooks.add("onReceive.drop", ({ destination }) => destination.id !== "changes" || ++dropped >= 3);
    flow = await open(startFlow(nodes()));
    await asked(2);
    assert.ok(dropped >= 3);
  });

  it("continues after a redeploy, with the saved state", async () => {
    flow = await open(startFlow(nodes({ interval: "60" })));
    await flow.until(() => flow.of("completed").length === 1);
    lists.options.all = reports(4);
    waits.length = 0;
    for (const type of ["nodes", "flows", "full"] as const)
      await flow.deploy(nodes({ interval: "60", name: type }), type);
    while (waits.length < 3) await late(5);
    await late(200);
    assert.equal(lists.asked.length, 1);
    assert.ok(waits.length === 3 && waits.every((ms) => ms > 59 * 60_000 && ms < 61 * 60_000), String(waits));
    await flow.send("changes");
    assert.deepEqual(flow.of("out").map(short), ["created 4"]);
  });

  it("starts a run at once if one is due", async () => {
    flow = await open(startFlow(nodes({ interval: "60" })));
    await flow.until(() => flow.of("completed").length === 1);
    for (const at of [Date.now() - 3_600_000, 0, undefined, "text"]) {
      context()?.set("reports", { ...saved(), at });
      lists.asked.length = 0;
      await flow.deploy(nodes({ interval: "60", name: `at ${at}` }));
      await asked(1);
    }
  });

  it("does not wait longer if the clock was set back", async () => {
    flow = await open(startFlow(nodes({ interval: "60" })));
    await flow.until(() => flow.of("completed").length === 1);
    context()?.set("reports", { ...saved(), at: Date.now() + 1e10 });
    waits.length = 0;
    await flow.deploy(nodes({ interval: "60", name: "back" }));
    while (waits.length === 0) await late(5);
    assert.ok(waits.length === 1 && Number(waits[0]) <= 61 * 60_000, String(waits));
  });

  it("ends with the node, and what was saved too", async () => {
    flow = await open(startFlow(nodes()));
    await asked(1);
    await flow.deploy(nodes().slice(0, 1), "full");
    const { length } = lists.asked;
    await late(300);
    assert.equal(lists.asked.length, length);
    lists.options.all = reports(4);
    await flow.deploy(nodes(), "full");
    await asked(length + 2);
    assert.deepEqual(flow.of("out"), []);
  });

  it("is longer by a random part, up to a tenth or a minute", async () => {
    for (const [interval, most] of [
      ["2", 13_000],
      ["60", 60_000],
    ] as const) {
      waits.length = 0;
      for (const part of [0, 0.1, 0.5]) {
        Math.random = () => part;
        flow = await open(startFlow(nodes({ interval })));
        await flow.until(() => flow.of("completed").length === 1 && waits.length > 0);
        await flow.stop();
      }
      const base = Number(interval) * 60_000;
      const expected = [0, 0.1, 0.5].map((part) => base + part * most);
      assert.deepEqual([...new Set(waits.map(Math.round))], expected.map(Math.round));
    }
  });

  it("is an error of the first run if it is invalid", async () => {
    flow = await open(startFlow(nodes({ interval: "0" })));
    const [caught] = await flow.take("caught", 1);
    const { error } = failure({ caught: caught as Message });
    assert.match(error.message, /^interval must be a whole number, 1 or greater; the node's interval is /);
    await late(150);
    assert.deepEqual([flow.of("caught").length, lists.asked.length], [1, 0]);
  });

  it("begins with a message that is received before the last run is known", async () => {
    const time = stopTime();
    const node = Object.assign(new EventEmitter(), { receive() {} });
    const last = deferred();
    const { busy, resume } = createInterval(node as never, "1");
    const resumed = resume(() => last.promise.then(() => undefined));
    busy(1);
    last.resolve();
    await resumed;
    assert.equal(time.timers(), 0);
    time.goOn();
  });

  it("can be longer than a timer", async () => {
    const time = stopTime();
    let runs = 0;
    const node = Object.assign(new EventEmitter(), { receive: () => runs++ });
    createInterval(node as never, "100000").busy(0);
    for (const days of [24, 24, 21]) await time.pass(days * 24 * 3_600_000);
    assert.deepEqual([runs, time.timers()], [0, 1]);
    await time.pass(24 * 3_600_000);
    assert.equal(runs, 1);
    time.goOn();
  });
});

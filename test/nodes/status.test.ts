import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import { rowOf } from "../../src/operations.js";
import { answer, type Behaviour, type FaultyServer, listen } from "../support/faulty.js";
import { type Flow, fixedReport, node, service, startFlow } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";
import { ok } from "../support/scenarios.js";

const KEY = "seo-reports.status";

describe("The status of a node", () => {
  const open = closeAfterEach();
  let flow: Flow;
  let server: FaultyServer;
  let behave: Behaviour;

  const store = { url: "https://example.com", urlType: "str" };
  const nodes = (settings: object, id = {}) => [
    service("service", server.url, { retries: "0", ...settings }),
    node("show", "seo-report-show", { reportId: "payload", reportIdType: "msg", ...id }),
    node("store", "seo-report-store", store),
    node("list", "seo-report-list"),
  ];
  const run = async (settings: object = {}) => {
    flow = await open(startFlow(nodes(settings)));
  };

  beforeEach(async () => {
    behave = (socket) => socket.write(ok);
    server = await open(listen((socket, request, nth) => behave(socket, request, nth)));
  });

  /** The last status, after the interval between two of them. */
  const last = async (id: string) => {
    await late(300);
    return flow.statuses(id).at(-1);
  };
  const show = (...ids: number[]) => Promise.all(ids.map((payload) => flow.send("show", { payload })));

  it("counts the successes and errors of several messages since the node was idle", async () => {
    behave = (socket, { path }) => socket.write(path.endsWith("/3") ? answer(404, "{}") : ok);
    await run();
    await show(1, 2, 3, 4);
    const summary = await last("show");
    assert.deepEqual([summary?.fill, summary?.shape], ["red", "ring"]);
    assert.equal(summary?.text, `${KEY}.summary {"done":3,"failed":1}`);
    await show(1, 2);
    const { fill, shape, text } = (await last("show")) ?? {};
    assert.deepEqual([fill, shape, text], ["green", "dot", `${KEY}.summary {"done":2,"failed":0}`]);
  });

  it("shows the outcome of a single message, without those before the node was idle", async () => {
    behave = (socket, { path }) => socket.write(path.endsWith("/3") ? answer(403, "{}") : ok);
    await run();
    await show(1, 3);
    await show(3);
    assert.equal((await last("show"))?.text, "seo-reports.error.SEO_FORBIDDEN.status");
    await show(1);
    assert.equal((await last("show"))?.text, `${KEY}.${rowOf("seo-report-show").done}`);
  });

  it("shows the time to the next request, the queue length and the remaining time if the rate limit is reached", async () => {
    await run({ rate: "2" });
    const sent = show(1, 2, 3, 4, 5);
    await late(600);
    const { fill, shape, text = "" } = (await last("show")) ?? {};
    assert.deepEqual([fill, shape], ["yellow", "ring"]);
    const { wait, queued, left } = JSON.parse(text.slice(`${KEY}.paused `.length));
    assert.match(wait, /^(5\d|60) s$/);
    // Two a minute: the last of the three starts in two minutes.
    assert.equal(queued, 3);
    assert.match(left, /^(11\d s|2 min)$/);
    void sent;
  });

  it("names the invalid parameters of an input, and its other errors as each editor translates them", async () => {
    const others = [
      node("unreadable", "seo-report-list", { search: "payload[", searchType: "msg" }),
      node("option", "seo-report-list", { output: "all", limit: "x" }),
      node("frozen", "seo-report-list", { target: "topic.report" }),
    ];
    flow = await open(startFlow([...nodes({}), ...others]));
    const input = "seo-reports.error.SEO_INPUT.status";
    for (const [id, shown] of [
      ["show", `${input} · re…`],
      ["unreadable", `${input} · se…`],
      ["option", `${input} · li…`],
      ["frozen", input],
    ] as const) {
      await flow.send(id, { topic: "text" });
      assert.equal((await last(id))?.text, shown);
    }
  });

  it("is cleared when its node is redeployed", async () => {
    await run();
    await show(1);
    assert.equal((await last("show"))?.text, `${KEY}.${rowOf("seo-report-show").done}`);
    await flow.deploy(nodes({}, fixedReport));
    const { source, ...status } = (await last("show")) ?? {};
    assert.deepEqual([source?.id, status], ["show", {}]);
  });
});

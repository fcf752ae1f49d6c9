import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { setTimeout as late } from "node:timers/promises";
import { answer, type Behaviour, type FaultyServer, listen } from "../support/faulty.js";
import { type Flow, failure, fixedReport, node, service, startFlow } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";
import { helper } from "../support/red.js";
import { ok } from "../support/scenarios.js";
import { until } from "../support/time.js";

describe("A redeploy", () => {
  const open = closeAfterEach();
  let flow: Flow;
  let server: FaultyServer;
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);

  beforeEach(() => {
    warnings.length = 0;
    process.on("warning", warned);
  });

  afterEach(() => {
    process.off("warning", warned);
  });

  /** The connections of the requests to a service that does not respond. */
  let asked: Socket[];
  async function serveSilently(): Promise<void> {
    asked = [];
    server = await open(listen((socket) => asked.push(socket)));
  }
  const requests = (count: number) => until(() => asked.length >= count);
  /** The count and the names in each warning of requests that may have taken effect. */
  const mayHaveActed = () =>
    flow.warnings().map(({ msg }) => JSON.parse(String(msg).replace("seo-reports.status.uncertain ", "")));
  const dropped = () => flow.warnings().filter(({ msg }) => /dropped/.test(String(msg)));

  for (const type of ["nodes", "flows", "full"] as const) {
    it(`of type ${type} cancels requests in flight, drops queued messages, and sends nothing afterwards`, async () => {
      await serveSilently();
      const nodes = (name: string) => [
        service("service", server.url, { concurrency: "3" }),
        node("a", "seo-report-store", { name, url: "https://example.com", urlType: "str" }),
      ];
      flow = await open(startFlow(nodes("before")));
      for (let i = 0; i < 5; i++) void flow.send("a", { payload: i });
      await requests(3);
      await flow.deploy(nodes("after"), type);
      await until(() => asked.every(({ destroyed }) => destroyed));
      const [{ id, msg } = {}, ...others] = dropped();
      const uncertain = '{"count":3,"names":"example.com, example.com, example.com"}';
      const text = `seo-reports.status.dropped {"count":2} · seo-reports.status.uncertain ${uncertain}`;
      assert.deepEqual([id, msg, others], ["a", text, []]);
      const cancelled = flow.of("caught").map((caught) => failure({ caught }));
      assert.deepEqual(
        cancelled.map(({ error, seo, payload }) => [payload, error.code, seo.error.attempts, seo.error.uncertain]),
        // A full deploy closes the Catch node as well.
        (type === "full" ? [] : [0, 1, 2]).map((payload) => [payload, "SEO_CANCELLED", 1, true]),
      );
      const told = () => flow.of("caught").length + flow.of("completed").length + flow.of("out").length;
      const before = told();
      const shown = flow.statuses().length;
      const again = flow.send("a", { payload: "new" });
      await requests(4);
      asked[3]?.write(ok);
      assert.equal((await again).outputs.length, 1);
      assert.equal(server.requests.length, 4, "no further request for the old node");
      assert.equal(told(), before + 2, "no further message from the old node");
      for (const { fill } of flow.statuses().slice(shown)) assert.notEqual(fill, "red");
      assert.deepEqual(warnings, []);
    });
  }

  for (const type of ["nodes", "flows", "full"] as const)
    for (const changes of ["the node", "its service"])
      it(`of type ${type} names in one warning what may have taken effect, if ${changes} was modified`, async () => {
        const behave: Behaviour = (socket, { method, path, body }) => {
          // Half of the creations are in flight, and of the other half the response is looked for.
          if (method === "POST" && /[02468]%3F/.test(body)) socket.destroy();
          else if (method === "GET" && path.includes("?")) socket.write(answer(200, JSON.stringify({ data: [] })));
        };
        server = await open(listen(behave));
        const nodes = (settings: object, name: string) => [
          service("service", server.url, { concurrency: "20", reconcile: "300", apiKey: "secret", ...settings }),
          node("store", "seo-report-store", { name }),
          node("update", "seo-report-update", { name }),
          node("delete", "seo-report-delete", { name }),
          node("show", "seo-report-show", { name }),
        ];
        flow = await open(startFlow(nodes({}, "before")));
        const pages = Array.from({ length: 12 }, (_, i) => `https://user:word@www.example.com/${i + 1}?a=b#c`);
        for (const url of pages) void flow.send("store", { payload: { url, privacy: 2, password: "hidden-word" } });
        void flow.send("update", { payload: { id: 7, update: 1 } });
        void flow.send("delete", { payload: 8 });
        void flow.send("show", { payload: 9 });
        await until(() => server.requests.filter(({ method }) => method !== "GET").length === pages.length + 2);
        await flow.deploy(
          nodes(changes === "the node" ? {} : { timeout: "99" }, changes === "the node" ? "after" : "before"),
          type,
        );
        const warned = mayHaveActed();
        assert.deepEqual(warned.map(({ count }) => count).sort(), [1, 1, 12]);
        const alone = warned.filter(({ count }) => count === 1).map(({ names }) => names);
        assert.deepEqual(alone.sort(), ["report ID 7", "report ID 8"]);
        const named = String(warned.find(({ count }) => count > 1).names).split(", ");
        assert.equal(named.pop(), "… (+2)");
        assert.equal(new Set(named).size, 10);
        for (const name of named) assert.match(name, /^example\.com\/\d+\?a=b$/);
        const all = flow.log.map(({ msg }) => String(msg)).join("\n");
        assert.doesNotMatch(all, /hidden-word|user:word|secret/);
      });

  it("counts as dropped what had not changed anything yet, also in a search or in the turn of a page", async () => {
    const behave: Behaviour = (socket, { method, path }) => {
      if (method === "GET" && !path.includes("hangs")) socket.write(answer(200, JSON.stringify({ data: [] })));
    };
    server = await open(listen(behave));
    const nodes = (name: string) => [
      service("service", server.url, { concurrency: "9" }),
      node("a", "seo-report-store", { name, existing: "return", existingType: "str" }),
    ];
    flow = await open(startFlow(nodes("before")));
    for (const page of ["one", "one", "one", "hangs"]) void flow.send("a", { payload: `https://example.com/${page}` });
    await until(() => server.requests.some(({ method }) => method === "POST"));
    await flow.deploy(nodes("after"), "full");
    const warnings = flow.warnings().map(({ msg }) => msg);
    const uncertain = 'seo-reports.status.uncertain {"count":1,"names":"example.com/one"}';
    assert.deepEqual(warnings, [`seo-reports.status.dropped {"count":3} · ${uncertain}`]);
  });

  it("names neither a secret nor control characters, and no more than 200 characters of each", async () => {
    server = await open(listen(() => {}));
    const nodes = (name: string) => [
      service("service", server.url, { concurrency: "9" }),
      node("a", "seo-report-store", { name }),
      node("b", "seo-report-delete", { name }),
    ];
    flow = await open(startFlow(nodes("before")));
    void flow.send("a", { payload: `https://user:word@exa mple.com/key-of-tests/${"x".repeat(999)}` });
    void flow.send("b", { payload: "7\u2028\u202e[error] forged" });
    await late(300);
    await flow.deploy(nodes("after"), "full");
    const names = mayHaveActed().map(({ names }) => names);
    assert.deepEqual(names.map(({ length }) => length).sort(), [200, 26]);
    assert.doesNotMatch(names.join(), /user|word|key-of-tests|[\u2028\u202e]/);
  });

  it("closes promptly with 1,000 requests in flight and 9,000 messages queued, without a Node.js warning", async () => {
    await serveSilently();
    const nodes = [
      service("service", server.url, { concurrency: "1000", timeout: "600" }),
      node("a", "seo-report-show", fixedReport),
    ];
    flow = await open(startFlow(nodes));
    for (let i = 0; i < 10_000; i++) void flow.send("a");
    await requests(1000);
    const began = performance.now();
    await helper.clearFlows();
    const took = performance.now() - began;
    await until(() => server.open.size === 0);
    console.log(`      closed ${Math.round(took)} ms after the redeploy`);
    const texts = dropped().map(({ msg }) => msg);
    assert.deepEqual(texts, ['seo-reports.status.dropped {"count":9000}']);
    assert.equal(server.requests.length, 1000);
    assert.deepEqual(warnings, []);
    assert.ok(took < 15_000, "Node-RED waits at most 15 s");
  });
});

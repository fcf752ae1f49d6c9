import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { NodeAPI } from "node-red";
import register from "../../nodes/seo-reports.js";
import { startSandbox } from "../../sandbox/server.js";
import { operations } from "../../src/operations.js";
import { answer, listen } from "../support/faulty.js";
import { node, service, startFlow } from "../support/flow.js";
import { closeAfterEach, openFolder } from "../support/opened.js";
import { helper } from "../support/red.js";
import { startRelay } from "../support/relay.js";
import { engines, startServer } from "../support/servers.js";

/** JSON that has such properties itself; a literal would set the prototype. */
const POLLUTING = '"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}';
const clean = () => assert.deepEqual(["polluted" in {}, "polluted" in Function], [false, false]);

describe("The admin routes", () => {
  it("all require a permission, to write if they change something, also those to come", () => {
    const guards = new Map<unknown, string>();
    const routes: [path: string, guard: unknown, right: RegExp][] = [];
    const add = (right: RegExp) => (path: string, guard: unknown) => routes.push([path, guard, right]);
    const change = add(/^seo-[a-z-]+\.write$/);
    const RED = {
      auth: {
        needsPermission(permission: string) {
          const guard = () => {};
          guards.set(guard, permission);
          return guard;
        },
      },
      httpAdmin: {
        get: add(/^seo-[a-z-]+\.(read|write)$/),
        post: change,
        put: change,
        delete: change,
        use: change,
        all: change,
      },
      nodes: { registerType() {} },
    };
    register(RED as unknown as NodeAPI);
    assert.ok(routes.length >= 2);
    for (const [path, guard, right] of routes) assert.match(guards.get(guard) ?? "", right, path);
  });
});

describe("A connection test of any address", () => {
  const SECRET = "canary-of-an-internal-page";
  const json = JSON.stringify({ data: { token: SECRET }, message: SECRET, total: SECRET });
  const responses: Record<string, [status: number, body: string, headers?: Record<string, string>]> = {
    "a page": [200, `<html>${SECRET}</html>`, { "Content-Type": "text/html", "X-Secret": SECRET }],
    "other JSON": [200, json],
    "a list of something else": [200, JSON.stringify({ data: [{ id: SECRET }], meta: { total: SECRET } })],
    "an error": [500, json],
    "an error with fields": [422, JSON.stringify({ message: SECRET, errors: { [SECRET]: [SECRET] } })],
    "a redirect": [302, SECRET, { Location: `http://127.0.0.1:1/?token=${SECRET}` }],
  };
  const open = closeAfterEach();
  beforeEach(() => open(startFlow([])));

  for (const [name, response] of Object.entries(responses))
    it(`sends one request for a list, and returns nothing of ${name}`, async () => {
      const server = await open(listen((socket) => socket.end(answer(...response))));
      const draft = { baseUrl: server.url, apiKey: "entered" };
      const { text } = (await helper.request().post("/seo-service/test").send(draft)) as { text: string };
      assert.match(text, /"stage":"\w+"/);
      assert.ok(!text.includes(SECRET), text);
      const asked = server.requests.map(({ method, path }) => `${method} ${path}`);
      assert.deepEqual(asked, ["GET /api/v1/reports"]);
    });

  for (const path of ["seo-service/test", "seo-service/suggest", "seo-queue/test"])
    it(`sends nothing for a form of another website: ${path}`, async () => {
      const server = await open(listen((socket) => socket.end(answer(200, '{"data":[]}'))));
      const draft = {
        baseUrl: server.url,
        apiKey: "${PATH}",
        url: server.url.replace("http", "redis"),
        operation: "seo-report-list",
      };
      const { status } = await helper.request().post(`/${path}`).type("form").send(draft);
      assert.equal(status, 415);
      assert.equal(server.requests.length, 0);
    });
});

describe("A response that would change a prototype", () => {
  const open = closeAfterEach();

  it("does not, with any output", async () => {
    const checks = `"results":{"title":{"passed":false,"errors":{"short":{${POLLUTING}}},${POLLUTING}}}`;
    const body = `{"data":[{"id":1,"url":"example.com",${checks},${POLLUTING}}],${POLLUTING}}`;
    const headers = { ["__proto__"]: "polluted\r\n__proto__: polluted" };
    const server = await open(listen((socket) => socket.write(answer(200, body, headers))));
    const all = Object.keys(operations["seo-report-list"].options.output?.values ?? {});
    const nodes = all.map((output) => node(output, "seo-report-list", { output, target: "result.reports" }));
    const flow = await open(startFlow([service("service", server.url), ...nodes]));
    for (const output of all) {
      const { outputs } = await flow.send(output, {});
      assert.equal(outputs.length, 1, output);
      assert.ok(!JSON.stringify(outputs).includes("polluted"), output);
      const [{ seo } = {}] = outputs;
      assert.equal(Object.getPrototypeOf((seo as { headers: object }).headers), Object.prototype);
      clean();
    }
  });
});

describe("A hostile list of pages", () => {
  const open = closeAfterEach();

  it("is a batch like any other, whatever its name, and its files stay in the folder", async () => {
    const { path: parent } = await open(openFolder());
    const sandbox = await open(startSandbox({ apiKey: "key-of-tests", reports: 0 }));
    const place = { folder: join(parent, "batches"), batch: "topic", batchType: "msg" };
    const audit = node("audit", "seo-report-audit", { ...place, existing: "create", wires: [["result"], []] });
    const flow = await open(startFlow([service("service", sandbox.url, { retries: "0" }), audit]));
    for (const topic of ["../../../../outside", "/etc/passwd", "..", "__proto__", "constructor", "x".repeat(5_000)]) {
      const row = JSON.parse(`{"url":"https://example.com/${sandbox.requests.length}",${POLLUTING}}`);
      flow.forget();
      const { caught } = await flow.send("audit", { topic, payload: [row] });
      assert.equal(caught, undefined, JSON.stringify(caught?.error));
      const [result] = await flow.take("result", 1);
      assert.equal(result?.topic, topic);
      assert.ok((result?.payload as { id?: number } | null)?.id);
      assert.deepEqual(readdirSync(parent), ["batches"]);
      clean();
    }
  });
});

describe("The neighbors on a queue's server", () => {
  const open = closeAfterEach();
  const KEY = "canary-key-of-the-account";
  const SECRET = "canary-password-of-a-page";
  for (const engine of engines)
    it(`find the pages there, but neither the API key nor a page's password nor a response: ${engine}`, async function () {
      const server = await open((await startServer(engine)) ?? this.skip());
      const sandbox = await open(startSandbox({ apiKey: KEY, reports: 0 }));
      let sent = "";
      const reads = (chunk: Buffer) => {
        sent += chunk.toString("latin1");
      };
      const relay = await open(startRelay(server.port, reads));
      const nodes = [
        service("service", sandbox.url, { retries: "0" }),
        { id: "queue", type: "seo-queue" },
        node("audit", "seo-report-audit", { queue: "queue", existing: "create", wires: [["result"], ["progress"]] }),
      ];
      const queue = { url: server.url.replace(`:${server.port}`, `:${relay.port}`) };
      const flow = await open(startFlow(nodes, { service: { apiKey: KEY }, queue }));
      const url = "https://example.com/for-the-neighbors";
      const { caught } = await flow.send("audit", { payload: [{ url, password: SECRET }, { url: "no page" }] });
      assert.equal(caught, undefined, JSON.stringify(caught?.error));
      const results = await flow.take("result", 2);
      assert.ok(results.some(({ payload }) => payload !== null));
      assert.ok(sent.includes(url));
      for (const secret of [KEY, SECRET, "meta_description"]) assert.ok(!sent.includes(secret), secret);
    });
});

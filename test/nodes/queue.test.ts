import assert from "node:assert/strict";
import type { EventEmitter } from "node:events";
import { inspect } from "node:util";
import type { NodeStatus } from "node-red";
import { freePort, nodeRedModule } from "../../dev/nodered.js";
import { startSandbox } from "../../sandbox/server.js";
import type { Stage } from "../../src/errors.js";
import { type FaultyServer, listen } from "../support/faulty.js";
import { type Flow, failure, node, service, startFlow, tlsConfig } from "../support/flow.js";
import { closeAfterEach, openFolder } from "../support/opened.js";
import { helper } from "../support/red.js";
import { engines, PASSWORD, type Server, startServer } from "../support/servers.js";

const queue = (id: string, more: object = {}) => ({ id, type: "seo-queue", name: "", prefix: "", ...more });
const audit = (id: string, settings: object) => node(id, "seo-report-audit", { wires: [[], []], ...settings });

for (const engine of engines)
  describe(`The queue node with ${engine}`, () => {
    let server: Server | undefined;
    let http: FaultyServer;
    let flow: Flow;
    let closed: number;

    before(async function () {
      server = await startServer(engine);
      if (!server) return this.skip();
      closed = await freePort();
      http = await listen((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
      flow = await startFlow(
        [
          ...[tlsConfig("tls"), queue("stored"), queue("with-tls", { tls: "tls" }), queue("wrong"), queue("blank")],
          ...[service("service", http.url), audit("audit", { queue: "wrong" }), audit("lost", { queue: "blank" })],
        ],
        {
          stored: { url: server.url },
          "with-tls": { url: server.url },
          wrong: { url: server.url.replace(PASSWORD, `${PASSWORD}-x`) },
        },
      );
    });

    after(async () => {
      await flow?.stop();
      await server?.close();
      await http?.close();
    });

    async function tested(draft: object) {
      const { body, text } = await helper.request().post("/seo-queue/test").send(draft);
      assert.ok(!text.includes(PASSWORD), text);
      return body as { ok: boolean; stage: Stage; values: { version?: string } };
    }

    const url = () => server?.url ?? "";
    const at = (port: number) => url().replace(`:${server?.port}`, `:${port}`);
    const rows: Record<string, () => [draft: object, stage: Stage]> = {
      "an entered URL": () => [{ url: url() }, "done"],
      "an entered URL for a deployed queue": () => [{ id: "stored", url: ` ${url()} ` }, "done"],
      "the deployed URL": () => [{ id: "stored", url: "__PWRD__" }, "done"],
      "the deployed URL with another TLS configuration": () => [
        { id: "stored", url: "__PWRD__", tls: "tls" },
        "stored",
      ],
      "the deployed URL without its TLS configuration": () => [{ id: "with-tls" }, "stored"],
      "no URL": () => [{ url: "" }, "config"],
      "the deployed URL with a prefix whose variable is not set": () => [
        { id: "stored", url: "__PWRD__", prefix: "${NOT_SET_HERE}" },
        "variable",
      ],
      "another scheme": () => [{ url: `http://:${PASSWORD}@127.0.0.1` }, "config"],
      "a URL without a host": () => [{ url: "redis://" }, "config"],
      "a URL without slashes": () => [{ url: "postgres:x" }, "config"],
      "a wrong password": () => [{ url: url().replace(PASSWORD, `${PASSWORD}-x`) }, "key"],
      "a port that is closed": () => [{ url: at(closed) }, "connect"],
      // A label of more than 63 characters is rejected here, so that no slow name server is requested.
      "a host that cannot exist": () => [{ url: url().replace("127.0.0.1", `${"q".repeat(64)}.invalid`) }, "name"],
      // Redis does not respond to what it cannot read.
      "TLS with a server that has none": () => [
        { url: url().replace("redis:", "rediss:"), tls: "tls" },
        engine === "Redis" ? "time" : "tls",
      ],
    };

    for (const [name, row] of Object.entries(rows))
      it(`tests the connection: ${name}`, async () => {
        const [draft, stage] = row();
        const { ok, stage: reached, values } = await tested(draft);
        assert.deepEqual([reached, ok], [stage, stage === "done"]);
        if (ok) assert.match(values.version ?? "", /^(Redis|PostgreSQL) \d+\.\d+/);
      });

    it("fails a message if the password is wrong, with a sentence that names the server", async () => {
      const { error, seo } = failure(await flow.send("audit", { payload: "https://example.com" }));
      assert.equal(seo.error.code, "SEO_CONFIG");
      const begin = `The queue's server 127.0.0.1:${server?.port} rejects the connection:`;
      assert.equal(error.message, `${begin} the user name or password in the queue's URL is wrong.`);
      const { fill, text } = { ...flow.statuses("audit").at(-1) };
      assert.deepEqual([fill, text], ["red", "seo-reports.status.seo-queue"]);
    });

    it("fails a message if it has no URL, which is not in the flows", async () => {
      const { error } = failure(await flow.send("lost", { payload: "https://example.com" }));
      assert.equal(error.message, "The queue's URL is missing.");
    });

    it("keeps its URL out of its object, errors, statuses and the log", () => {
      for (const id of ["stored", "with-tls"]) assert.doesNotMatch(inspect(helper.getNode(id), { depth: 6 }), /canary/);
      assert.doesNotMatch(inspect([flow.log, flow.of("caught"), flow.statuses()], { depth: 20 }), /canary/);
    });
  });

describe("An audit whose queue's server goes away", () => {
  const open = closeAfterEach();

  it("waits, reports one error, and continues by itself", async function () {
    // Starting a killed server takes several seconds, and more on a busy machine.
    const server = await open((await startServer("Redis")) ?? this.skip());
    const sandbox = await open(startSandbox({ reports: 0, apiKey: "key-of-tests", latency: 200 }));
    const wires = [["results"], ["progress"]];
    // Status nodes may start later than the audit.
    const texts: (string | undefined)[] = [];
    const { events } = nodeRedModule<{ events: EventEmitter }>("@node-red/util");
    const note = ({ id, status }: { id: string; status: NodeStatus }) => id === "audit" && texts.push(status.text);
    events.on("node-status", note);
    await open({ close: () => events.off("node-status", note) });
    const nodes = [service("service", sandbox.url), queue("here"), audit("audit", { queue: "here", wires })];
    const flow = await open(startFlow(nodes, { here: { url: server.url } }));
    const pages = Array.from({ length: 40 }, (_, index) => `https://example.com/${index}`);
    await flow.send("audit", { payload: pages });
    await flow.until(() => flow.of("results").length > 3);
    await server.stop("SIGKILL");
    const away = "seo-reports.status.server";
    await flow.until(() => flow.statuses("audit").some(({ text }) => text === away));
    await flow.until(() => flow.of("caught").length > 0);
    await server.start();
    await flow.until(() => flow.of("progress").some(({ payload }) => (payload as { finished: boolean }).finished));
    assert.equal(flow.of("results").length, pages.length);
    assert.equal(new Set(sandbox.reports.list({}).map(({ url }) => url)).size, pages.length);
    assert.equal(sandbox.reports.list({}).length, pages.length);
    assert.equal(texts[0], "node-red:common.status.connecting");
    assert.equal(flow.statuses("audit").at(-1)?.fill, "green");
    const [error, ...more] = flow.of("caught").map((msg) => failure({ caught: msg }));
    assert.deepEqual([error?.seo.error.code, more], ["SEO_NETWORK", []]);
    assert.match(error?.error.message ?? "", /^The queue's server 127\.0\.0\.1:\d+ cannot be reached: .+\.$/);
  });
});

describe("An audit node whose Folder, Queue or queue changes while pages wait", () => {
  /** Where the jobs are kept: without a queue, in files. */
  interface Kept {
    queue?: string;
    prefix?: string;
    user?: string;
    database?: string;
  }
  const elsewhere: Record<string, [from: Kept, to: Kept]> = {
    "from files to a queue": [{}, { queue: "here" }],
    "from a queue to files": [{ queue: "here" }, {}],
    "to another queue": [{ queue: "here" }, { queue: "there" }],
    "to another prefix": [{ queue: "here" }, { queue: "here", prefix: "other" }],
    "to another database": [{ queue: "here" }, { queue: "here", database: "/1" }],
  };
  const same: Record<string, [from: Kept, to: Kept]> = {
    "to another queue node of the same server and prefix": [{ queue: "here" }, { queue: "there", prefix: "" }],
    "to another user": [{ queue: "here" }, { queue: "here", user: "default" }],
  };
  const pages = Array.from({ length: 20 }, (_, index) => `https://example.com/${index}`);
  const open = closeAfterEach();
  let server: Server;

  before(async function () {
    server = (await startServer("Redis")) ?? this.skip();
  });
  after(() => server?.close());

  async function start(id: string, from: Kept) {
    const sandbox = await open(startSandbox({ reports: 0, apiKey: "key-of-tests", latency: 50 }));
    const { path: folder } = await open(openFolder());
    const keys = { here: { url: "" }, there: { url: "" } };
    function nodes({ queue: chosen = "", prefix, user = "", database = "" }: Kept) {
      const url = `${server.url.replace("//:", `//${user}:`)}${database}`;
      Object.assign(keys, { here: { url }, there: { url } });
      return [
        service("service", sandbox.url, { reconcile: "1" }),
        queue("here", { name: "Here", prefix: prefix ?? "", credentials: keys.here }),
        queue("there", { name: "There", prefix: prefix ?? "second", credentials: keys.there }),
        audit(id, { folder, queue: chosen, wires: [["results"], ["progress"]] }),
      ];
    }
    const flow = await open(startFlow(nodes(from), keys));
    await flow.send(id, { payload: pages });
    await flow.until(() => flow.of("results").length > 2);
    return {
      folder,
      deploy: (kept: Kept) => flow.deploy(nodes(kept)),
      warnings: () => flow.warnings().map(({ msg }) => String(msg)),
      async complete() {
        await flow.until(() => flow.of("progress").some(({ payload }) => (payload as { finished: boolean }).finished));
        assert.equal(sandbox.reports.list({}).length, pages.length);
      },
    };
  }

  for (const [index, [name, [from, to]]] of Object.entries(elsewhere).entries())
    it(`warns where they wait, and continues them there: ${name}`, async () => {
      const { folder, deploy, warnings, complete } = await start(`moved-${index}`, from);
      await deploy(to);
      const [, details = ""] = /^seo-reports\.status\.pagesLeft (.*)$/.exec(String(warnings()[0])) ?? [];
      const { count, where } = JSON.parse(details);
      assert.ok(count > 0 && count <= pages.length, `${count} of ${pages.length}`);
      assert.equal(where, from.queue ? "Here" : folder);
      await deploy(from);
      await complete();
      assert.equal(warnings().length, 1);
    });

  for (const [index, [name, [from, to]]] of Object.entries(same).entries())
    it(`continues them without a warning: ${name}`, async () => {
      const { deploy, warnings, complete } = await start(`same-${index}`, from);
      await deploy(to);
      await complete();
      assert.deepEqual(warnings(), []);
    });
});

describe("An audit whose queue is missing", () => {
  const open = closeAfterEach();

  it("fails every message with the reason", async () => {
    const flow = await open(startFlow([service("service", "http://127.0.0.1:1"), audit("audit", { queue: "gone" })]));
    // Other machines may have begun a batch, so that it is opened without a message.
    await flow.until(() => flow.of("caught").length === 1);
    const { error, seo } = failure(await flow.send("audit", { payload: "https://example.com" }));
    assert.equal(seo.error.code, "SEO_CONFIG");
    assert.equal(error.message, "The queue configuration node is missing or disabled.");
  });
});

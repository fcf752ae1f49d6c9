import assert from "node:assert/strict";
import { type FaultyServer, listen } from "../support/faulty.js";
import { type Flow, failure, fixedReport, node, service, startFlow, tlsConfig } from "../support/flow.js";
import { closeAfterEach } from "../support/opened.js";
import { startProxy } from "../support/proxy.js";
import { ok } from "../support/scenarios.js";
import { until } from "../support/time.js";

const KEY = "canary-key/5f0c1e";
const noNode = (what: string) => `The ${what} configuration node is missing or disabled.`;
const notSet = (what: string) => `The environment variable NOT_SET_HERE (${what}) is not set.`;
const badTls = "The TLS configuration is not valid. See the Node-RED log.";
const badProxy = "The proxy URL must begin with http:// or https://.";

/** Invalid settings or API keys of the service node, each with the error of every message. */
const rows: Record<string, { settings?: object; key?: string; message: string }> = {
  "no base URL": { settings: { baseUrl: "" }, message: "baseUrl is required; baseUrl is blank." },
  "base URL from an environment variable that is not set": {
    settings: { baseUrl: "${NOT_SET_HERE}" },
    message: notSet("base URL"),
  },
  "API key from an environment variable that is not set": { key: "${NOT_SET_HERE}", message: notSet("API key") },
  "no API key": { key: " ", message: "The service's API key is missing." },
  "missing TLS configuration node": { settings: { tls: "gone" }, message: noNode("TLS") },
  "missing CA file": { settings: { tls: "missing-file" }, message: badTls },
  "missing proxy configuration node": { settings: { proxy: "gone" }, message: noNode("proxy") },
  "proxy without a URL": { settings: { proxy: "blank" }, message: badProxy },
  "proxy without a URL, but with a user name": { settings: { proxy: "blank-with-user" }, message: badProxy },
};

describe("An unusable SEO service node", () => {
  const ids = Object.keys(rows).map((_, i) => `service-${i}`);
  let server: FaultyServer;
  let flow: Flow;

  beforeEach(async () => {
    server = await listen(() => {});
    flow = await startFlow(
      [
        tlsConfig("missing-file", { ca: "/nowhere/ca.pem" }),
        { id: "blank", type: "http proxy", name: "", url: "" },
        { id: "blank-with-user", type: "http proxy", name: "", url: "" },
        ...Object.values(rows).flatMap(({ settings }, i) => [
          service(`service-${i}`, server.url, settings),
          node(`show-${i}`, "seo-report-show", { service: `service-${i}`, ...fixedReport }),
        ]),
        node("alone", "seo-report-show", { service: "", ...fixedReport }),
      ],
      {
        ...Object.fromEntries(ids.map((id, i) => [id, { apiKey: Object.values(rows)[i]?.key ?? KEY }])),
        "blank-with-user": { username: "me", password: "canary-key" },
      },
    );
  });

  afterEach(async () => {
    assert.equal(server.connections, 0);
    assert.doesNotMatch(JSON.stringify([flow.of("out"), flow.of("caught"), flow.log, flow.statuses()]), /canary-key/);
    const began = performance.now();
    await flow.stop();
    assert.ok(performance.now() - began < 15_000, "Node-RED waits 15 s for a node that does not close");
    await server.close();
  });

  for (const [i, [name, { message }]] of Object.entries(rows).entries())
    it(`fails every message with the reason: ${name}`, async () => {
      for (const payload of [1, 2]) {
        const outcome = await flow.send(`show-${i}`, { payload });
        const { error, seo } = failure(outcome);
        assert.deepEqual([seo.error.code, error.message, seo.error.attempts], ["SEO_CONFIG", message, 0]);
        assert.deepEqual([outcome.caught?.payload, outcome.ends], [payload, 1]);
      }
      const { fill, text } = flow.statuses(`show-${i}`).at(-1) ?? {};
      assert.deepEqual([fill, text], ["red", "seo-reports.status.seo-service"]);
    });

  it("fails every message with the reason: none selected", async () => {
    const { error } = failure(await flow.send("alone"));
    assert.deepEqual([error.code, error.message], ["SEO_CONFIG", "No SEO service is selected, or it is disabled."]);
  });
});

describe("An SEO service node", () => {
  const open = closeAfterEach();
  let server: FaultyServer;

  beforeEach(async () => {
    server = await open(listen((socket) => socket.write(ok)));
  });

  const show = node("show", "seo-report-show", fixedReport);
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
  const proxies: Record<string, { noproxy?: string[]; credentials?: Record<string, string>; asked: unknown[] }> = {
    "without credentials": { noproxy: [], asked: [undefined] },
    "with a user name and a password": {
      credentials: { username: "me@home", password: "a:b/c" },
      asked: [basic("me@home:a:b/c")],
    },
    "with a user name and no password": { credentials: { username: "me" }, asked: [basic("me:")] },
    "except for its hosts": { noproxy: ["127.0.0.1"], asked: [] },
  };
  for (const [name, { noproxy, credentials, asked }] of Object.entries(proxies))
    it(`uses its proxy ${name}`, async () => {
      const proxy = await open(startProxy());
      const nodes = [
        { id: "proxy", type: "http proxy", name: "", url: proxy.url, ...(noproxy && { noproxy }) },
        service("service", server.url, { proxy: "proxy" }),
        show,
      ];
      const flow = await open(startFlow(nodes, credentials && { proxy: credentials }));
      const { caught } = await flow.send("show");
      assert.equal(caught, undefined);
      assert.deepEqual([proxy.asked.map(({ authorization }) => authorization), server.requests.length], [asked, 1]);
    });

  it("closes its connections when it is redeployed", async () => {
    const nodes = (name: string) => [service("service", server.url, { name }), show];
    const flow = await open(startFlow(nodes("before")));
    await flow.send("show");
    assert.equal(server.open.size, 1);
    await flow.deploy(nodes("after"));
    await until(() => server.open.size === 0, { patience: 3000 });
  });
});

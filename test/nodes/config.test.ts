import assert from "node:assert/strict";
import { deadUrl, type FaultyServer, listen } from "../support/faulty.js";
import { type Flow, failure, fixedReport, node, service, startFlow, tlsConfig } from "../support/flow.js";
import { notWhole } from "../support/sentences.js";

const KEY = "canary-key/5f0c1e";
const noNode = (what: string) => `The ${what} configuration node is missing or disabled.`;
const notSet = (what: string) => `The environment variable NOT_SET_HERE (${what}) is not set.`;
const badTls = "The TLS configuration is not valid. See the Node-RED log.";
const badProxy = "The proxy URL must begin with http:// or https://.";

/** Settings of the service node that are of no use, its key, and what each message that meets them is told. */
const rows: Record<string, { settings: object; key?: string; message: string }> = {
  "no base URL": { settings: { baseUrl: "" }, message: "baseUrl is required, but the node's baseUrl is blank." },
  "a base URL of another scheme": {
    settings: { baseUrl: "ftp://example.com" },
    message: "The service's base URL must begin with http:// or https://.",
  },
  "a base URL with a query": {
    settings: { baseUrl: "https://example.com?a=1" },
    message: "The service's base URL must not contain a query string or fragment.",
  },
  "a base URL with a password": {
    settings: { baseUrl: "https://me:canary-key@example.com" },
    message: "The service's base URL must not contain a user name or password.",
  },
  "a base URL that is none": {
    settings: { baseUrl: "https://[bad" },
    message: "The service's base URL is not a valid URL.",
  },
  "a variable that is not set as base URL": {
    settings: { baseUrl: "${NOT_SET_HERE}" },
    message: notSet("base URL"),
  },
  "a variable that is not set as key": {
    settings: {},
    key: "${NOT_SET_HERE}",
    message: notSet("API key"),
  },
  "no key": { settings: {}, key: " ", message: "The service's API key is missing." },
  "a key with a line break": {
    settings: {},
    key: `${KEY}\r\nX-Evil: 1`,
    message: "The service's API key must be printable ASCII characters, without spaces or line breaks.",
  },
  "concurrency 0": { settings: { concurrency: "0" }, message: notWhole("concurrency", 1, "0") },
  "a negative concurrency": { settings: { concurrency: -4 }, message: notWhole("concurrency", 1, "-4") },
  "concurrency as text": { settings: { concurrency: "many" }, message: notWhole("concurrency", 1, "many") },
  "a rate of a half": { settings: { rate: "0.5" }, message: notWhole("rate", 1, "0.5") },
  "a rate of 0": { settings: { rate: 0 }, message: notWhole("rate", 1, "0") },
  "a negative queue": { settings: { queue: "-1" }, message: notWhole("queue", 0, "-1") },
  "retries without end": { settings: { retries: "Infinity" }, message: notWhole("retries", 0, "Infinity") },
  "a time-out of 0": { settings: { timeout: "0" }, message: notWhole("timeout", 1, "0") },
  "a TLS configuration that is gone": { settings: { tls: "gone" }, message: noNode("TLS") },
  "a CA file that is missing": { settings: { tls: "missing-file" }, message: badTls },
  "a CA file that is a folder": { settings: { tls: "folder" }, message: badTls },
  "a proxy that is gone": {
    settings: { proxy: "gone" },
    message: noNode("proxy"),
  },
  "a proxy without a URL": { settings: { proxy: "blank" }, message: badProxy },
  "a proxy of another scheme": { settings: { proxy: "ftp" }, message: badProxy },
};

describe("A service node that is of no use", () => {
  const ids = Object.keys(rows).map((_, i) => `service-${i}`);
  let server: FaultyServer;
  let flow: Flow;

  before(async () => {
    server = await listen(() => {});
    flow = await startFlow(
      [
        tlsConfig("missing-file", { ca: "/nowhere/ca.pem" }),
        tlsConfig("folder", { ca: "/" }),
        { id: "blank", type: "http proxy", name: "", url: "" },
        { id: "ftp", type: "http proxy", name: "", url: "ftp://127.0.0.1" },
        { id: "down", type: "http proxy", name: "", url: deadUrl },
        service("behind-down", server.url, { proxy: "down", retries: "0" }),
        node("down-show", "seo-report-show", { service: "behind-down", ...fixedReport }),
        ...Object.values(rows).flatMap(({ settings }, i) => [
          service(`service-${i}`, server.url, settings),
          node(`show-${i}`, "seo-report-show", { service: `service-${i}`, ...fixedReport }),
        ]),
        node("alone", "seo-report-show", { service: "", ...fixedReport }),
      ],
      Object.fromEntries([...ids, "behind-down"].map((id, i) => [id, { apiKey: Object.values(rows)[i]?.key ?? KEY }])),
    );
  });

  after(async () => {
    await flow.stop();
    await server.close();
  });

  for (const [i, [name, { message }]] of Object.entries(rows).entries())
    it(`says so to each message: ${name}`, async () => {
      for (const payload of [1, 2]) {
        const outcome = await flow.send(`show-${i}`, { payload });
        const { error, seo } = failure(outcome);
        assert.deepEqual([seo.error.code, error.message, seo.error.attempts], ["SEO_CONFIG", message, 0]);
        assert.deepEqual([outcome.caught?.payload, outcome.ends], [payload, 1]);
      }
      assert.equal(flow.statuses(`show-${i}`).at(-1)?.fill, "red");
    });

  it("says so to each message: none is chosen", async () => {
    const { error } = failure(await flow.send("alone"));
    assert.equal(error.message, "No SEO service is selected, or it is disabled.");
  });

  it("says that its proxy is down", async () => {
    const { error, seo } = failure(await flow.send("down-show"));
    assert.deepEqual([seo.error.code, seo.error.uncertain], ["SEO_NETWORK", false]);
    assert.match(error.message, /could not connect through the proxy/);
  });

  it("asks nobody, and tells no key", () => {
    assert.equal(server.connections, 0);
    assert.doesNotMatch(JSON.stringify([flow.of("out"), flow.of("caught"), flow.log, flow.statuses()]), /canary-key/);
  });
});

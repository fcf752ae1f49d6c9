import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import { type Client, createClient } from "../../../src/client.js";
import { allClosed, answer, deadUrl, type FaultyServer, listen, tlsFile } from "../../support/faulty.js";
import { type ProxyServer, startProxy } from "../../support/proxy.js";

const ok = answer(200, '{"data":{"id":7},"status":200}');
const PASSWORD = "pass word@7";
const VARIABLES = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"];

describe("A proxy", () => {
  let server: FaultyServer;
  let proxy: ProxyServer;
  let client: Client;
  let environment: NodeJS.ProcessEnv;

  const open = (url?: string, except: string[] = []) => {
    client = createClient({
      baseUrl: server.url,
      apiKey: "key-of-tests",
      concurrency: "2",
      retries: "0",
      tls: { ca: tlsFile("ca") },
      ...(url !== undefined && { proxy: { url, except } }),
    });
  };
  const show = () => client.call("seo-report-show", { reportId: "7" });
  const store = () => client.call("seo-report-store", { url: "https://example.com" });

  beforeEach(async () => {
    environment = { ...process.env };
    for (const name of VARIABLES) delete process.env[name];
    server = await listen((socket) => socket.write(ok));
  });

  afterEach(async () => {
    process.env = environment;
    await client.close();
    await proxy.close();
    await server.close();
  });

  const kinds = {
    "that allows CONNECT": undefined,
    "that refuses CONNECT": (socket: { end(): void }) => socket.end(),
  };
  for (const [name, tunnel] of Object.entries(kinds)) {
    it(`${name} receives its password, which the service does not, and its connections are reused`, async () => {
      proxy = await startProxy(tunnel);
      const url = Object.assign(new URL(proxy.url), { username: "me", password: PASSWORD });
      open(url.href);
      for (let i = 0; i < 10; i++) await Promise.all([show(), show()]);
      const authorization = `Basic ${Buffer.from(`me:${PASSWORD}`).toString("base64")}`;
      assert.deepEqual([...new Set(proxy.asked.map((one) => one.authorization))], [authorization]);
      assert.equal(server.requests.length, 20);
      assert.ok(
        server.requests.every(({ head, path }) => !/proxy-authorization/i.test(head) && path.startsWith("/api/")),
      );
      assert.ok(server.requests.every(({ head }) => head.includes("authorization: Bearer key-of-tests")));
      // Each refused CONNECT costs one more connection.
      assert.ok(proxy.connections <= (tunnel ? 4 : 2), `${proxy.connections} connections`);
    });

    it(`${name} gets a new connection for each request that must not be repeated`, async () => {
      proxy = await startProxy(tunnel);
      open(proxy.url);
      for (let i = 0; i < 3; i++) await store();
      assert.equal(server.requests.length, 3);
      assert.equal(proxy.connections, tunnel ? 4 : 3);
    });
  }

  it("receives nothing but CONNECT for an https URL", async () => {
    await server.close();
    server = await listen((socket) => socket.write(ok), { certificate: "cert" });
    proxy = await startProxy((socket) => socket.end());
    open(proxy.url);
    await assert.rejects(show(), { code: "SEO_NETWORK" });
    assert.deepEqual([...new Set(proxy.asked.map(({ line }) => line.split(" ")[0]))], ["CONNECT"]);
  });

  it("leaves a request uncertain if the connection is lost after the request was forwarded", async () => {
    await server.close();
    server = await listen((socket) => socket.destroy());
    proxy = await startProxy();
    open(proxy.url);
    await assert.rejects(store(), ({ details }) => details.uncertain === true && server.requests.length === 1);
  });

  it("receives CONNECT again when it is back after a failure", async () => {
    proxy = await startProxy();
    const { url } = proxy;
    await proxy.close();
    open(url);
    await assert.rejects(show(), ({ code, details }) => code === "SEO_NETWORK" && details.stage === "proxy");
    proxy = await startProxy(undefined, Number(new URL(url).port));
    await show();
    assert.deepEqual(
      proxy.asked.map(({ line }) => line),
      [`CONNECT 127.0.0.1:${server.port}`],
    );
  });

  it("causes one error if it refuses CONNECT and then goes down", async () => {
    let gone: Promise<void> | undefined;
    proxy = await startProxy(() => {
      gone = proxy.close();
    });
    open(proxy.url);
    await assert.rejects(show(), ({ code, details }) => code === "SEO_NETWORK" && details.stage === "proxy");
    await gone;
    assert.equal(server.requests.length, 0);
  });

  it("loses its connections when the client closes", async () => {
    proxy = await startProxy();
    open(proxy.url);
    await show();
    await store();
    assert.ok(proxy.open.size > 0);
    const closed = allClosed(proxy.open);
    await client.close();
    const kept = late(1000).then(() => assert.fail("The connections are still open after a second."));
    await Promise.race([closed, kept]);
  });

  it("is bypassed for a host that is excepted", async () => {
    proxy = await startProxy();
    open(proxy.url, ["other.example", "127.0.0.1"]);
    await show();
    assert.deepEqual([proxy.asked, server.requests.length], [[], 1]);
  });

  it("is not quoted if its URL is not valid", async () => {
    proxy = await startProxy();
    assert.throws(() => open(`http://me:${PASSWORD}@[bad`), {
      code: "SEO_CONFIG",
      message: "The proxy URL is not valid.",
      details: { stage: "proxy" },
    });
    open(proxy.url);
  });

  describe("in the environment variables", () => {
    const rows: [environment: (proxy: string) => Record<string, string>, scheme: string, through: boolean][] = [
      [(url) => ({ HTTP_PROXY: url }), "http", true],
      [(url) => ({ http_proxy: url }), "http", true],
      [(url) => ({ HTTPS_PROXY: url }), "https", true],
      [(url) => ({ https_proxy: url }), "https", true],
      [(url) => ({ HTTPS_PROXY: url }), "http", false],
      [(url) => ({ HTTP_PROXY: deadUrl, http_proxy: url }), "http", true],
      [(url) => ({ HTTP_PROXY: url, NO_PROXY: "127.0.0.1" }), "http", false],
      [(url) => ({ HTTP_PROXY: url, no_proxy: "*" }), "http", false],
      [(url) => ({ HTTP_PROXY: url, NO_PROXY: "example.com, 10.0.0.1" }), "http", true],
      [() => ({ HTTP_PROXY: "" }), "http", false],
    ];
    for (const [set, scheme, through] of rows)
      it(`is ${through ? "used" : "not used"} for ${scheme}: ${Object.entries(set("its URL")).map((pair) => pair.join("="))}`, async () => {
        await server.close();
        server = await listen((socket) => socket.write(ok), scheme === "https" ? { certificate: "cert" } : {});
        proxy = await startProxy();
        Object.assign(process.env, set(proxy.url));
        open();
        await show();
        assert.equal(proxy.asked.length, through ? 1 : 0);
      });

    it("is not used if another proxy is configured", async () => {
      proxy = await startProxy();
      process.env.HTTP_PROXY = deadUrl;
      process.env.NO_PROXY = "*";
      open(proxy.url);
      await show();
      assert.equal(proxy.asked.length, 1);
    });

    it("is not quoted if its URL is not valid", async () => {
      proxy = await startProxy();
      process.env.HTTP_PROXY = `http://me:${PASSWORD}@[bad`;
      assert.throws(() => open(), {
        code: "SEO_CONFIG",
        message: "The proxy URL in HTTP_PROXY or HTTPS_PROXY is not valid.",
      });
      open(proxy.url);
    });
  });
});

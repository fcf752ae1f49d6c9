import assert from "node:assert/strict";
import { type Client, createClient } from "../../../src/client.js";
import { proxyFor } from "../../../src/http/proxy.js";
import {
  answer,
  type Behaviour,
  deadUrl,
  type FaultyServer,
  type ListenOptions,
  listen,
  tlsFile,
} from "../../support/faulty.js";
import { closeAfterEach } from "../../support/opened.js";
import { type ProxyServer, startProxy } from "../../support/proxy.js";
import { until } from "../../support/time.js";

const ok = answer(200, '{"data":{"id":7},"status":200}');
const PASSWORD = "pass word@7";
const VARIABLES = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"];

describe("The exceptions of a proxy", () => {
  for (const [except, origin, excepted] of [
    ["example.com", "http://example.com", true],
    ["example.com", "https://www.example.com:8443", true],
    ["example.com", "http://notexample.com", false],
    [".example.com", "http://example.com", true],
    ["*.Example.com", "http://a.example.com", true],
    ["*.example.com:443", "https://seo.example.com", true],
    ["www.example.com", "http://example.com", false],
    ["example.com:8080", "http://example.com:8080", true],
    ["example.com:8080", "http://example.com", false],
    ["example.com:80", "http://example.com", true],
    ["example.com:443", "https://example.com", true],
    ["example.com:80", "https://example.com", false],
    ["[::1]", "http://[::1]:3000", true],
    ["localhost,127.0.0.1,::1", "http://[::1]:8080", true],
    ["[::1]:8080", "http://[::1]:8080", true],
    ["[::1]:81", "http://[::1]:8080", false],
    ["2001:0db8:0::1", "http://[2001:db8::1]", true],
    ["::2", "http://[::1]", false],
    ["MÜNCHEN.example", "http://xn--mnchen-3ya.example", true],
    ["a.example, b.example\texample.com", "http://example.com", true],
    ["a%b, example.com", "http://example.com", true],
    ["*", "http://example.com", true],
    ["*,a.example", "http://example.com", false],
    [",", "http://example.com", false],
    ["", "http://example.com", false],
  ] as const)
    it(`${excepted ? "cover" : "do not cover"} ${origin}, also in NO_PROXY: ${JSON.stringify(except)}`, () => {
      assert.equal(proxyFor(origin, { url: "http://proxy.example", except: [except] }) === undefined, excepted);
      const environment = { ...process.env };
      for (const name of VARIABLES) delete process.env[name];
      Object.assign(process.env, { HTTP_PROXY: "http://proxy.example", NO_PROXY: except });
      assert.equal(proxyFor(origin) === undefined, excepted);
      process.env = environment;
    });
});

describe("A proxy", () => {
  const opened = closeAfterEach();
  let server: FaultyServer;
  let proxy: ProxyServer;
  let client: Client;
  let environment: NodeJS.ProcessEnv;

  const open = async (url?: string, except: string[] = []) => {
    const options = {
      baseUrl: server.url,
      apiKey: "key-of-tests",
      concurrency: "2",
      retries: "0",
      tls: { ca: tlsFile("ca") },
      ...(url !== undefined && { proxy: { url, except } }),
    };
    client = await opened(createClient(options));
  };
  const show = () => client.call("seo-report-show", { reportId: "7" });
  const store = () => client.call("seo-report-store", { url: "https://example.com" });

  beforeEach(async () => {
    environment = { ...process.env };
    for (const name of VARIABLES) delete process.env[name];
    await serve((socket) => socket.write(ok));
    proxy = await opened(startProxy());
  });

  afterEach(() => {
    process.env = environment;
  });

  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

  /** Replaces the service. */
  const serve = async (behave: Behaviour, options?: ListenOptions) => {
    server = await opened(listen(behave, options));
  };
  /** Replaces the service with one that uses TLS. */
  const secure = () => serve((socket) => socket.write(ok), { certificate: "cert" });

  for (const scheme of ["http", "https"]) {
    const method = scheme === "http" ? "GET" : "CONNECT";

    it(`receives its password, which the service does not, and reuses its connections: ${scheme}`, async () => {
      if (scheme === "https") await secure();
      const url = Object.assign(new URL(proxy.url), { username: "me", password: PASSWORD });
      await open(url.href);
      for (let i = 0; i < 10; i++) await Promise.all([show(), show()]);
      assert.deepEqual([...new Set(proxy.asked.map((one) => one.authorization))], [basic(`me:${PASSWORD}`)]);
      assert.deepEqual([...new Set(proxy.asked.map(({ line }) => line.split(" ")[0]))], [method]);
      assert.equal(server.requests.length, 20);
      for (const { head, path } of server.requests) {
        assert.ok(!/proxy-authorization/i.test(head) && path.startsWith("/api/"));
        assert.ok(head.includes("authorization: Bearer key-of-tests"));
      }
      assert.ok(proxy.connections <= 2, `${proxy.connections} connections`);
    });

    for (const [user, password] of Object.entries({ me: "", "": "secret", "m e@": "ü:%/" }))
      it(`receives any user name and password, blank or with special characters: ${scheme}, ${user}:${password}`, async () => {
        if (scheme === "https") await secure();
        const text = [user, password].map(encodeURIComponent).join(":");
        await open(proxy.url.replace("//", `//${text}@`));
        await show();
        assert.equal(proxy.asked[0]?.authorization, basic(`${user}:${password}`));
      });

    it(`gets a new connection for each request that is not idempotent: ${scheme}`, async () => {
      if (scheme === "https") await secure();
      await open(proxy.url);
      for (let i = 0; i < 3; i++) await store();
      assert.deepEqual([server.requests.length, proxy.connections], [3, 3]);
      assert.ok(proxy.asked.every(({ authorization }) => authorization === undefined));
    });

    it(`loses its connections when the client closes: ${scheme}`, async () => {
      if (scheme === "https") await secure();
      await open(proxy.url);
      await show();
      await store();
      assert.ok(proxy.open.size > 0);
      await client.close();
      await until(() => proxy.open.size === 0, { patience: 3000 });
    });
  }

  it("is named in the error, and not the service, if it returns 407: http", async () => {
    const guard = await opened(listen((socket) => socket.write(answer(407, "<h1>Who are you?</h1>"))));
    await open(guard.url);
    await assert.rejects(store(), ({ code, details }) => {
      assert.deepEqual([code, details.stage, details.uncertain], ["SEO_NETWORK", "proxy", false]);
      return true;
    });
  });

  it("does not change the maximum size of a response: http", async () => {
    await serve((socket) => socket.write(answer(200, Buffer.alloc(17 << 20, " "))));
    await open(proxy.url);
    await assert.rejects(show(), { code: "SEO_RESPONSE", message: /larger than 16 MiB/ });
  });

  it("leaves a create request uncertain if the connection is lost after the proxy received it", async () => {
    await serve((socket) => socket.destroy());
    await open(proxy.url);
    await assert.rejects(store(), ({ details }) => details.uncertain === true && server.requests.length === 1);
  });

  it("is used again after it was down", async () => {
    const { url } = proxy;
    await proxy.close();
    await open(url);
    await assert.rejects(show(), ({ code, details }) => code === "SEO_NETWORK" && details.stage === "proxy");
    proxy = await opened(startProxy(undefined, Number(new URL(url).port)));
    await show();
    assert.equal(proxy.asked.length, 1);
  });

  for (const [how, change] of [
    ["", (url: string) => url],
    [", even if its URL cannot be used", () => "socks5://127.0.0.1:1"],
  ] as const)
    it(`is bypassed for an excepted host${how}`, async () => {
      await open(change(proxy.url), ["other.example", "127.0.0.1"]);
      await show();
      assert.deepEqual([proxy.asked, server.requests.length], [[], 1]);
    });

  it("can send 100 Continue before a response that it forwards", async () => {
    const forwarder = await opened(listen((socket) => socket.write(Buffer.concat([answer(100), ok]))));
    await open(forwarder.url);
    await show();
  });

  describe("in the environment variables", () => {
    const rows: [environment: (proxy: string) => Record<string, string>, scheme: string, through: boolean][] = [
      [(url) => ({ HTTP_PROXY: url }), "http", true],
      [(url) => ({ http_proxy: url }), "http", true],
      [(url) => ({ HTTPS_PROXY: url }), "https", true],
      [(url) => ({ https_proxy: url }), "https", true],
      [(url) => ({ HTTPS_PROXY: url }), "http", false],
      [(url) => ({ HTTP_PROXY: url }), "https", true],
      [(url) => ({ HTTP_PROXY: url, HTTPS_PROXY: "" }), "https", false],
      [(url) => ({ HTTP_PROXY: deadUrl, http_proxy: url }), "http", true],
      [(url) => ({ HTTP_PROXY: url, NO_PROXY: "127.0.0.1" }), "http", false],
      [(url) => ({ HTTP_PROXY: url, no_proxy: "*" }), "http", false],
      [(url) => ({ HTTP_PROXY: url, NO_PROXY: "example.com, 10.0.0.1" }), "http", true],
      [() => ({ HTTP_PROXY: "" }), "http", false],
      [() => ({ HTTP_PROXY: "socks5://127.0.0.1:1", NO_PROXY: "127.0.0.1" }), "http", false],
      [() => ({ HTTPS_PROXY: "proxy:3128", no_proxy: "*" }), "https", false],
    ];
    for (const [set, scheme, through] of rows)
      it(`is ${through ? "used" : "not used"} for ${scheme}: ${Object.entries(set("its URL")).map((pair) => pair.join("="))}`, async () => {
        if (scheme === "https") await secure();
        Object.assign(process.env, set(proxy.url));
        await open();
        await show();
        assert.equal(proxy.asked.length, through ? 1 : 0);
      });

    it("is not used if another proxy is configured", async () => {
      process.env.HTTP_PROXY = deadUrl;
      process.env.NO_PROXY = "*";
      await open(proxy.url);
      await show();
      assert.equal(proxy.asked.length, 1);
    });

    it("is not quoted if its URL is not valid", async () => {
      process.env.HTTP_PROXY = `http://me:${PASSWORD}@[bad`;
      await assert.rejects(open(), { code: "SEO_CONFIG", message: "The proxy URL in HTTP_PROXY is not valid." });
    });
  });
});

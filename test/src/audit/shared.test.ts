import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import pg from "pg";
import { root } from "../../../dev/nodered.js";
import { limitOf } from "../../../src/audit/shared/gate.js";
import { createShared, testQueue } from "../../../src/audit/shared/shared.js";
import { SeoError } from "../../../src/errors.js";
import { listen, tlsFile } from "../../support/faulty.js";
import { LEASE } from "../../support/fleet.js";
import { type QueueServer, queueServers } from "../../support/queues.js";
import { type Bench, createBench, createFake, urls } from "./fake.js";

/** What testing a queue says. */
async function said(...[place]: Parameters<typeof testQueue>): Promise<string> {
  try {
    return await testQueue(place);
  } catch (error) {
    assert.ok(error instanceof SeoError);
    return `${error.code}: ${error.message}`;
  }
}

describe("The queue that several machines share", function () {
  this.timeout(60_000);
  const servers: Record<string, QueueServer> = {};

  before(async () => {
    for (const [name, start] of Object.entries(queueServers)) servers[name] = await start();
  });
  after(() => Promise.all(Object.values(servers).map((server) => server.stop())));
  const serverOf = (name: string) => servers[name] as QueueServer;

  it("names its server", async () => {
    assert.match(await said({ url: serverOf("Redis").url }), /^Redis \d+\.\d+/);
    assert.match(await said({ url: ` ${serverOf("PostgreSQL").url} ` }), /^PostgreSQL \d+\.\d+/);
  });

  for (const url of ["", "localhost", "http://localhost", "redis://", "postgres:x"])
    it(`rejects the URL ${JSON.stringify(url)}`, async () => {
      assert.match(await said({ url }), /^SEO_CONFIG: The queue's URL must begin with redis:\/\//);
    });

  it("says why the server cannot be reached", async () => {
    for (const scheme of ["redis", "rediss", "postgres"]) {
      const sentence = `SEO_NETWORK: The queue's server 127.0.0.1:1 cannot be reached: connection refused.`;
      assert.equal(await said({ url: `${scheme}://user:secret-word@127.0.0.1:1/0` }), sentence);
    }
    const silent = await listen(() => {});
    for (const scheme of ["redis", "postgres"])
      assert.match(
        await said({ url: `${scheme}://user:secret-word@127.0.0.1:${silent.port}/0` }),
        /^SEO_NETWORK: The queue's server 127.0.0.1:\d+ cannot be reached: timed out\.$/,
      );
    await silent.close();
  });

  it("says that a password is wrong, and does not repeat it", async () => {
    const { port, url } = serverOf("Redis");
    const client = new Redis(url);
    await client.config("SET", "requirepass", "secret-word");
    const begin = `SEO_CONFIG: The queue's server 127.0.0.1:${port} rejects the connection:`;
    assert.equal(await said({ url }), `${begin} it requires a password.`);
    const wrong = await said({ url: `redis://:other-word@127.0.0.1:${port}` });
    assert.equal(wrong, `${begin} the user name or password is wrong.`);
    assert.match(await said({ url: `redis://:secret-word@127.0.0.1:${port}` }), /^Redis/);
    await client.config("SET", "requirepass", "");
    client.disconnect();
  });

  it("says what a PostgreSQL user may not do", async () => {
    const { port, url } = serverOf("PostgreSQL");
    const client = new pg.Client(url);
    await client.connect();
    for (const sql of ["CREATE ROLE poor LOGIN", "CREATE ROLE nobody NOLOGIN"]) await client.query(sql);
    await client.end();
    const begin = `SEO_CONFIG: The queue's server 127.0.0.1:${port} rejects the connection:`;
    const at = `@127.0.0.1:${port}`;
    const own = "the user must be allowed to create a schema in the database";
    assert.equal(await said({ url: `postgres://poor${at}/postgres`, prefix: "new" }), `${begin} ${own}.`);
    assert.equal(await said({ url: `postgres://nobody${at}/postgres` }), `${begin} the user is not allowed to log in.`);
    assert.equal(await said({ url: `postgres://seo${at}/none` }), `${begin} the database does not exist.`);
  });

  it("needs Redis 6.2", async () => {
    const old = createServer((socket) => {
      socket
        .on("error", () => {})
        .on("data", (data) => {
          const info = "redis_version:5.0.7\r\nloading:0\r\n";
          for (const name of String(data).match(/\binfo\b|\b(hello|client|auth|select)\b/gi) ?? [])
            socket.write(name.toLowerCase() === "info" ? `$${info.length}\r\n${info}\r\n` : "+OK\r\n");
        });
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => old.once("listening", resolve));
    const { port } = old.address() as { port: number };
    const sentence = "SEO_CONFIG: The queue needs Redis 6.2 or later; the server is Redis 5.0.7.";
    assert.equal(await said({ url: `redis://127.0.0.1:${port}` }), sentence);
    old.close();
  });

  it("names the command that installs what is missing", () => {
    const folder = mkdtempSync(join(tmpdir(), "bare-"));
    mkdirSync(join(folder, "node_modules"));
    for (const name of ["undici", "zod", "secure-json-parse"])
      symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
    cpSync(join(root, "dist/src"), join(folder, "src"), { recursive: true });
    cpSync(join(root, "package.json"), join(folder, "package.json"));
    const script = `import { testQueue } from "./src/audit/shared/shared.js";
      for (const url of ["redis://a.example", "postgres://a.example"])
        await testQueue({ url }).catch(({ code, message }) => console.log(code, message));`;
    const text = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: folder,
      encoding: "utf8",
    });
    const [redis, postgres] = text.split("\n");
    assert.match(redis ?? "", /^SEO_CONFIG The package bullmq is not installed: run "npm install bullmq ioredis" in/);
    assert.match(postgres ?? "", /^SEO_CONFIG The package bullmq is not installed: run "npm install bullmq pg" in/);
    rmSync(folder, { recursive: true });
  });

  it("checks the certificate of a server with TLS", async () => {
    const tls = await listen((socket) => socket.destroy(), { certificate: "cert" });
    for (const [scheme, options] of [
      ["rediss", {}],
      ["rediss", { ca: tlsFile("ca") }],
    ] as const) {
      const text = await said({ url: `${scheme}://127.0.0.1:${tls.port}`, tls: options });
      assert.equal(/TLS failed/.test(text), !("ca" in options), text);
    }
    await tls.close();
  });

  for (const name of Object.keys(queueServers)) {
    let bench: Bench;
    const open = (more: object = {}, patience = 30_000) => {
      const shared = createShared(
        { url: serverOf(name).url, prefix: "x y" },
        { node: "a:b", service: "c.d" },
        LEASE,
        patience,
      );
      bench = createBench("", createFake({ latency: 20 }), { open: shared.open, ...more });
      return bench;
    };

    it(`closes within seconds while ${name} does not respond, and goes on afterwards`, async () => {
      const { add, audit } = open();
      await add(urls(60));
      serverOf(name).signal("SIGSTOP");
      const began = performance.now();
      await audit.close();
      assert.ok(performance.now() - began < 8000);
      serverOf(name).signal("SIGCONT");
      const again = open();
      const { done } = await again.finished();
      assert.equal(done, 60);
      await again.audit.close();
    });

    it(`lets a list wait for ${name}, and then fail`, async () => {
      await serverOf(name).kill();
      const { add, audit, errors } = open({}, 1500);
      await assert.rejects(add(urls(3)), { code: "SEO_NETWORK" });
      assert.equal(errors.length, 1);
      await audit.close();
      const later = open();
      const added = later.add(urls(3));
      await serverOf(name).start();
      assert.equal(await added, 3);
      await later.finished();
      await later.audit.close();
    });
  }

  it("stops a batch whose log is damaged, until it is reset", async () => {
    const place = { url: serverOf("Redis").url, prefix: "damaged" };
    const open = () => createShared(place, { node: "node", service: "service" }, LEASE).open;
    const first = createBench("", createFake({ latency: 50 }), { open: open() });
    await first.add(urls(40));
    while (first.results.length === 0) await sleep(10);
    const client = new Redis(place.url);
    const [key = ""] = await client.keys("damaged:node-log:*:logs");
    for (const line of ["{", '{"from":"x","number":1,"entries":[{"strange":true}]}']) await client.rpush(key, line);
    client.disconnect();
    while (first.errors.length === 0) await sleep(10);
    const sentence =
      /^The batch "default" cannot continue: its log in the queue is damaged \(.*\)\. Send msg\.reset\.$/;
    assert.match(first.errors[0]?.message ?? "", sentence);
    await first.audit.close();
    const second = createBench("", createFake(), { open: open() });
    await assert.rejects(second.add(urls(1)), { message: sentence });
    await second.audit.reset();
    assert.equal(await second.add(urls(2)), 2);
    await second.finished();
    await second.audit.close();
  });

  it("never permits more than the rate in a minute", () => {
    for (const rate of [1, 7, 60, 600, 1200, 1201, 5000, 100_000]) {
      const { max, duration } = limitOf(rate);
      const most = max === 1 ? Math.floor(60_000 / duration) + 1 : (Math.floor(60_000 / duration) + 2) * max;
      assert.ok(most <= rate, `${most} of ${rate}`);
      assert.ok(most > rate * 0.9 || rate < 20, `${most} of ${rate}`);
    }
  });
});

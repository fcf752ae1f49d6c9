import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import pg from "pg";
import { root } from "../../../dev/nodered.js";
import type { Place } from "../../../src/audit/shared/driver.js";
import { fromServer } from "../../../src/audit/shared/faults.js";
import { checkClock } from "../../../src/audit/shared/postgres.js";
import { createShared, type SharedOptions, testQueue } from "../../../src/audit/shared/shared.js";
import { SeoError } from "../../../src/errors.js";
import { listen, tlsFile } from "../../support/faulty.js";
import { openLocally } from "../../support/local.js";
import { closeAfterEach, openFolder } from "../../support/opened.js";
import { type Engine, engines, LEASE, PASSWORD, type Server, startServer } from "../../support/servers.js";
import { createBench, createFake, type Fake, inQueue, urls } from "./fake.js";

const LEAVER = fileURLToPath(new URL("leaver.js", import.meta.url));

/** The result of testing a queue. */
async function said(...[place]: Parameters<typeof testQueue>): Promise<string> {
  try {
    return await testQueue(place);
  } catch (error) {
    assert.ok(error instanceof SeoError);
    return `${error.code}: ${error.message}`;
  }
}

describe("The queue that several machines share", () => {
  const servers = new Map<Engine, Server>();
  const use = closeAfterEach();

  before(async function () {
    for (const engine of engines) servers.set(engine, (await startServer(engine)) ?? this.skip());
  });
  after(() => Promise.all(Array.from(servers.values(), (server) => server.close())));
  const serverOf = (engine: Engine) => servers.get(engine) as Server;

  /** An audit in a queue. */
  async function open(place: Place, fake: Partial<Fake> = {}, more: Partial<SharedOptions> = {}, patience = 30_000) {
    const create = inQueue(createShared(place, { lease: LEASE, patience }), more);
    const bench = createBench("", createFake(fake), { create });
    await use(bench.audit);
    return bench;
  }

  it("says why the server cannot be reached", async () => {
    for (const scheme of ["redis", "rediss", "postgres"]) {
      const sentence = `SEO_NETWORK: The queue's server 127.0.0.1:1 cannot be reached: connection refused.`;
      assert.equal(await said({ url: `${scheme}://user:secret-word@127.0.0.1:1/0` }), sentence);
    }
    const silent = await use(listen(() => {}));
    const places = ["redis", "postgres"].map((scheme) => `${scheme}://user:secret-word@127.0.0.1:${silent.port}/0`);
    for (const text of await Promise.all(places.map((url) => said({ url }))))
      assert.match(text, /^SEO_NETWORK: The queue's server 127.0.0.1:\d+ cannot be reached: timed out\.$/);
    const closing = await use(listen(() => {}, { connected: (socket) => socket.destroy() }));
    const sentence = `SEO_NETWORK: The queue's server 127.0.0.1:${closing.port} cannot be reached: connection reset.`;
    assert.equal(await said({ url: `rediss://127.0.0.1:${closing.port}` }), sentence);
    // A connection to a proxy whose server is gone: nobody reads, and the connection is still open.
    const deaf = spawn("sh", ["-c", "exec <&-; echo deaf; sleep 60"]);
    await once(deaf.stdout, "data");
    deaf.stdin.write("x");
    const [cause] = await once(deaf.stdin, "error");
    deaf.kill();
    const { message } = fromServer(cause, new URL("redis://127.0.0.1:1"));
    assert.equal(message, "The queue's server 127.0.0.1:1 cannot be reached: connection closed.");
  });

  it("says that a password is required", async () => {
    for (const engine of engines) {
      const { port, url } = serverOf(engine);
      const begin = `SEO_CONFIG: The queue's server 127.0.0.1:${port} rejects the connection:`;
      const text = await said({ url: url.replace(`:${PASSWORD}`, "") });
      assert.equal(text, `${begin} it requires a password in the queue's URL.`);
    }
  });

  it("says what a PostgreSQL user may not do", async () => {
    const { port, url } = serverOf("PostgreSQL");
    const client = new pg.Client(url);
    await client.connect();
    for (const role of ["poor LOGIN", "nobody NOLOGIN"])
      await client.query(`CREATE ROLE ${role} PASSWORD '${PASSWORD}'`);
    await client.end();
    const begin = `SEO_CONFIG: The queue's server 127.0.0.1:${port} rejects the connection:`;
    const at = `:${PASSWORD}@127.0.0.1:${port}`;
    const own = "the user must be allowed to create a schema in the database";
    assert.equal(await said({ url: `postgres://poor${at}/postgres`, prefix: "new" }), `${begin} ${own}.`);
    assert.equal(await said({ url: `postgres://nobody${at}/postgres` }), `${begin} the user is not allowed to log in.`);
    assert.equal(await said({ url: `postgres://postgres${at}/none` }), `${begin} the database does not exist.`);
  });

  it("warns of a Redis that removes or loses jobs, and keeps BullMQ's warnings from the console", async () => {
    const { port, url } = serverOf("Redis");
    const client = new Redis(url);
    const { warn } = console;
    const printed: unknown[] = [];
    const warnings: string[] = [];
    console.warn = (text) => printed.push(text);
    const settings = [
      ["allkeys-lru", "yes"],
      ["noeviction", "no"],
      ["volatile-lru", "no"],
      ["noeviction", "yes"],
    ] as const;
    for (const [policy, appendonly] of settings) {
      await client.config("SET", "maxmemory-policy", policy, "appendonly", appendonly);
      const warn = (sentence: string) => warnings.push(sentence);
      const { audit, add, finished } = await open({ url, prefix: "policy" }, {}, { warn });
      await add(urls(1));
      await finished();
      await audit.close();
    }
    console.warn = warn;
    client.disconnect();
    const place = `the queue's server 127.0.0.1:${port}`;
    const removes = (policy: string) =>
      `If its memory is full, ${place} removes jobs, because its maxmemory-policy is ${policy}: set it to noeviction.`;
    const loses = `If it restarts, ${place} loses the last minutes or everything, because its appendonly is no: set it to yes.`;
    assert.deepEqual(warnings, [removes("allkeys-lru"), loses, `${removes("volatile-lru")} ${loses}`]);
    assert.deepEqual(printed, []);
  });

  it("says what a server that responds cannot do", async () => {
    const [redis, postgres] = [new Redis(serverOf("Redis").url), new pg.Client(serverOf("PostgreSQL").url)];
    await postgres.connect();
    const replies = (text: string) => redis.eval(`return redis.error_reply(${JSON.stringify(text)})`, 0);
    const raises = (code: string, text: string) =>
      postgres.query(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}', MESSAGE = '${text}'; END $$`);
    const readOnly = "it is read-only, as a replica is";
    const rows: [Engine, () => Promise<unknown>, reason: string, what?: string][] = [
      ["PostgreSQL", () => raises("57P03", "it is shutting down"), "it is not ready", "cannot be reached"],
      ["Redis", () => redis.set("a", "b"), "its memory is full"],
      ["Redis", () => redis.multi().set("a", "b").exec(), "its memory is full"],
      ["Redis", () => replies("MISCONF Errors writing to the AOF file: No space left"), "it cannot write to its disk"],
      ["PostgreSQL", () => raises("53100", "could not extend file"), "it cannot write to its disk"],
      ["PostgreSQL", () => raises("53200", "out of memory"), "its memory is full"],
      ["PostgreSQL", () => raises("53300", "connection slots are reserved"), "it has too many connections"],
      ["Redis", () => replies("READONLY You can't write against a read only replica."), readOnly],
      ["PostgreSQL", () => raises("25006", "cannot execute INSERT"), readOnly],
    ];
    await redis.config("SET", "maxmemory", "1");
    for (const [engine, fails, reason, what = "reports an error"] of rows) {
      const { url, port } = serverOf(engine);
      const error = await fails().catch((cause) => fromServer(cause, new URL(url)));
      assert.ok(error instanceof SeoError);
      assert.equal(error.code, "SEO_NETWORK");
      assert.equal(error.message, `The queue's server 127.0.0.1:${port} ${what}: ${reason}.`);
    }
    await redis.config("SET", "maxmemory", "0");
    redis.disconnect();
    await postgres.end();
  });

  it("needs Redis 6.2", async () => {
    const old = createServer((socket) => {
      socket.on("data", (data) => {
        const info = "redis_version:5.0.7\r\nloading:0\r\n";
        for (const name of String(data).match(/\binfo\b|\b(hello|client|auth|select)\b/gi) ?? [])
          socket.write(name.toLowerCase() === "info" ? `$${info.length}\r\n${info}\r\n` : "+OK\r\n");
      });
    });
    const { port } = await use(openLocally(old));
    const sentence = "SEO_CONFIG: The queue needs Redis 6.2 or later; the server is Redis 5.0.7.";
    assert.equal(await said({ url: `redis://127.0.0.1:${port}` }), sentence);
  });

  it("names the command that installs what is missing", async () => {
    const { path: folder } = await use(openFolder());
    mkdirSync(join(folder, "node_modules"));
    for (const name of ["entities", "undici", "zod", "secure-json-parse"])
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
    const command =
      /^SEO_CONFIG The package bullmq is not installed: run "npm install --save-exact bullmq@[\d.]+ (\w+)" in/;
    const lines = text.trim().split("\n");
    const drivers = lines.map((line) => command.exec(line)?.[1]);
    assert.deepEqual(drivers, ["ioredis", "pg"], text);
  });

  for (const engine of engines)
    it(`checks the certificate of ${engine} with TLS`, async function () {
      const server = await use((await startServer(engine, { tls: true })) ?? this.skip());
      const { port } = server;
      const url = server.url.replace("redis:", "rediss:");
      const tls = { ca: tlsFile("ca") };
      const begin = `SEO_CONFIG: The queue's server 127.0.0.1:${port} rejects the connection:`;
      const unknown = `${begin} TLS failed (UNABLE_TO_VERIFY_LEAF_SIGNATURE).`;
      assert.match(await said({ url, tls }), new RegExp(`^${engine} `));
      assert.equal(await said({ url, tls: {} }), unknown);
      if (engine === "Redis") {
        assert.equal(await said({ url }), unknown);
        assert.match(await said({ url: server.url, tls }), /^Redis /);
      } else {
        assert.equal(await said({ url }), `${begin} it requires TLS.`);
        assert.equal(await said({ url: `${url}?sslmode=verify-full` }), unknown);
        assert.match(await said({ url: `${url}?sslmode=verify-full`, tls }), /^PostgreSQL /);
      }
    });

  for (const engine of engines) {
    const openNode = (patience?: number) =>
      open({ url: serverOf(engine).url, prefix: "x y" }, { latency: 20 }, { node: "a:b", service: "c.d" }, patience);

    it(`closes within seconds while ${engine} does not respond, and continues later`, async () => {
      const { add, audit } = await openNode();
      await add(urls(60));
      serverOf(engine).signal("SIGSTOP");
      const began = performance.now();
      await audit.close();
      assert.ok(performance.now() - began < 15_000, "Node-RED waits 15 s for a node that does not close");
      serverOf(engine).signal("SIGCONT");
      const { done } = await (await openNode()).finished();
      assert.equal(done, 60);
    });

    it(`lets a list wait for ${engine}, and then fail`, async () => {
      await serverOf(engine).stop("SIGKILL");
      const { add, audit, errors } = await openNode(1500);
      await assert.rejects(add(urls(3)), { code: "SEO_NETWORK" });
      while (errors.length === 0) await sleep(10);
      assert.equal(errors.length, 1);
      await audit.close();
      const later = await openNode();
      const added = later.add(urls(3));
      await serverOf(engine).start();
      assert.equal(await added, 3);
      await later.finished();
    });
  }

  it("leaves nothing open if an audit is closed while its server is away", async () => {
    const leave = async (server: Server) => {
      const child = spawn(process.execPath, [LEAVER, server.url], { stdio: ["pipe", "pipe", "inherit"] });
      await once(child.stdout, "data");
      await server.stop("SIGKILL");
      child.stdin.end();
      // Timeouts that have begun may pass.
      const [code] = await Promise.race([once(child, "exit"), sleep(150_000, ["it does not end"], { ref: false })]);
      child.kill("SIGKILL");
      await server.start();
      assert.equal(code, 0);
    };
    await Promise.all(engines.map((engine) => leave(serverOf(engine))));
  });

  it("rejects clocks that differ from the server's by more than 2 s, but no slow response", () => {
    checkClock(9000, 1000, 10_000);
    checkClock(12_000, 9000, 10_000);
    for (const server of [6000, 15_000])
      assert.throws(() => checkClock(server, 9000, 10_000), { code: "SEO_CONFIG", message: /differ by [35] s\./ });
  });
});

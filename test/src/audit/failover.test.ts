import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import pg from "pg";
import type { Requests } from "../../../src/audit/requests.js";
import { connect } from "../../../src/audit/shared/server.js";
import { createShared } from "../../../src/audit/shared/shared.js";
import { closeAfterEach, openFolder } from "../../support/opened.js";
import { type Relay, startRelay } from "../../support/relay.js";
import { type Engine, engines, LEASE, PASSWORD, type Server, startServer } from "../../support/servers.js";
import { until } from "../../support/time.js";
import {
  type Bench,
  type BenchOptions,
  createBench,
  createFake,
  createManualClock,
  type FakeService,
  inQueue,
  urls,
} from "./fake.js";

const PAGES = 100;
/** More than an audit can request before a test has replaced the server, on the slowest machine. */
const MANY = 5000;
const MINUTE = 60_000;
/** Milliseconds for which a message waits. */
const PATIENCE = 10_000;

type Change = (run: (command: string) => Promise<unknown>) => Promise<unknown>;
const drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle' AND pid <> pg_backend_pid()";
const wrongPassword = "the user name or password in the queue's URL is wrong";
const grant: Change = (run) => run("ACL SETUSER default +@all");
const noRights = "the user must be allowed to use all commands on the keys with the queue's prefix";
/** Has a server reject the audit's user, and ends that. */
const rejections: Record<string, [engine: Engine, change: Change, back: Change, reason: string]> = {
  "that the password of Redis was changed": [
    "Redis",
    async (run) => {
      await run("CONFIG SET requirepass other-word");
      await run("CLIENT KILL TYPE normal");
    },
    (run) => run(`CONFIG SET requirepass ${PASSWORD}`),
    wrongPassword,
  ],
  "that the password of PostgreSQL was changed": [
    "PostgreSQL",
    async (run) => {
      await run("ALTER ROLE postgres PASSWORD 'other-word'");
      await run(drop);
    },
    (run) => run(`ALTER ROLE postgres PASSWORD '${PASSWORD}'`),
    wrongPassword,
  ],
  "that a Redis user lost its rights": ["Redis", (run) => run("ACL SETUSER default -@all +info"), grant, noRights],
  "that a Redis user lost the right to write": ["Redis", (run) => run("ACL SETUSER default -@write"), grant, noRights],
};

/** Removes all data of a server. */
const losses: Record<Engine, string> = { Redis: "FLUSHALL", PostgreSQL: "DROP SCHEMA seo_reports CASCADE" };
const loss =
  'The queue\'s server has lost data: send the unfinished lists ("default") again in a minute, with “Regenerate it” and a Maximum age.';
/** PostgreSQL can also end a command of a machine because it and the loss wait for each other. */
const isLost = ({ errors, progress }: Bench) =>
  errors.some(({ message }) => message === loss) && progress.at(-1)?.paused === loss;

describe("An audit in a queue whose server changes", () => {
  const use = closeAfterEach();
  let server: Server;
  let relay: Relay;
  let service: FakeService;
  let bench: Bench;
  let clock: ReturnType<typeof createManualClock>;
  /** Gets what the audit sends to its server. */
  let sent: (text: string) => void;
  /** Requests whose effect was looked for before they were sent. */
  let looked: number;

  beforeEach(() => {
    sent = () => {};
    looked = 0;
    clock = createManualClock();
  });

  /** Opens an audit that reaches its server through a relay. */
  async function open(engine: Engine, skip: () => never, options: BenchOptions = {}, lease = LEASE): Promise<void> {
    server = await use((await startServer(engine)) ?? skip());
    relay = await use(startRelay(server.port, (chunk) => sent(chunk.toString())));
    service = createFake({ latency: 50 });
    const url = server.url.replace(`:${server.port}`, `:${relay.port}`);
    function connectService(): Requests {
      const requests = service.connect();
      const request: Requests["request"] = (type, input, more = {}) => {
        if (more.intent) looked++;
        return requests.request(type, input, more);
      };
      return { ...requests, request };
    }
    const create = inQueue(createShared({ url }, { lease, patience: PATIENCE }));
    bench = createBench("", service, { connect: connectService, create, ...options });
    await use(bench.audit);
  }

  /** Adds a list, and waits for its first results. */
  async function begin(pages = PAGES): Promise<void> {
    await bench.add(urls(pages));
    await until(() => bench.results.length > 10);
  }

  /** Opens the audit of another machine, without a relay. */
  function openOther(options: BenchOptions = {}): Bench {
    const other = createBench("", service, { create: inQueue(createShared(server, { lease: LEASE })), ...options });
    void use(other.audit);
    return other;
  }

  async function clientOf({ url }: Server): Promise<Redis> {
    const client = new Redis(url);
    await use({ close: () => client.disconnect() });
    await client.config("SET", "masterauth", PASSWORD);
    return client;
  }

  /** Runs commands on a server with rights that no test takes away. */
  async function administer(engine: Engine): Promise<Parameters<Change>[0]> {
    if (engine === "PostgreSQL") {
      const client = new pg.Client(server.url);
      await client.connect();
      await use({ close: () => client.end() });
      return (command) => client.query(command);
    }
    const client = await clientOf(server);
    await client.call("ACL", "SETUSER", "admin", "on", "nopass", "+@all");
    await client.call("AUTH", "admin", "");
    return (command) => {
      const [name = "", ...rest] = command.split(" ");
      return client.call(name, ...rest);
    };
  }

  /** A replica of the audit's server that has all of its data. */
  async function replicate(skip: () => never): Promise<{ replica: Server; master: Redis; client: Redis }> {
    const replica = await use((await startServer("Redis")) ?? skip());
    const [master, client] = await Promise.all([server, replica].map(clientOf) as [Promise<Redis>, Promise<Redis>]);
    await master.config("SET", "repl-diskless-sync-delay", 0);
    await client.replicaof("127.0.0.1", server.port);
    await until(async () => (await client.info("replication")).includes("master_link_status:up"));
    return { replica, master, client };
  }

  /** Does something every so many milliseconds until the test ends. */
  function repeat(work: () => unknown, ms: number): void {
    const timer = setInterval(work, ms);
    void use({ close: () => clearInterval(timer) });
  }

  for (const engine of engines) {
    it(`continues over new connections if those to ${engine} are dead`, async function () {
      await open(engine, () => this.skip());
      await begin();
      relay.hang();
      await bench.finished();
      assert.equal(service.carriedOut.length, PAGES);
    });

    it(`looks for no request that it has not sent, because ${engine} did not respond to its note`, async function () {
      // The frozen machine keeps its lock meanwhile. Otherwise its pages may be given away before the log says what was not sent.
      await open(engine, () => this.skip(), {}, { lockDuration: 60_000, stalledInterval: 10_000 });
      await begin();
      await new Promise<void>((resolve) => {
        sent = (text) => {
          if (!text.includes('"type":"sent"')) return;
          relay.mute();
          resolve();
        };
      });
      sent = () => {};
      // Until the command has timed out, which Redis would get again over a new connection.
      await until(() => bench.errors.length > 0);
      relay.cut();
      relay.mend();
      await bench.finished();
      assert.deepEqual([service.carriedOut.length, looked], [PAGES, 0]);
    });

    it(`saves a list once, although ${engine} did not respond and others have finished it`, async function () {
      await open(engine, () => this.skip());
      const other = openOther();
      await Promise.all([bench, other].map((one) => one.add(["no page"], { batch: "first" })));
      sent = (text) => {
        if (text.includes("example.org")) relay.mute();
      };
      await assert.rejects(bench.add(urls(PAGES)), { code: "SEO_NETWORK" });
      sent = () => {};
      await other.finished();
      relay.cut();
      relay.mend();
      await until(() => bench.add(urls(1, PAGES + 1), { batch: "next" }).catch(() => 0));
      await other.finished("next");
      await sleep(2000);
      assert.equal(service.carriedOut.length, PAGES + 1);
    });

    it(`reports that ${engine} has lost its data on every machine, and accepts lists again`, async function () {
      await open(engine, () => this.skip(), { clock });
      const run = await administer(engine);
      await begin(MANY);
      const other = openOther({ clock });
      await until(() => other.progress.length > 0);
      // One machine has reported that the server cannot be reached.
      relay.cut();
      await until(() => bench.errors.length > 0);
      await until(() => run(losses[engine]).then(Boolean, () => false));
      relay.mend();
      await until(() => [bench, other].every(isLost));
      repeat(() => clock.pass(MINUTE), 100);
      await until(() => other.add(urls(3)).catch(() => 0));
      await until(() => bench.add(urls(3), { batch: "next" }).catch(() => 0));
      // A machine that stands by can miss the end of a batch if the next one has begun.
      for (const name of ["default", "next"]) await Promise.race([bench, other].map((one) => one.finished(name)));
      for (const { progress, errors } of [bench, other]) {
        assert.equal(progress.filter(({ total, finished }) => finished && total === MANY).length, 0);
        assert.equal(errors.filter(({ message }) => message === loss).length, 1);
      }
    });

    it(`continues with the data of another machine if ${engine} was emptied while it could not be reached`, async function () {
      await open(engine, () => this.skip(), { clock });
      const run = await administer(engine);
      await begin(MANY);
      const other = openOther({ clock });
      relay.cut();
      await until(() => other.results.length > 0);
      await until(() => run(losses[engine]).then(Boolean, () => false));
      await until(() => isLost(other));
      repeat(() => clock.pass(MINUTE), 100);
      await until(() => other.add(urls(3)).catch(() => 0));
      relay.mend();
      await until(() => bench.add(urls(3), { batch: "next" }).catch(() => 0));
      await bench.finished("next");
      assert.equal(bench.progress.filter(({ total, finished }) => finished && total === MANY).length, 0);
    });

    it(`reports a loss, and no end, if a batch is missing on ${engine}`, async function () {
      await open(engine, () => this.skip());
      await begin(MANY);
      const queue = (await use(connect(server))).queue("service");
      for (const id of await queue.getRanges(["wait"], 0, -1, true)) await queue.remove(id);
      await until(() => bench.errors.length > 0);
      const { length } = service.carriedOut;
      await sleep(500);
      assert.deepEqual([bench.errors.map(({ message }) => message), service.carriedOut.length], [[loss], length]);
      assert.equal(bench.progress.filter(({ finished }) => finished).length, 0);
    });

    it(`sends the progress at once when ${engine} cannot be reached, and when it can`, async function () {
      // Progress is sent at most every five seconds, which do not pass.
      await open(engine, () => this.skip(), { clock });
      await begin(MANY);
      relay.cut();
      await until(() => bench.progress.at(-1)?.paused);
      relay.mend();
      repeat(() => clock.now() < 4000 && clock.pass(2000), 2000);
      await until(() => bench.progress.at(-1)?.paused === false);
    });
  }

  it("continues with the new Redis after a failover", async function () {
    const skip = () => this.skip();
    await open("Redis", skip);
    const { replica, master } = await replicate(skip);
    await begin();
    relay.direct(replica.port);
    await master.call("FAILOVER", "TO", "127.0.0.1", String(replica.port));
    await bench.finished();
    assert.equal(service.carriedOut.length, PAGES);
    assert.match(await master.info("replication"), /^role:slave/m);
  });

  it("reports that the new Redis lacks the last data, and requests nothing more", async function () {
    const skip = () => this.skip();
    await open("Redis", skip);
    const { replica, master, client } = await replicate(skip);
    await begin(MANY);
    // Without the batch, it would seem that another machine has removed it.
    await master.set("written", "last");
    await master.wait(1, 0);
    await client.replicaof("NO", "ONE");
    const { length } = bench.results;
    await until(() => bench.results.length > length + 5);
    relay.direct(replica.port);
    relay.cut();
    relay.mend();
    const losses = () => bench.errors.filter(({ message }) => message.includes("has lost data"));
    await until(() => losses().length > 0);
    const { length: requested } = service.carriedOut;
    await sleep(500);
    assert.equal(service.carriedOut.length, requested);
    assert.ok(requested < MANY);
    assert.equal(losses().length, 1);
  });

  it("stays paused until PostgreSQL's full disk has room for more than a lock", async function () {
    const { path: disk } = await use(openFolder());
    if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m", "seo-audit", disk]).status !== 0) this.skip();
    await use({ close: () => execFileSync("umount", ["--lazy", disk]) });
    chmodSync(disk, 0o777);
    const space = join(disk, "space");
    const filler = join(disk, "filler");
    server = await use((await startServer("PostgreSQL")) ?? this.skip());
    execFileSync("install", process.getuid?.() === 0 ? ["-d", "-o", "postgres", space] : ["-d", space]);
    const run = await administer("PostgreSQL");
    await run(`CREATE TABLESPACE small LOCATION '${space}'`);
    await run("ALTER ROLE postgres SET default_tablespace = small");
    service = createFake({ latency: 20 });
    bench = openOther({ clock });
    const pages = 300;
    await begin(pages);
    assert.throws(() => {
      for (;;) writeFileSync(filler, Buffer.alloc(4096), { flag: "a" });
    }, /ENOSPC/);
    const { progress, errors } = bench;
    await until(() => progress.at(-1)?.paused);
    const { length } = progress;
    for (let probes = 0; probes < 10; probes++) {
      clock.pass(2000);
      await sleep(200);
    }
    assert.ok(progress.slice(length).every(({ paused }) => paused));
    assert.match(String(errors[0]?.message), /reports an error: it cannot write to its disk\.$/);
    rmSync(filler);
    repeat(() => clock.now() < MINUTE && clock.pass(2000), 200);
    const { created } = await bench.finished();
    assert.deepEqual([created, service.carriedOut.length, errors.length], [pages, pages, 1]);
  });

  for (const [what, [engine, change, back, reason]] of Object.entries(rejections))
    it(`reports once ${what}, and continues once it is undone`, async function () {
      await open(engine, () => this.skip(), { clock });
      const run = await administer(engine);
      await begin();
      // A connection that is in use stays open.
      while (!bench.errors.some(({ code }) => code === "SEO_CONFIG")) {
        await change(run);
        await sleep(200);
      }
      for (let minutes = 0; minutes < 8; minutes++) {
        await sleep(500);
        clock.pass(MINUTE);
      }
      const begins = `The queue's server 127.0.0.1:${relay.port} rejects the connection: `;
      // Connections that end are an outage until the server rejects another one.
      const rejected = bench.errors.filter(({ code }) => code !== "SEO_NETWORK");
      const reasons = rejected.map(({ code, message }) => [code, message]);
      assert.deepEqual(reasons, [["SEO_CONFIG", `${begins}${reason}.`]]);
      await back(run);
      repeat(() => clock.pass(MINUTE), 100);
      const { created } = await bench.finished();
      assert.deepEqual([created, service.carriedOut.length], [PAGES, PAGES]);
    });
});

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { createShared } from "../../../src/audit/shared/shared.js";
import { LEASE } from "../../support/fleet.js";
import { type Relay, startRelay } from "../../support/relay.js";
import { type Engine, engines, PASSWORD, type Server, startServer } from "../../support/servers.js";
import { type Bench, createBench, createFake, type FakeService, urls } from "./fake.js";

const PAGES = 100;
/** More than an audit can request before a test has replaced the server, on the slowest machine. */
const MANY = 5000;

describe("An audit in a queue whose server is replaced", () => {
  let closing: (() => unknown)[];
  let server: Server;
  let relay: Relay;
  let service: FakeService;
  let bench: Bench;

  beforeEach(() => {
    closing = [];
  });
  afterEach(async () => {
    for (const close of closing.reverse()) await close();
  });

  async function until(holds: () => unknown): Promise<void> {
    while (!(await holds())) await sleep(10);
  }

  /** Opens an audit that reaches its server through a relay. */
  async function open(engine: Engine, skip: () => never): Promise<void> {
    server = (await startServer(engine)) ?? skip();
    relay = await startRelay(server.port);
    service = createFake({ latency: 50 });
    const url = server.url.replace(`:${server.port}`, `:${relay.port}`);
    bench = createBench("", service, { open: createShared({ url }, { node: "node", service: "service" }, LEASE).open });
    closing.push(server.close, relay.stop, bench.audit.close);
  }

  async function begin(pages = PAGES): Promise<void> {
    await bench.add(urls(pages));
    await until(() => bench.results.length > 10);
  }

  async function clientOf({ url }: Server): Promise<Redis> {
    const client = new Redis(url);
    await client.config("SET", "masterauth", PASSWORD);
    closing.push(() => client.disconnect());
    return client;
  }

  /** A replica of the audit's server that has all of its data. */
  async function replicate(skip: () => never): Promise<{ replica: Server; master: Redis; client: Redis }> {
    const replica = (await startServer("Redis")) ?? skip();
    closing.push(replica.close);
    const [master, client] = await Promise.all([server, replica].map(clientOf) as [Promise<Redis>, Promise<Redis>]);
    await master.config("SET", "repl-diskless-sync-delay", 0);
    await client.replicaof("127.0.0.1", server.port);
    await until(async () => (await client.info("replication")).includes("master_link_status:up"));
    return { replica, master, client };
  }

  for (const engine of engines)
    it(`continues over new connections if those to ${engine} are dead`, async function () {
      await open(engine, () => this.skip());
      await begin();
      relay.hang();
      await bench.finished();
      assert.equal(service.carriedOut.length, PAGES);
    });

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
    await until(() => bench.errors.some(({ message }) => message.includes("has lost data")));
    const { length: requested } = service.carriedOut;
    await sleep(500);
    assert.equal(service.carriedOut.length, requested);
    assert.ok(requested < MANY);
  });
});

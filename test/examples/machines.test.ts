import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "../../sandbox/server.js";
import { type Broker, startBroker, startRelay } from "../support/broker.js";
import { describeExample } from "../support/examples.js";
import { type Machine, startMachine } from "../support/machines.js";
import type { FlowNode } from "../support/red.js";
import type { Seen } from "../support/standins.js";

describeExample("12 - More than one machine", ({ example, up, deploy, press, file, red, quiet, unavailable }) => {
  const pages = Array.from({ length: 12 }, (_, index) => `https://example.com/${index}`);
  let broker: Broker | undefined;
  let second: Machine | undefined;

  /** The second machine; there is one wherever there is a broker. */
  const other = (): Machine => {
    assert.ok(second);
    return second;
  };

  before(async function () {
    broker = await startBroker();
    if (!broker) this.skip();
    second = await startMachine(file("."), "second");
  });

  after(async () => {
    await second?.nodeRed.stop();
    await broker?.stop();
  });

  /** Deploys on both; the second may find the broker elsewhere. */
  async function deployBoth(url: string, urls: string[], tab = {}, elsewhere = broker?.url ?? ""): Promise<void> {
    const change = (node: FlowNode) => {
      const [payload] = (node.props ?? []) as { p: string; v: string }[];
      if (node.name === "submit URLs" && payload) payload.v = JSON.stringify(urls);
    };
    await deploy(url, { change, tab, env: { MQTT_URL: broker?.url ?? "" } });
    const env = { SEO_BASE_URL: url, SEO_API_KEY: "sandbox-key", MQTT_URL: elsewhere };
    await other().deploy(example, { change, tab, service: { retries: "0" }, env });
    for (const machine of [red(), other()]) await machine.logged("Connected to broker");
    // Subscribing has no line in the log.
    await sleep(200);
  }

  /** Deploys on both, and submits the pages on the first. */
  async function start(url: string, urls: string[], tab = {}): Promise<void> {
    await deployBoth(url, urls, tab);
    await red().inject("submit URLs");
  }

  const came = (count: number) => (seen: Seen) => seen.shown.filter(({ name }) => name === "result").length >= count;
  const byUrl = (results: unknown[] = []) =>
    (results as { id: string; url: string }[])
      .map(({ id: _, ...result }) => result)
      .sort((a, b) => pages.indexOf(a.url) - pages.indexOf(b.url));
  const stores = ({ requests }: Sandbox) => requests.filter(({ method }) => method === "POST").length;
  const stored = ({ reports }: Sandbox) =>
    pages.map((url, index) => {
      const report = reports.list({}).find((report) => report.url === `example.com/${index}`);
      return { url, report: report?.id, score: report?.score };
    });

  it("shares out the jobs, and returns every result", async () => {
    const sandbox = await up({ reports: 0, latency: 100 });
    await start(sandbox.url, pages, { IN_FLIGHT: 8 });
    const { result, ...rest } = await red().outputs(came(pages.length));
    assert.deepEqual([byUrl(result), rest], [stored(sandbox), {}]);
    assert.equal(sandbox.reports.list({}).length, pages.length);
    const { received } = await other().probe();
    assert.ok(received > 0, "The second machine had nothing to do.");
    quiet();
    assert.deepEqual(other().complaints(), []);
  });

  it("hands out nothing of an empty list", async () => {
    const { url, requests } = await up({ reports: 0 });
    await start(url, []);
    assert.deepEqual(await red().outputs(), {});
    assert.deepEqual(requests, []);
    quiet();
  });

  it("says that no broker is set", async () => {
    await deploy((await up({ reports: 0 })).url, { only: ({ type }) => !type.startsWith("mqtt") });
    const error = "Set the environment variable MQTT_URL, e.g. mqtt://localhost:1883.";
    assert.deepEqual(await press("submit URLs"), { error: [error] });
    quiet();
  });

  unavailable(async (url, { code, says }) => {
    await start(url, pages);
    const { result } = await red().outputs(came(pages.length));
    assert.deepEqual(
      byUrl(result).map(({ url }) => url),
      pages,
    );
    for (const one of result as { code: string; error: string }[]) {
      assert.equal(one.code, code);
      assert.match(one.error, says);
    }
  });

  it("loses and duplicates nothing if a connection breaks before the broker is heard", async () => {
    const relay = await startRelay(broker?.url ?? "");
    try {
      const sandbox = await up({ reports: 0, latency: 100, now: Date.now });
      await deployBoth(sandbox.url, pages, { OVERDUE_MINUTES: 0.05 }, relay.url);
      relay.deafen();
      await other().inject("submit URLs");
      while (stores(sandbox) < 2) await sleep(20);
      relay.cut();
      await sleep(3500);
      await other().inject("every minute");
      const { result } = await other().outputs(came(pages.length));
      assert.deepEqual(byUrl(result), stored(sandbox));
      assert.equal(sandbox.reports.list({}).length, pages.length);
    } finally {
      relay.stop();
    }
  });

  it("loses and duplicates nothing if a machine dies", async () => {
    const sandbox = await up({ reports: 0, latency: 600, now: Date.now });
    await start(sandbox.url, pages, { OVERDUE_MINUTES: 0.05 });
    // Each machine has four in flight.
    while (stores(sandbox) < 8) await sleep(20);
    other().nodeRed.process.kill("SIGKILL");
    await sleep(3500);
    await red().inject("every minute");
    const { result } = await red().outputs(came(pages.length));
    assert.deepEqual(byUrl(result), stored(sandbox));
    assert.equal(sandbox.reports.list({}).length, pages.length);
    quiet();
  });
});

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "../../sandbox/server.js";
import { deferred } from "../../src/turns.js";
import { batchEnded, describeExample } from "../support/examples.js";
import { type Machine, startMachine } from "../support/machines.js";
import { type Server, startServer } from "../support/servers.js";
import type { Seen } from "../support/standins.js";

describeExample("12 - More than one machine", ({ example, up, deploy, press, file, red, quiet, unavailable }) => {
  let redis: Server | undefined;
  let second: Machine | undefined;

  const other = () => (second as Machine).red();

  before(async function () {
    redis = await startServer("Redis");
    if (!redis) return this.skip();
    second = await startMachine(file("."), "second");
  });

  after(async () => {
    await second?.stop();
    await redis?.close();
  });

  /** Deploys the flow on both machines. */
  async function deployBoth(url: string, service: Record<string, string> = {}): Promise<void> {
    const env = { SEO_BASE_URL: url, SEO_API_KEY: "sandbox-key", SEO_QUEUE_URL: redis?.url ?? "" };
    await deploy(url, { env, service });
    await other().deploy(example, { service: { retries: "0", reconcile: "", ...service }, env });
  }

  const pages = JSON.parse(String(example.find(({ name }) => name === "audit the pages")?.payload)) as string[];
  /** The pages with reports, as many times as they have one. */
  const stored = ({ reports }: Sandbox) => reports.list({}).map(({ url }) => new URL(`https://${url}`).href);
  const shown = (name: string, { shown }: Seen) => shown.filter((one) => one.name === name);

  /** Waits until one machine has written the summary, and both have shown so many pages. */
  async function ended(count: number): Promise<Seen[]> {
    for (;;) {
      const seen = await Promise.all([red().probe(), other().probe()]);
      const total = (name: string) => seen.flatMap((one) => shown(name, one)).length;
      if (total("text") > 0 && total("page") >= count) return seen;
      await sleep(50);
    }
  }

  it("shares the pages, and writes one summary", async () => {
    const { promise, resolve } = deferred();
    let requests = 0;
    const sandbox = await up({
      reports: 0,
      // One machine has three requests in flight at most.
      async latency({ method }) {
        if (method === "POST" && ++requests > 3) resolve();
        if (method === "POST") await promise;
        return 0;
      },
    });
    await deployBoth(sandbox.url);
    await red().inject("audit the pages");
    const seen = await ended(pages.length);
    assert.deepEqual(stored(sandbox).sort(), [...pages].sort());
    for (const one of seen) assert.ok(shown("page", one).length > 0, "A machine had nothing to do.");
    assert.deepEqual(
      seen.flatMap((one) => shown("text", one)).map(({ value }) => value),
      [`Audit shared: ${pages.length} reports created, 0 regenerated, 0 recent enough, 0 failed, 0 uncertain.`],
    );
    quiet();
    assert.deepEqual(other().complaints(), []);
  });

  it("says that no queue is set", async () => {
    await deploy((await up({ reports: 0 })).url);
    const { error } = await press("audit the pages", (seen) => shown("error", seen).length > 0);
    assert.match(String(error?.at(-1)), /^The environment variable SEO_QUEUE_URL \(URL\) is not set\.$/);
    quiet();
  });

  unavailable(async (url, { says }) => {
    await deployBoth(url);
    await red().inject("audit the pages");
    const { error } = await red().outputs(batchEnded);
    assert.match(String(error), says);
    await red().inject("reset");
    await ended(0);
  });

  it("loses and duplicates nothing if a machine dies", async () => {
    const sandbox = await up({ reports: 0, latency: 600, now: Date.now });
    await deployBoth(sandbox.url, { reconcile: "30" });
    await red().inject("audit the pages");
    while (stored(sandbox).length < 6) await sleep(20);
    second?.kill("SIGKILL");
    const { text } = await red().outputs((seen) => shown("text", seen).length > 0);
    assert.match(String(text), new RegExp(`: ${pages.length} reports created`));
    assert.deepEqual(stored(sandbox).sort(), [...pages].sort());
    quiet();
  });
});

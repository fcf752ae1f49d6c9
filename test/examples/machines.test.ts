import assert from "node:assert/strict";
import type { Sandbox } from "../../sandbox/server.js";
import { batchEnded, describeExample } from "../support/examples.js";
import { type Machine, startMachine } from "../support/machines.js";
import type { FlowNode } from "../support/red.js";
import { type Server, startServer } from "../support/servers.js";
import type { Seen } from "../support/standins.js";
import { until } from "../support/time.js";

describeExample("12 - More than one machine", ({ example, up, deploy, file, red, unavailable }) => {
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

  const envFor = (url: string) => ({ SEO_BASE_URL: url, SEO_API_KEY: "sandbox-key", SEO_QUEUE_URL: redis?.url ?? "" });
  const deployFirst = (url: string, service: Record<string, string> = {}) => deploy(url, { env: envFor(url), service });
  const deploySecond = (url: string, service: Record<string, string> = {}) =>
    other().deploy(example, { service: { retries: "0", reconcile: "", ...service }, env: envFor(url) });

  const pages = JSON.parse(String(example.find(({ name }) => name === "audit the pages")?.payload)) as string[];
  /** The pages with reports, as many times as they have one. */
  const stored = ({ reports }: Sandbox) => reports.list({}).map(({ url }) => new URL(`https://${url}`).href);
  const shown = (name: string, { shown }: Seen) => shown.filter((one) => one.name === name);

  /** Waits until what both machines have shown is enough, and all messages are done. */
  async function both(isEnough: (count: (name: string) => number, seen: Seen[]) => boolean): Promise<Seen[]> {
    let seen: Seen[] = [];
    await until(async () => {
      seen = await Promise.all([red().probe(), other().probe()]);
      const isDone = seen.every(({ open }) => open["audit pages"] === undefined);
      return isDone && isEnough((name) => seen.flatMap((one) => shown(name, one)).length, seen);
    });
    return seen;
  }

  it("works on one machine, shows the progress on both, and writes one summary", async () => {
    const sandbox = await up({ reports: 0, latency: 1000 });
    await deployFirst(sandbox.url);
    await deploySecond(sandbox.url);
    await red().inject("audit the pages");
    const seen = await both((count) => count("text") > 0 && count("page") >= pages.length);
    assert.deepEqual(stored(sandbox).sort(), [...pages].sort());
    assert.deepEqual(seen.map((one) => shown("page", one).length).sort(), [0, pages.length].sort());
    for (const one of seen) assert.ok(shown("progress", one).length > 0, "A machine shows no progress.");
    const texts = seen.flatMap((one) => shown("text", one)).map(({ value }) => value);
    const text = `Audit shared: ${pages.length} reports created, 0 regenerated, 0 recent enough, 0 failed, 0 uncertain.`;
    assert.deepEqual(texts, [text]);
    assert.deepEqual(other().complaints(), []);
  });

  unavailable(async (url, { says }) => {
    await deployFirst(url);
    await deploySecond(url);
    await red().inject("audit the pages");
    // The machine that leads reports the error.
    const seen = await both((count, seen) => count("error") > 0 && seen.every(batchEnded));
    for (const { value } of seen.flatMap((one) => shown("error", one))) assert.match(String(value), says);
    const { id } = example.find(({ type }) => type === "seo-report-audit") as FlowNode;
    await red().ask("POST", "/seo-report-audit/control", { node: id, batch: "shared", do: "reset" });
    await both((count) => count("text") > 0);
  });
});

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createFaults, createLatency } from "../../sandbox/faults.js";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.js";

const REPORTS = "/api/v1/reports";
const HEADERS = { accept: "application/json", authorization: "Bearer sandbox-key" };

describe("the sandbox's injected errors", () => {
  let sandbox: Sandbox;

  async function start(options: SandboxOptions): Promise<void> {
    await sandbox?.close();
    sandbox = await startSandbox(options);
  }

  const send = (method: string, path: string, form?: Record<string, string>) =>
    fetch(sandbox.url + path, { method, headers: HEADERS, body: form ? new URLSearchParams(form) : null });
  const store = (url: string) => send("POST", REPORTS, { url });
  const total = () => sandbox.reports.list({}).length;

  afterEach(() => sandbox?.close());

  it("rejects requests above the rate limit before they take effect", async () => {
    await start({ rateLimit: 2 });
    assert.equal((await send("GET", REPORTS)).headers.get("x-ratelimit-remaining"), "1");
    assert.equal((await send("GET", REPORTS)).status, 200);
    const response = await store("https://example.com");
    const { status, headers } = response;
    assert.deepEqual([status, await response.json()], [429, { message: "Too Many Attempts." }]);
    assert.deepEqual([headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")], ["2", "0"]);
    const wait = Number(headers.get("retry-after"));
    assert.ok(wait > 50 && wait <= 60, `${wait} s`);
    assert.ok(Math.abs(Number(headers.get("x-ratelimit-reset")) - Date.now() / 1000 - wait) < 2);
    assert.equal(total(), 36);
  });

  it("responds after the latency, when the request has taken effect", async () => {
    await start({ latency: ({ method }) => (method === "POST" ? 1000 : 0) });
    const before = performance.now();
    let responded = false;
    const storing = store("https://example.com").finally(() => {
      responded = true;
    });
    while (sandbox.requests.length === 0) await sleep(5);
    const shown = await send("GET", `${REPORTS}/37`);
    assert.equal(shown.status, 200);
    assert.ok(Math.abs(Date.parse(String(shown.headers.get("date"))) - Date.now()) < 5000);
    assert.ok(!responded, "the show did not wait for the store");
    assert.equal((await storing).status, 201);
    assert.ok(performance.now() - before >= 999);
  });

  it("takes the latency from the range for the kind of request", () => {
    const latency = createLatency([10, 19], [100, 109]);
    const times = (method: string, body: string) =>
      Array.from({ length: 100 }, () => latency({ method, path: REPORTS, body }));
    const span = (all: number[]) => [Math.min(...all), Math.max(...all)];
    assert.deepEqual(span(times("GET", "")), [10, 19]);
    assert.deepEqual(span(times("PUT", "privacy=1&update=0")), [10, 19]);
    assert.deepEqual(span(times("POST", "url=example.com")), [100, 109]);
    assert.deepEqual(span(times("PATCH", "privacy=1&update=1")), [100, 109]);
  });

  it("fails a share of the requests, the same in every run", async () => {
    const run = async () => {
      await start({ fail: 20, reports: 0 });
      const counts: Record<string, number> = {};
      for (let i = 0; i < 300; i++) {
        const before = total();
        const response = await store(`https://shop.example.com/kitchen/${i}`).catch(() => undefined);
        const outcome = `${response?.status ?? "closed"} ${total() > before ? "applied" : "not applied"}`;
        counts[outcome] = (counts[outcome] ?? 0) + 1;
        if (response?.status === 429 || response?.status === 503)
          assert.ok(Number(response.headers.get("retry-after")) > 0);
      }
      return counts;
    };
    const counts = await run();
    assert.deepEqual(await run(), counts);
    const { "201 applied": sound = 0, ...failed } = counts;
    assert.deepEqual(Object.keys(failed).sort(), [
      "429 not applied",
      "500 not applied",
      "502 applied",
      "502 not applied",
      "503 not applied",
      "closed applied",
      "closed not applied",
    ]);
    // 20 % of the requests, and 20 % of the pages of the rest.
    assert.ok(sound > 300 * 0.54 && sound < 300 * 0.74, `${sound} of 300`);
  });

  it("fails an identical request differently when it is retried", () => {
    const { requestFault } = createFaults(50);
    const sound = { status: 200, body: {} };
    const outcomes = Array.from({ length: 40 }, () => requestFault("GET /")(() => sound) === sound);
    assert.ok(outcomes.includes(true) && outcomes.includes(false));
  });

  it("never fetches a page that fails, and keeps its report as it was", async () => {
    await start({ fail: 10 });
    const { pageError } = createFaults(10);
    const failing = sandbox.reports.list({}).filter(({ url }) => pageError(url));
    assert.ok(failing.length > 0 && failing.length < 10, `${failing.length} of 36`);
    for (const { id, url, generated_at } of failing) {
      const statuses = new Set<number>();
      for (let i = 0; i < 5; i++) {
        const regenerated = await send("PUT", `${REPORTS}/${id}`, { update: "1" }).catch(() => undefined);
        const stored = await store(`https://www.${url}`).catch(() => undefined);
        for (const response of [regenerated, stored]) statuses.add(response?.status ?? 0);
      }
      assert.ok(statuses.has(500) && !statuses.has(200) && !statuses.has(201), `${[...statuses]}`);
      assert.equal(sandbox.reports.get(id)?.generated_at, generated_at);
    }
    assert.equal(total(), 36);
    const [changed] = failing;
    for (let i = 0; i < 10; i++)
      await send("PUT", `${REPORTS}/${changed?.id}`, { privacy: "1" }).catch(() => undefined);
    assert.equal(sandbox.reports.get(changed?.id ?? 0)?.privacy, 1, "other changes do not fetch the page");
  });

  it("shows a retry and an error to whoever submits the sitemap with npm start", async () => {
    await start({ fail: 5 });
    const sitemap = await (await fetch(`${sandbox.url}/sitemap.xml`)).text();
    const counts: Record<number, number> = {};
    for (const [, url = ""] of sitemap.matchAll(/<loc>(.*)<\/loc>/g)) {
      const { status } = await store(url);
      counts[status] = (counts[status] ?? 0) + 1;
    }
    assert.deepEqual(counts, { 201: 10, 429: 1, 500: 1 });
    assert.equal((await store("https://example.com")).status, 201, "the first example succeeds");
  });
});

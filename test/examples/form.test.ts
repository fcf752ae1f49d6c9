import assert from "node:assert/strict";
import { creates, type Deployment, describeExample, json, recordOf } from "../support/examples.js";
import type { FlowNode } from "../support/red.js";

const HOSTILE = '<script>alert("1")</script>';

describeExample("15 - Audit my page", ({ up, standIn, deploy, page: get, red, unavailable }) => {
  /** Lets every submission pass, unless a test is about the limit. */
  const unlimited = (node: FlowNode) => {
    if (node.type === "delay") Object.assign(node, { nbRateUnits: "1", rate: "1000000" });
  };
  const start = (url: string, more: Partial<Deployment> = {}) => deploy(url, { change: unlimited, ...more });

  async function read(init?: RequestInit) {
    const { status, headers, text: page } = await get("seo-audit", init);
    return {
      status,
      retry: headers.get("retry-after"),
      problem: /<p role="alert">(.*)<\/p>/.exec(page)?.[1]?.replaceAll("&#x2F;", "/").replaceAll("&quot;", '"'),
      score: /<p class="score">(.*)<\/p>/.exec(page)?.[1],
      failed: [...page.matchAll(/<li>(.*)<\/li>/g)].map(([, text]) => text),
      page,
    };
  }

  const submit = (...fields: [string, string][]) => read({ method: "POST", body: new URLSearchParams(fields) });

  it("serves a form", async () => {
    await start((await up()).url);
    const { status, page, problem, score } = await read();
    assert.deepEqual([status, problem, score], [200, undefined, undefined]);
    assert.match(page, /<form method="post" action="seo-audit">/);
  });

  it("shows the score and the failed checks", async () => {
    const sandbox = await up({ reports: 0 });
    await start(sandbox.url);
    const { status, score, failed, problem } = await submit(["url", "https://example.com/"]);
    const [report = assert.fail()] = sandbox.reports.list({});
    assert.deepEqual([status, score, problem, report.privacy], [200, String(report.score), undefined, 1]);
    const checks = Object.entries((await recordOf(sandbox, report.id)).results) as [
      string,
      { passed?: boolean; importance?: string },
    ][];
    const bad = checks.filter(([, { passed }]) => passed === false);
    const named = bad.map(([name, { importance }]) => `${name.replaceAll("_", " ")} (${importance})`);
    assert.deepEqual(failed, named);
    assert.ok(failed.length > 0);
  });

  it("says that no check failed, or that there is no score", async () => {
    for (const [report, score] of [
      [{ id: 1, url: "example.com", score: 100, results: { title: { passed: true } } }, "100"],
      [{ id: 1, url: "example.com", score: null, results: null }, "no score"],
      [{ id: 1, url: "example.com" }, "no score"],
    ] as const) {
      await start((await standIn(creates(report))).url);
      const result = await submit(["url", "https://example.com/"]);
      assert.deepEqual([result.status, result.score, result.failed], [200, score, []]);
      assert.match(result.page, /No check failed/);
    }
  });

  it("shows what a report or a visitor writes as text only", async () => {
    const results = { [HOSTILE]: { passed: false, importance: HOSTILE } };
    const report = { id: 1, url: HOSTILE, score: HOSTILE, generated_at: HOSTILE, results };
    await start((await standIn(creates(report))).url);
    const { page } = await submit(["url", `https://example.com/"><b>`]);
    assert.ok(page.split("&lt;script&gt;").length > 4, page);
    assert.match(page, /value="https:&#x2F;&#x2F;example.com&#x2F;&quot;&gt;&lt;b&gt;"/);
  });

  it("rejects what is not the URL of a web page, with a sentence", async () => {
    const { url, reports } = await up({ reports: 0 });
    await start(url);
    for (const fields of [
      [],
      [["url", ""]],
      [["url", "not a URL"]],
      [["url", "ftp://example.com/"]],
      [["url", "javascript:alert(1)"]],
      [["url", "file:///etc/passwd"]],
      [["url[]", "https://example.com/"]],
      [
        ["url", "https://example.com/"],
        ["url", "https://example.com/"],
      ],
    ] as [string, string][][]) {
      const { status, problem, score } = await submit(...fields);
      assert.deepEqual([status, score], [400, undefined], JSON.stringify(fields));
      assert.match(problem ?? "", /url/i, JSON.stringify(fields));
    }
    assert.deepEqual(reports.list({}), []);
  });

  it("shows why the service rejects a page, and no details of a rejected account", async () => {
    const url = ["The page does not respond.", "Is it online?"];
    for (const [errors, expected] of [
      [{ url }, [400, `This page cannot be audited: ${url.join(" ")}`]],
      [{ plan: ["The quota is exhausted."] }, [502, "The page cannot be audited now. Try again later."]],
    ] as const) {
      const service = await standIn(({ method }) => (method === "GET" ? json(200, []) : json(422, { errors })));
      await start(service.url);
      const { status, problem } = await submit(["url", "https://example.com/"]);
      assert.deepEqual([status, problem], expected);
    }
  });

  it("shows an address in its own letters", async () => {
    for (const [address, shown] of [
      ["xn--bcher-kva.example/gr%C3%B6%C3%9Fe?q=%C3%A4%26%2F", "bücher.example/größe?q=ä%26%2F"],
      ["https://xn--bcher-kva.example:8080/", "https://xn--bcher-kva.example:8080/"],
      ["https://xn--bcher-kva.example/%FF", "https://xn--bcher-kva.example/%FF"],
    ] as const) {
      await start((await standIn(creates({ id: 1, url: address, score: 0 }))).url);
      const { page, score } = await submit(["url", "https://example.com/"]);
      const heading = /<h2>(.*)<\/h2>/.exec(page)?.[1]?.replaceAll("&#x2F;", "/").replaceAll("&#x3D;", "=");
      assert.deepEqual([heading, score], [shown, "0"]);
    }
  });

  it("lets no other field of the form through", async () => {
    const { url, reports } = await up({ reports: 0 });
    await start(url);
    await submit(["url", "https://example.com/"], ["privacy", "0"], ["existing", "create"], ["password", "secret"]);
    const kept = reports.list({}).map(({ privacy, password }) => [privacy, password]);
    assert.deepEqual(kept, [[1, null]]);
  });

  it("creates one report for a double submit, at once or later", async () => {
    const { url, reports } = await up({ reports: 0, latency: 100, now: Date.now });
    await start(url, { service: { reconcile: "300" } });
    const twice = [submit(["url", "https://example.com/"]), submit(["url", "https://example.com/"])];
    const scores = (await Promise.all(twice)).map(({ status, score }) => [status, score]);
    assert.deepEqual(scores[0], scores[1]);
    const shown = [await submit(["url", "example.com"])].map(({ status, score }) => [status, score]);
    assert.deepEqual(shown, [scores[0]]);
    assert.equal(reports.list({}).length, 1);
  });

  it("accepts one page in six seconds, and gives the others a page too", async () => {
    const { url, reports } = await up({ reports: 0 });
    await deploy(url);
    const all = await Promise.all(["a", "b", "c"].map((page) => submit(["url", `https://example.com/${page}`])));
    const rejected = all.filter(({ status }) => status === 429);
    assert.equal(rejected.length, 2);
    for (const { problem, retry } of rejected)
      assert.deepEqual([problem, retry], ["Another page was submitted a moment ago. Try again in a few seconds.", "6"]);
    assert.equal(reports.list({}).length, 1);
  });

  it("returns 504 if the analysis takes too long", async () => {
    await start((await up({ reports: 0, latency: 2000 })).url, { service: { timeout: "1" } });
    const { status, problem } = await submit(["url", "https://example.com/"]);
    assert.deepEqual([status, problem], [504, "The page cannot be audited now. Try again later."]);
    assert.match(String((await red().outputs()).details), /did not respond within 1 s/);
  });

  unavailable(async (url, { code, says }) => {
    await start(url);
    const { status, problem } = await submit(["url", "https://example.com/"]);
    const expected = code === "SEO_RATE_LIMITED" ? 503 : 502;
    assert.deepEqual([status, problem], [expected, "The page cannot be audited now. Try again later."]);
    assert.match(String((await red().outputs()).details), says);
  });
});

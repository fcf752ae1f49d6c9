import assert from "node:assert/strict";
import { scoreOf } from "../../sandbox/pages.js";
import { creates, describeExample } from "../support/examples.js";

describeExample("06 - Deploy gate", ({ up, standIn, deploy, page: get, red, unavailable }) => {
  const page = { url: "https://example.com/" };

  async function post(body: object): Promise<[status: number, answer: Record<string, unknown>, retry: string | null]> {
    const headers = { "content-type": "application/json" };
    const answer = await get("seo-gate", { method: "POST", headers, body: JSON.stringify(body) });
    return [answer.status, JSON.parse(answer.text), answer.headers.get("retry-after")];
  }

  it("returns 200 or 422, with the score", async () => {
    const { url } = await up({ reports: 0 });
    for (const [generation, above, status] of [
      [0, 0, 200],
      [1, 1, 422],
    ] as const) {
      const score = scoreOf("example.com", generation);
      const minimum = score + above;
      await deploy(url, { tab: { MINIMUM: minimum, CHECKS: "" } });
      const verdict = { passed: status === 200, score, minimum, failed: [], report: 1, url: "example.com" };
      assert.deepEqual(await post(page), [status, verdict, null]);
      assert.deepEqual(await red().outputs(), { verdict: [verdict] });
    }
  });

  it("regenerates the report that the page has, instead of creating a second one", async () => {
    const { url, reports } = await up({ reports: 0 });
    reports.store(page);
    await deploy(url);
    await post(page);
    const generations = reports.list({}).map(({ generation }) => generation);
    assert.deepEqual(generations, [1]);
  });

  it("returns 422 for a report without a score", async () => {
    await deploy((await standIn(creates({ id: 5, url: "example.com", score: null }))).url, { tab: { CHECKS: "" } });
    const verdict = { passed: false, score: null, minimum: 70, failed: [], report: 5, url: "example.com" };
    assert.deepEqual(await post(page), [422, verdict, null]);
  });

  it("returns 422 if a named check failed or is missing, whatever the score is", async () => {
    const results: Record<string, unknown> = {
      title: { passed: true },
      noindex: { passed: 1 },
      headings: { passed: false, errors: { missing: null } },
      favicon: { passed: false },
      note: "no check",
    };
    const report = { id: 5, url: "example.com", score: 90, results };
    const service = await standIn(creates(report));
    for (const [checks, failed] of [
      ["title", []],
      [" title,noindex, ", []],
      ["title, headings", ["headings"]],
      ["note,toString,headings", ["note (not in the report)", "toString (not in the report)", "headings"]],
    ] as const) {
      await deploy(service.url, { tab: { MINIMUM: 0, CHECKS: checks } });
      const passed = failed.length === 0;
      const verdict = { passed, score: 90, minimum: 0, failed, report: 5, url: "example.com" };
      assert.deepEqual(await post(page), [passed ? 200 : 422, verdict, null]);
      await red().outputs();
    }
  });

  it("passes a report without a score if only checks count", async () => {
    const service = await standIn(creates({ id: 5, url: "example.com", results: { title: { passed: true } } }));
    await deploy(service.url, { tab: { MINIMUM: 0, CHECKS: "title" } });
    assert.equal((await post(page))[0], 200);
  });

  it("names checks that the sandbox's reports have", async () => {
    await deploy((await up({ reports: 0 })).url);
    const [, { failed }] = await post(page);
    assert.ok(Array.isArray(failed) && !/not in the report/.test(String(failed)));
  });

  it("returns 400 to a request without a URL, and to an invalid URL", async () => {
    await deploy((await up()).url);
    for (const body of [{}, { url: "not a URL" }]) {
      const [status, answer] = await post(body);
      assert.deepEqual([status, answer.code], [400, "SEO_INPUT"]);
    }
    await red().outputs();
  });

  it("returns 504 if the service is too slow", async () => {
    await deploy((await up({ reports: 0, latency: 2000 })).url, { service: { timeout: "1" } });
    const [status, { passed, code }] = await post(page);
    assert.deepEqual([status, passed, code], [504, false, "SEO_TIMEOUT"]);
  });

  unavailable(async (url, { code, says }) => {
    await deploy(url);
    const [status, answer, retry] = await post(page);
    const expected = code === "SEO_RATE_LIMITED" ? [503, "3600"] : [502, null];
    assert.deepEqual([status, retry, answer.passed, answer.code], [...expected, false, code]);
    assert.match(String(answer.error), says);
    await red().outputs();
  });
});

import assert from "node:assert/strict";
import { describeExample, json } from "../support/examples.js";

describeExample("06 - Deploy gate", ({ up, standIn, deploy, red, quiet, unavailable }) => {
  const page = { url: "https://example.com/" };
  const tab = { TIME_LIMIT: 30 };

  async function post(body: object): Promise<[status: number, answer: Record<string, unknown>, retry: string | null]> {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${red().url}/seo-gate`, { method: "POST", headers, body: JSON.stringify(body) });
    return [answer.status, (await answer.json()) as Record<string, unknown>, answer.headers.get("retry-after")];
  }

  /** The time limit of a request keeps running after the response. */
  const outputs = () => red().outputs(undefined, { except: ["time limit"] });

  it("returns 200 or 422, with the score", async () => {
    const { url } = await up({ reports: 0 });
    await deploy(url, { tab: { ...tab, MINIMUM: 0 } });
    const [, { score }] = await post(page);
    await outputs();
    for (const [minimum, status] of [
      [score, 200],
      [Number(score) + 1, 422],
    ] as [number, number][]) {
      await deploy(url, { tab: { ...tab, MINIMUM: minimum } });
      const [actual, { report, ...verdict }] = await post(page);
      assert.deepEqual([actual, verdict], [status, { passed: status === 200, score, minimum, url: "example.com" }]);
      assert.equal(typeof report, "number");
      assert.deepEqual(await outputs(), {});
    }
    quiet();
  });

  it("shows the verdict of a try", async () => {
    const { url, reports } = await up({ reports: 0 });
    await deploy(url, { tab: { ...tab, MINIMUM: 0 } });
    await red().inject("try it");
    const { result } = await outputs();
    const [report] = reports.list({});
    assert.deepEqual(result, [{ passed: true, score: report?.score, minimum: 0, report: 1, url: "example.com" }]);
    quiet();
  });

  it("waits for a score", async () => {
    let shown = 0;
    const answer = () => json(200, { data: { id: 5, url: "example.com", score: shown++ < 2 ? null : 90 } });
    const change = (node: { name?: string; timeout?: unknown }) => {
      if (node.name === "try again in 5 s") node.timeout = "0.05";
    };
    await deploy((await standIn(answer)).url, { tab, change });
    const verdict = { passed: true, score: 90, minimum: 70, report: 5, url: "example.com" };
    assert.deepEqual(await post(page), [200, verdict, null]);
  });

  it("returns 400 to a request without a URL, and to an invalid URL", async () => {
    await deploy((await up()).url, { tab });
    for (const [body, code] of [
      [{}, "SEO_INPUT"],
      [{ url: "not a URL" }, "SEO_REJECTED"],
    ] as const) {
      const [status, answer] = await post(body);
      assert.deepEqual([status, answer.code], [400, code]);
    }
    await outputs();
    quiet();
  });

  it("returns 504 at the time limit, and shows the verdict that came too late", async () => {
    await deploy((await up({ reports: 0, latency: 800 })).url, { tab: { TIME_LIMIT: 1 } });
    const [status, { passed, error }] = await post(page);
    assert.deepEqual([status, passed, error], [504, false, "The report was not ready within the time limit."]);
    const { "after the time limit": late = [], ...rest } = await red().outputs();
    assert.deepEqual([late.length, rest], [1, {}]);
    quiet();
  });

  unavailable(async (url, { code, says }) => {
    await deploy(url, { tab });
    const [status, answer, retry] = await post(page);
    const expected = code === "SEO_RATE_LIMITED" ? [503, "3600"] : [502, null];
    assert.deepEqual([status, retry, answer.passed, answer.code], [...expected, false, code]);
    assert.match(String(answer.error), says);
    await outputs();
  });
});

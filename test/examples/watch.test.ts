import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import type { Report } from "../../sandbox/reports.js";
import { describeExample, json } from "../support/examples.js";

const TODAY = new Date().toISOString().slice(0, 10);
const PROJECT = "example.com";
const BUTTON = "every day";
const COMPARE = "now";
const word = (score: number) => (score >= 80 ? "good" : score >= 50 ? "decent" : "bad");

describeExample("07 - Watch", ({ up, standIn, deploy, example, press, quiet, unavailable }) => {
  /** Deploys the flow with a chat; the function returns the texts since the last call. */
  async function watch(url: string): Promise<() => string[]> {
    const chat = await standIn(() => ({ body: "ok" }));
    await deploy(url, { env: { SLACK_WEBHOOK_URL: chat.url }, tab: { PROJECT } });
    return () => chat.asked.splice(0).map(({ body }) => (JSON.parse(body) as { text: string }).text);
  }

  it("regenerates the project's reports, and posts what got worse", async () => {
    const { url, reports } = await up();
    const texts = await watch(url);
    const pages = reports.list({ project: PROJECT }) as Report[];
    const [worse] = pages as [Report];
    for (const page of pages) page.score = page === worse ? 100 : 0;
    assert.deepEqual(await press(COMPARE), {});
    assert.deepEqual(await press(BUTTON), {});
    assert.deepEqual(await press(COMPARE), { response: ["200: ok"] });
    assert.ok(pages.every(({ id }) => (reports.get(id)?.generation ?? 0) > 0));
    const now = `${word(worse.score)} (${worse.score})`;
    assert.deepEqual(texts(), [`Dropped from good (100) to ${now} on ${TODAY}: https://${worse.url}`]);
    quiet();
  });

  it("saves the scores by itself when it is deployed", async () => {
    const record = { id: 1, url: "example.com", score: 90, result: "good" };
    const service = await standIn(() => json(200, { data: [record] }));
    const interval = example.find(({ type }) => type === "seo-report-changes")?.interval;
    const chat = await standIn(() => ({ body: "ok" }));
    await deploy(service.url, {
      env: { SLACK_WEBHOOK_URL: chat.url },
      change(node) {
        if (node.type === "seo-report-changes") node.interval = interval;
      },
    });
    while (service.asked.length === 0) await late(20);
    record.score = 40;
    assert.deepEqual(await press(COMPARE), { response: ["200: ok"] });
    assert.equal(chat.asked.length, 1);
    quiet();
  });

  it("posts a worse result, and a loss of five points, even in small steps", async () => {
    const record = { id: 1, url: "https://example.com/", score: 84, result: "good" };
    const texts = await watch((await standIn(() => json(200, { data: [record] }))).url);
    for (const [score, result] of [
      [84, "good"],
      [80, "good"],
      [79, "good"],
      [75, "good"],
      [74, "decent"],
      [90, "good"],
    ] as const) {
      Object.assign(record, { score, result });
      await press(COMPARE);
    }
    const post = (drop: string) => `Dropped from ${drop} on ${TODAY}: https://example.com/`;
    assert.deepEqual(texts(), [post("good (84) to good (79)"), post("good (79) to decent (74)")]);
    quiet();
  });

  it("compares results that are scores, as older services return them", async () => {
    let result: unknown = 90;
    const texts = await watch((await standIn(() => json(200, { data: [{ id: 1, url: "example.com", result }] }))).url);
    await press(COMPARE);
    for (result of [95, "70"]) await press(COMPARE);
    assert.deepEqual(texts(), [`Dropped from 95 to 70 on ${TODAY}: https://example.com`]);
    quiet();
  });

  it("goes on after a report that cannot be regenerated", async () => {
    const score = (id: number) => ({ id, url: `${id}.example`, score: 90 - id, result: "good" });
    const service = await standIn(({ method, path }) =>
      method === "GET"
        ? json(200, { data: [score(1), score(2)] })
        : path.endsWith("1")
          ? json(200, { data: score(1) })
          : json(404, { message: "Gone." }),
    );
    const texts = await watch(service.url);
    await press(COMPARE);
    const { error: [text] = [], ...rest } = await press(BUTTON);
    assert.match(String(text), /^regenerate: .*404/);
    assert.deepEqual([rest, texts()], [{}, []]);
    assert.deepEqual(
      service.asked.filter(({ method }) => method === "PUT").map(({ path }) => path.slice(-1)),
      ["1", "2"],
    );
    quiet();
  });

  it("posts that there are no reports", async () => {
    const texts = await watch((await up({ reports: 0 })).url);
    await press(BUTTON);
    assert.deepEqual(texts(), [`The SEO watch failed: There are no reports in the project ${PROJECT}.`]);
    quiet();
  });

  it("shows what the chat rejects, or that it cannot be reached", async () => {
    const { url } = await up({ reports: 0 });
    for (const [hook, output, text] of [
      [(await standIn(() => ({ status: 404, body: "no_service" }))).url, "response", /^404: no_service$/],
      ["http://127.0.0.1:1", "error", /^post: .*ECONNREFUSED/],
    ] as const) {
      await deploy(url, { env: { SLACK_WEBHOOK_URL: hook }, tab: { PROJECT } });
      const { [output]: [shown] = [], ...rest } = await press(BUTTON);
      assert.match(String(shown), text);
      assert.deepEqual(rest, {});
    }
    quiet();
  });

  it("shows the message if no chat is set", async () => {
    await deploy("http://127.0.0.1:1");
    const { "no webhook set": [text] = [], ...rest } = await press(COMPARE);
    assert.match(String(text), /^The SEO watch failed: /);
    assert.deepEqual(rest, {});
    quiet();
  });

  unavailable(async (url, { says }) => {
    const texts = await watch(url);
    for (const button of [COMPARE, BUTTON]) {
      await press(button);
      assert.match(texts().join("\n"), new RegExp(`^The SEO watch failed: .*${says.source}`));
    }
  });
});

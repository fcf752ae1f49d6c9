import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import { resultOf } from "../../sandbox/pages.js";
import type { Report } from "../../sandbox/reports.js";
import { describeExample, json, only } from "../support/examples.js";

const TODAY = new Date().toISOString().slice(0, 10);
const PROJECT = "example.com";
const BUTTON = "every day";

describeExample("07 - Watch", ({ up, standIn, chat, deploy, press, unavailable }) => {
  /** Deploys the flow with a chat; the function returns the texts since the last call. */
  async function watch(url: string, intervals = false): Promise<() => string[]> {
    const { url: hook, texts } = await chat();
    await deploy(url, { env: { SLACK_WEBHOOK_URL: hook }, tab: { PROJECT }, intervals });
    return texts;
  }

  it("saves the scores when it is deployed, regenerates the reports, and posts what got worse", async () => {
    const { url, reports, requests } = await up();
    const pages = reports.list({ project: PROJECT }) as Report[];
    const [worse] = pages as [Report];
    for (const page of pages) page.score = page === worse ? 100 : 0;
    const texts = await watch(url, true);
    while (requests.length === 0) await late(20);
    assert.deepEqual(await press(BUTTON), { response: ["200: from the chat"] });
    assert.ok(pages.every(({ id }) => (reports.get(id)?.generation ?? 0) > 0));
    const now = `${resultOf(worse.score)} (${worse.score})`;
    assert.deepEqual(texts(), [`Dropped from good (100) to ${now} on ${TODAY}: https://${worse.url}`]);
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
      await press(BUTTON);
    }
    const post = (drop: string) => `Dropped from ${drop} on ${TODAY}: https://example.com/`;
    assert.deepEqual(texts(), [post("good (84) to good (79)"), post("good (79) to decent (74)")]);
  });

  it("compares results that are scores, as older services return them", async () => {
    let result: unknown = 90;
    const texts = await watch((await standIn(() => json(200, { data: [{ id: 1, url: "example.com", result }] }))).url);
    await press(BUTTON);
    for (result of [95, "70"]) await press(BUTTON);
    assert.deepEqual(texts(), [`Dropped from 95 to 70 on ${TODAY}: https://example.com`]);
  });

  it("continues after a report that cannot be regenerated", async () => {
    const score = (id: number) => ({ id, url: `${id}.example`, score: 90 - id, result: "good" });
    const service = await standIn(({ method, path }) =>
      method === "GET"
        ? json(200, { data: [score(1), score(2)] })
        : path.endsWith("1")
          ? json(200, { data: score(1) })
          : json(404, { message: "Gone." }),
    );
    const texts = await watch(service.url);
    await press(BUTTON);
    const { error: [text] = [], ...rest } = await press(BUTTON);
    assert.match(String(text), /^regenerate: .*404/);
    assert.deepEqual([rest, texts()], [{}, []]);
    assert.equal(service.asked.at(-1)?.method, "GET");
  });

  it("shows what the chat rejects, or that it cannot be reached", async () => {
    for (const [hook, output, text] of [
      [(await standIn(() => ({ status: 404, body: "no_service" }))).url, "response", /^404: no_service$/],
      ["http://127.0.0.1:1", "error", /^post: .*ECONNREFUSED/],
    ] as const) {
      await deploy("http://127.0.0.1:1", { env: { SLACK_WEBHOOK_URL: hook } });
      const { [output]: [shown] = [], ...rest } = await press(BUTTON);
      assert.match(String(shown), text);
      assert.deepEqual(rest, {});
    }
  });

  it("shows the message if no chat is set", async () => {
    await deploy("http://127.0.0.1:1");
    only(await press(BUTTON), "no webhook set", /^The SEO watch failed: /);
  });

  unavailable(async (url, { says }) => {
    const texts = await watch(url);
    for (let time = 0; time < 2; time++) {
      await press(BUTTON);
      assert.match(texts().join("\n"), new RegExp(`^The SEO watch failed: .*${says.source}`));
    }
  });
});

import assert from "node:assert/strict";
import type { Report } from "../../sandbox/reports.js";
import { describeExample, json } from "../support/examples.js";

const TODAY = new Date().toISOString().slice(0, 10);
const PROJECT = "example.com";
const word = (score: number) => (score >= 80 ? "good" : score >= 50 ? "decent" : "bad");

describeExample("07 - Watch", ({ up, standIn, deploy, press, quiet, unavailable }) => {
  /** Deploys the flow with a chat; the function returns the texts since the last call. */
  async function watch(url: string): Promise<() => string[]> {
    const chat = await standIn(() => ({}));
    await deploy(url, { env: { SLACK_WEBHOOK_URL: chat.url }, tab: { PROJECT } });
    return () => chat.asked.splice(0).map(({ body }) => (JSON.parse(body) as { text: string }).text);
  }

  it("regenerates the project's reports, and posts what got worse", async () => {
    const { url, reports } = await up();
    const texts = await watch(url);
    const pages = reports.list({ project: PROJECT }) as Report[];
    const [worse] = pages as [Report];
    for (const page of pages) page.score = page === worse ? 100 : 0;
    assert.deepEqual(await press("at the start"), {});
    const { sent, "not worse": rest = [] } = await press("every day");
    assert.deepEqual(sent, [200]);
    assert.equal(rest.length, pages.length - 1);
    assert.match(String(rest[0]), /^\d{4}-\d\d-\d\d: https:\/\/example\.com.* went from bad \(0\) to \w+ \(\d+\)\.$/);
    assert.ok(pages.every(({ id }) => (reports.get(id)?.generation ?? 0) > 0));
    const now = `${word(worse.score)} (${worse.score})`;
    assert.deepEqual(texts(), [`${TODAY}: https://${worse.url} dropped from good (100) to ${now}.`]);
    quiet();
  });

  it("compares results that are scores, as older services return them", async () => {
    let result: unknown = 90;
    const texts = await watch((await standIn(() => json(200, { data: [{ id: 1, url: "example.com", result }] }))).url);
    await press("at the start");
    for (result of [95, "70"]) await press("at the start");
    assert.deepEqual(texts(), [`${TODAY}: https://example.com dropped from 95 to 70.`]);
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
    await press("at the start");
    const { "not regenerated": [text] = [], ...rest } = await press("every day");
    assert.match(String(text), /404/);
    assert.deepEqual([rest, texts()], [{}, []]);
    assert.equal(service.asked.at(-1)?.method, "GET");
    quiet();
  });

  it("says that there are no reports", async () => {
    const texts = await watch((await up({ reports: 0 })).url);
    const error = `any?: There are no reports in the project ${PROJECT}.`;
    assert.deepEqual(await press("every day"), { "not sent": [error] });
    assert.deepEqual(texts(), []);
    quiet();
  });

  it("reports an error once, and once that it works again", async () => {
    const { url, port, close } = await up({ reports: 0 });
    const texts = await watch(url);
    await press("at the start");
    assert.deepEqual(texts(), []);
    await close();
    for (const button of ["at the start", "every day"]) await press(button);
    const [text = "", ...more] = texts();
    assert.match(text, /^The SEO watch failed: .*ECONNREFUSED/);
    assert.deepEqual(more, []);
    await up({ reports: 0, port });
    for (const _ of [1, 2]) await press("at the start");
    assert.deepEqual(texts(), ["The SEO watch works again."]);
    quiet();
  });

  it("shows the message if no chat is set", async () => {
    await deploy("http://127.0.0.1:1");
    const { "no webhook set": [text] = [], ...rest } = await press("at the start");
    assert.match(String(text), /^The SEO watch failed: /);
    assert.deepEqual(rest, {});
    await deploy("http://127.0.0.1:1", { only: () => false });
    quiet();
  });

  unavailable(async (url, { says }) => {
    const texts = await watch(url);
    await press("every day");
    assert.match(texts().join("\n"), new RegExp(`^The SEO watch failed: .*${says.source}`));
    // Forgets that it failed.
    await deploy(url, { only: () => false });
  });
});

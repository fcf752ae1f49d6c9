import assert from "node:assert/strict";
import { resultOf } from "../../sandbox/pages.js";
import type { Report } from "../../sandbox/reports.js";
import { type batchEnded, describeExample, holdAfter, json } from "../support/examples.js";

const TODAY = new Date().toISOString().slice(0, 10);
const PROJECT = "example.com";

/** Whether the chat has responded, or cannot be reached. */
const posted: typeof batchEnded = ({ shown }) => shown.some(({ name }) => name === "response");

describeExample("02 - Weekly audit to Slack", ({ up, standIn, chat, deploy, press, red, unavailable }) => {
  /** Runs the audit, with a chat that returns `status`. */
  async function audit(url: string, status = 200) {
    const { url: hook, texts } = await chat(() => ({ status, body: "from the chat" }));
    await deploy(url, { env: { SLACK_WEBHOOK_URL: hook }, tab: { PROJECT } });
    return { outputs: await press("Mondays", posted), texts: texts() };
  }

  /** A service in which a report's score was `before` and becomes `after`, or cannot be regenerated. */
  const scores = (pages: { url: string; before: object; after?: object }[]) =>
    standIn(({ method, path }) => {
      const reports = pages.map(({ url, before }, index) => ({ id: index + 1, url, ...before }));
      if (method === "GET") return json(200, reports);
      const id = Number(path.split("/").at(-1));
      const { url, after } = pages[id - 1] ?? {};
      return after ? json(200, { data: { id, url, ...after } }) : json(404, { message: "Gone." });
    });

  it("regenerates the project's reports, and posts what got worse, worst first", async () => {
    const { url, reports, requests } = await up();
    const pages = reports.list({ project: PROJECT, sort_by: "url" });
    const before = [100, 99, ...pages.slice(2).map(() => 0)];
    for (const [index, page] of pages.entries()) (page as Report).score = before[index] ?? 0;
    const { outputs, texts } = await audit(url);
    assert.deepEqual(outputs.response, ["200: from the chat"]);
    assert.equal(requests.filter(({ method }) => method === "PUT").length, pages.length);
    const lines = pages.slice(0, 2).map(({ url: page, score }, index) => ({
      drop: (before[index] ?? 0) - score,
      text: `• https://${page} dropped from good (${before[index]}) to ${resultOf(score)} (${score})`,
    }));
    lines.sort((a, b) => b.drop - a.drop);
    const first = `SEO audit of ${PROJECT}, ${TODAY}: ${pages.length} of ${pages.length} reports regenerated, 2 got worse, ${pages.length - 2} better, 0 failed.`;
    assert.deepEqual(texts, [[first, ...lines.map(({ text }) => text)].join("\n")]);
  });

  it("names the pages that lost DROP points, the worst first, and those that failed", async () => {
    const { url } = await scores([
      { url: "a.example", before: { score: 80, result: "good" }, after: { score: 73, result: "decent" } },
      { url: "b.example", before: { score: 79, result: "decent" }, after: { score: 75, result: "decent" } },
      { url: "c.example", before: { score: 79, result: "decent" }, after: { score: 74, result: "decent" } },
      { url: "https://old.example", before: { result: 90 }, after: { result: 70 } },
      { url: "gone.example", before: { score: 50, result: "decent" } },
    ]);
    const { texts } = await audit(url);
    const [, ...lines] = texts[0]?.split("\n") ?? [];
    assert.deepEqual(lines.slice(0, 3), [
      "• https://old.example dropped from 90 to 70",
      "• https://a.example dropped from good (80) to decent (73)",
      "• https://c.example dropped from decent (79) to decent (74)",
    ]);
    assert.match(lines[3] ?? "", /^• https:\/\/gone\.example failed: .*404/);
  });

  it("compares only the newer of two reports of a page", async () => {
    const { url, reports } = await up({ reports: 0 });
    const older = reports.store({ url: "https://example.com/a" });
    older.score = 100;
    older.generated_at -= 1000;
    reports.store({ url: "https://example.com/a" }).score = 0;
    const { texts } = await audit(url);
    assert.ok(texts[0]?.endsWith(" 0 got worse, 1 better, 0 failed."), texts[0]);
  });

  it("posts nothing of an earlier run", async () => {
    const page = { id: 1, url: "a.example", score: 90, result: "good" };
    let pages = [page, { ...page, id: 2, url: "b.example" }];
    const { url } = await standIn(({ method, path }) =>
      method === "GET"
        ? json(200, pages)
        : json(200, { data: { ...page, url: "x.example", id: Number(path.at(-1)), score: 1 } }),
    );
    const { url: hook, texts } = await chat();
    await deploy(url, { env: { SLACK_WEBHOOK_URL: hook } });
    await press("Mondays", posted);
    pages = [page];
    await press("Mondays", posted);
    const lines = texts().map((text) => text.split("\n").length);
    assert.deepEqual(lines, [3, 2]);
  });

  it("lets no report mention or mark up", async () => {
    const before = { score: 90, result: "good" };
    const { url } = await scores([{ url: 'a.example/<!channel>@here"x', before, after: { score: 1, result: "bad" } }]);
    const { texts } = await audit(url);
    const line = '• https://a.example/%3C!channel%3E%40here"x dropped from good (90) to bad (1)';
    assert.equal(texts[0]?.split("\n").at(-1), line);
  });

  it("posts that there are no reports", async () => {
    const { outputs, texts } = await audit((await up({ reports: 0 })).url);
    const text = `The weekly SEO audit failed: The list of pages is empty: msg.payload has no URL.`;
    assert.deepEqual([outputs.response, texts], [["200: from the chat"], [text]]);
  });

  it("shows what the chat rejects, or that it cannot be reached", async () => {
    const { url } = await up({ reports: 0 });
    assert.deepEqual((await audit(url, 404)).outputs.response, ["404: from the chat"]);
    await deploy(url, { env: { SLACK_WEBHOOK_URL: "http://127.0.0.1:1" } });
    const { response: [text] = [] } = await press("Mondays", posted);
    assert.match(String(text), /^post: .*ECONNREFUSED/);
  });

  it("shows the message if no chat is set", async () => {
    await deploy((await up({ reports: 36 })).url);
    const { message = [], ...rest } = await press("Mondays", ({ shown }) => shown.length > 0);
    assert.equal(message.length, 1);
    const { text } = message[0] as { text: string };
    assert.ok(text.startsWith(`SEO audit of ${PROJECT}, ${TODAY}: `), text);
    assert.deepEqual(rest, {});
  });

  it("posts once after a redeploy, with the results from before it", async () => {
    const { release, latency } = holdAfter(5);
    const { url, requests, reports } = await up({ reports: 150, latency, now: Date.now });
    const pages = reports.list({ project: PROJECT }) as Report[];
    for (const page of pages) page.score = 100;
    const { url: hook, texts } = await chat();
    // A request that the redeploy cuts off before it reaches the service is sent again only after this. Seconds.
    const service = { reconcile: "30" };
    const settings = { env: { SLACK_WEBHOOK_URL: hook }, tab: { PROJECT, DROP: 1 }, service };
    const regenerated = () => requests.filter(({ method }) => method === "PUT").length;
    await deploy(url, settings);
    await press("Mondays", () => regenerated() > 4);
    assert.ok(regenerated() < pages.length, "The batch has ended before the redeploy.");
    await deploy(url, settings);
    release();
    await red().outputs(posted);
    assert.equal(regenerated(), pages.length);
    const [text = "", ...more] = texts();
    const [first = "", ...lines] = text.split("\n");
    const worse = pages.filter(({ score }) => score < 100).length;
    assert.ok(first.includes(`: ${pages.length} of ${pages.length} reports regenerated, ${worse} got worse, `), first);
    assert.deepEqual([lines.length, more], [worse, []]);
  });

  it("posts that the audit is paused if the service stops working in the middle", async () => {
    const pages = Array.from({ length: 12 }, (_, i) => ({ id: i + 1, url: `${i}.example`, score: 9, result: "bad" }));
    const { url } = await standIn(({ method }) =>
      method === "GET" ? json(200, pages) : json(403, { message: "No longer allowed." }),
    );
    const { texts } = await audit(url);
    assert.equal(texts.length, 1);
    assert.match(texts[0] ?? "", /^The weekly SEO audit failed: .*paused.*No longer allowed/);
  });

  unavailable(async (url, { says }) => {
    const { outputs, texts } = await audit(url);
    assert.deepEqual(outputs.response, ["200: from the chat"]);
    assert.match(texts.join("\n"), new RegExp(`^The weekly SEO audit failed: .*${says.source}`));
  });
});

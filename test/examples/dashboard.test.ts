import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { resultOf } from "../../sandbox/pages.js";
import { describeExample, type Outputs } from "../support/examples.js";

const iso = (time: number) => `${new Date(time).toISOString().slice(0, -1)}000Z`;

describeExample("09 - Dashboard", ({ up, deploy, press, file, quiet, unavailable }) => {
  afterEach(() => rmSync(file("seo-history.jsonl"), { force: true }));

  /** How the charts are drawn, which they receive first. */
  const only = ({ results, scores, ...rest }: Outputs) => ({
    results: results?.slice(1),
    scores: scores?.slice(1),
    ...rest,
  });

  /** The name of a page in the legend, which has room for 17 characters. */
  const short = (url: string) => (url.length > 17 ? `…${url.replace(/^[^/]+\//, "/").slice(-16)}` : url);

  it("gives each widget its rows, and keeps the scores of earlier reports", async () => {
    const { url, reports } = await up({ reports: 12 });
    for (const report of reports.list({})) report.score = [90, 90, 60, 40][report.id % 4] ?? 0;
    const [first = assert.fail()] = reports.list({ sort: "asc" });
    const points = [first, reports.store({ url: first.url })].map(({ url, generated_at, score }) => ({
      page: short(url),
      date: iso(generated_at),
      score,
    }));
    await deploy(url);
    const listed = () => {
      const newest = reports.list({ sort_by: "generated_at" }).filter((report) => report !== first);
      const count = (result: string) => newest.filter(({ score }) => resultOf(score) === result).length;
      return {
        results: [["good", "decent", "bad"].map((result) => ({ result, pages: count(result) }))],
        "newest pages": [
          newest.map(({ url, project, score, generated_at }) => ({
            Page: url,
            Project: project,
            Score: score,
            Result: resultOf(score),
            Generated: iso(generated_at).slice(0, 10),
          })),
        ],
      };
    };
    const lines = async () => {
      const { scores, ...rest } = only(await press("every 5 minutes"));
      assert.deepEqual(rest, listed());
      return (scores?.at(-1) ?? []) as { page: string }[];
    };
    const before = await lines();
    assert.deepEqual(before.slice(0, 2), points);
    assert.equal(new Set(before.map(({ page }) => page)).size, 6);
    // The service keeps only the last score of a report. A restart does not clear the file, but the state of "changes".
    const [newest = assert.fail()] = reports.list({ sort_by: "generated_at" });
    Object.assign(newest, { score: 12, generated_at: newest.generated_at + 1000 });
    await deploy("http://127.0.0.1:1", { only: () => false });
    await deploy(url);
    assert.deepEqual((await lines()).slice(0, 3), [
      ...points,
      { page: short(newest.url), date: iso(newest.generated_at), score: 12 },
    ]);
    quiet();
  });

  it("empties the widgets for an empty list", async () => {
    await deploy((await up({ reports: 0 })).url);
    const results = ["good", "decent", "bad"].map((result) => ({ result, pages: 0 }));
    const outputs = only(await press("every 5 minutes"));
    assert.deepEqual(outputs, { results: [results], scores: [[]], "newest pages": [[]] });
    quiet();
  });

  const PAGES = ["https://example.com/", "https://example.com/about", "https://example.com/pricing"];

  /** Starts an audit, and returns what the progress widget receives, as a Debug node that shows the whole message. */
  async function audit(url: string, pages: string[], ended: (one: { payload: number; label: string }) => boolean) {
    await deploy(url, {
      change(node) {
        if (node.name === "audit") node.payload = JSON.stringify(pages);
        if (node.type === "ui-progress") Object.assign(node, { type: "debug", complete: "true", targetType: "full" });
      },
    });
    const read = (value: unknown) => {
      const { payload, ui_update } = value as { payload: number; ui_update: { label: string; color: string } };
      return { payload, ...ui_update };
    };
    const { progress = [], ...rest } = await press("audit", ({ shown }) =>
      shown.some(({ name, value }) => name === "progress" && ended(read(value))),
    );
    return { last: progress.map(read).at(-1), rest };
  }

  it("shows the progress of an audit", async () => {
    const { url, reports } = await up({ reports: 0 });
    const { last, rest } = await audit(url, PAGES, ({ payload }) => payload === 100);
    assert.deepEqual(last, { payload: 100, label: "3 of 3 pages", color: "primary" });
    // The end of the audit lists the reports again.
    assert.equal(Object(rest["newest pages"]?.[0]).length, 3);
    assert.equal(reports.list({}).length, 3);
    quiet();
  });

  it("shows that pages of an audit failed", async () => {
    const { last } = await audit((await up({ reports: 0 })).url, [...PAGES, "="], ({ payload }) => payload === 100);
    assert.deepEqual(last, { payload: 100, label: "4 of 4 pages, 1 failed", color: "warning" });
    quiet();
  });

  it("shows why an audit is paused", async () => {
    const { last, rest } = await audit("http://127.0.0.1:1", PAGES, ({ label }) => label.startsWith("Paused"));
    assert.deepEqual(last, { payload: 0, label: "Paused: 0 of 3 pages", color: "warning" });
    assert.match(String(rest["why it is paused"]?.at(-1)), /ECONNREFUSED/);
    const [text] = rest["on the page"] ?? [];
    assert.match(String(text), /^audit pages: .*ECONNREFUSED/);
    quiet();
  });

  unavailable(async (url, { says }) => {
    await deploy(url);
    const { "on the page": [text] = [], ...rest } = await press("every 5 minutes");
    assert.match(String(text), new RegExp(`^(newest reports|changes): .*${says.source}`));
    assert.deepEqual(only(rest), { results: [], scores: [[]] });
  });
});

import assert from "node:assert/strict";
import { describeExample } from "../support/examples.js";

const word = (score: number) => (score >= 80 ? "good" : score >= 50 ? "decent" : "bad");
const iso = (time: number) => `${new Date(time).toISOString().slice(0, -1)}000Z`;

describeExample("09 - Dashboard", ({ up, deploy, press, quiet, unavailable }) => {
  it("gives each widget its rows", async () => {
    const { url, reports } = await up({ reports: 12 });
    for (const report of reports.list({})) report.score = [90, 90, 60, 40][report.id % 4] ?? 0;
    const [first] = reports.list({ sort: "asc" });
    const again = reports.store({ url: first?.url ?? "" });
    await deploy(url);
    const newest = reports.list({ sort_by: "generated_at" }).filter((report) => report !== first);
    const count = (result: string) => newest.filter(({ score }) => word(score) === result).length;
    assert.deepEqual(await press("every 5 minutes"), {
      results: [["good", "decent", "bad"].map((result) => ({ result, pages: count(result) }))],
      "score of each page": [
        [first, again].map((report) => ({
          page: report?.url,
          date: iso(report?.generated_at ?? 0),
          score: report?.score,
        })),
      ],
      "newest pages": [
        newest.map(({ url, project, score, generated_at }) => ({
          Page: url,
          Project: project,
          Score: score,
          Result: word(score),
          Generated: iso(generated_at).slice(0, 10),
        })),
      ],
    });
    quiet();
  });

  it("empties the widgets for an empty list", async () => {
    await deploy((await up({ reports: 0 })).url);
    const results = ["good", "decent", "bad"].map((result) => ({ result, pages: 0 }));
    const outputs = await press("every 5 minutes");
    assert.deepEqual(outputs, { results: [results], "score of each page": [[]], "newest pages": [[]] });
    quiet();
  });

  unavailable(async (url, { says }) => {
    await deploy(url);
    const { "on the page": [text] = [], ...rest } = await press("every 5 minutes");
    assert.match(String(text), new RegExp(`^The reports cannot be listed: .*${says.source}`));
    assert.deepEqual(rest, {});
  });
});

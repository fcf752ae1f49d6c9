import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import type { Report } from "../../sandbox/reports.js";
import { describeExample, json } from "../support/examples.js";

const HEADER = "id,url,project,score,result,privacy,password,generated_at,created_at,updated_at\r\n";
const word = (score: number) => (score >= 80 ? "good" : score >= 50 ? "decent" : "bad");

describeExample("03 - Reports to a spreadsheet", ({ up, standIn, deploy, press, file, red, quiet, unavailable }) => {
  const download = () => fetch(`${red().url}/seo-reports.csv`);
  const start = (url: string) => deploy(url, { tab: { REPORTS_CSV: file("reports.csv") } });

  it("writes the file, and returns the same as a download", async () => {
    const { url, reports } = await up({ reports: 120 });
    await start(url);
    assert.deepEqual(await press("every day at 6:00"), { written: [file("reports.csv")] });
    const iso = (time: number) => new Date(time).toISOString();
    const line = ({ id, url, project, score, privacy, password, ...dates }: Report) =>
      [id, url, project, score, word(score), privacy, password !== null]
        .concat(iso(dates.generated_at), iso(dates.created_at), iso(dates.updated_at))
        .join(",");
    const expected = `${HEADER}${reports.list({ sort: "asc" }).map(line).join("\r\n")}\r\n`;
    assert.equal(readFileSync(file("reports.csv"), "utf8"), expected);
    const answer = await download();
    assert.equal(answer.headers.get("content-type"), "text/csv; charset=utf-8");
    assert.equal(answer.headers.get("content-disposition"), 'attachment; filename="seo-reports.csv"');
    assert.equal(await answer.text(), expected);
    quiet();
  });

  it("shows the whole path of a relative one", async () => {
    await deploy((await up({ reports: 1 })).url, {
      tab: { REPORTS_CSV: "relative.csv" },
    });
    assert.deepEqual(await press("every day at 6:00"), { written: [file("relative.csv")] });
  });

  it("keeps formulas, nested values and invalid dates out of the cells", async () => {
    const odd = { id: 1, url: '=HYPERLINK("x")', project: "@a, b", score: null, results: { a: 1 }, privacy: "2" };
    await start((await standIn(() => json(200, [{ ...odd, generated_at: "soon", created_at: null }]))).url);
    await press("every day at 6:00");
    assert.equal(readFileSync(file("reports.csv"), "utf8"), `${HEADER}1,"'=HYPERLINK(""x"")","'@a, b",,,2,,,,\r\n`);
  });

  it("writes the header of an empty list", async () => {
    await start((await up({ reports: 0 })).url);
    assert.deepEqual(await press("every day at 6:00"), { written: [file("reports.csv")] });
    assert.equal(readFileSync(file("reports.csv"), "utf8"), HEADER);
    assert.equal(await (await download()).text(), HEADER);
    quiet();
  });

  unavailable(async (url, { code, says }) => {
    writeFileSync(file("reports.csv"), "as it was");
    await start(url);
    const { "not written": [error] = [], ...rest } = await press("every day at 6:00");
    assert.match(String(error), new RegExp(`^The reports cannot be exported: .*${says.source}`));
    assert.deepEqual(rest, {});
    assert.equal(readFileSync(file("reports.csv"), "utf8"), "as it was");
    const answer = await download();
    assert.deepEqual([answer.status, await answer.text()], [code === "SEO_RATE_LIMITED" ? 503 : 502, error]);
  });
});

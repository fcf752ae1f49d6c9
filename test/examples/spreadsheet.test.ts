import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { resultOf } from "../../sandbox/pages.js";
import type { Report } from "../../sandbox/reports.js";
import { describeExample, json, only } from "../support/examples.js";

const MARK = "\ufeff";
const HEADER = "id,url,project,score,result,privacy,password,generated_at,created_at,updated_at\r\n";
const CHECKS = "report,url,project,check,importance,value,errors\r\n";

describeExample("03 - Reports to a spreadsheet", ({ up, standIn, deploy, press, file, red, unavailable }) => {
  const download = (name = "seo-reports.csv") => fetch(`${red().url}/${name}`);
  const tab = () => ({ REPORTS_CSV: file("reports.csv"), CHECKS_CSV: file("checks.csv") });
  const start = (url: string) => deploy(url, { tab: tab() });
  const written = () => ({ written: [file("reports.csv"), file("checks.csv")] });

  it("writes the file, and returns the same as a download", async () => {
    const { url, reports } = await up({ reports: 120 });
    await start(url);
    assert.deepEqual(await press("every day at 6:00"), written());
    const iso = (time: number) => new Date(time).toISOString();
    const line = ({ id, url, project, score, privacy, password, ...dates }: Report) =>
      [id, url, project, score, resultOf(score), privacy, password !== null]
        .concat(iso(dates.generated_at), iso(dates.created_at), iso(dates.updated_at))
        .join(",");
    const expected = `${HEADER}${reports.list({ sort: "asc" }).map(line).join("\r\n")}\r\n`;
    assert.equal(readFileSync(file("reports.csv"), "utf8"), MARK + expected);
    assert.deepEqual(Buffer.from(await (await download()).arrayBuffer()), readFileSync(file("reports.csv")));
    const answer = await download();
    assert.equal(answer.headers.get("content-type"), "text/csv; charset=utf-8");
    assert.equal(answer.headers.get("content-disposition"), 'attachment; filename="seo-reports.csv"');
    assert.equal(await answer.text(), expected);
  });

  it("writes a row for each failed check, and returns the same as a download", async () => {
    const tooShort = { too_short: { min: 10 } };
    const results = {
      title: { passed: false, importance: "high", value: "=cmd|' /C calc'!A0", errors: tooShort },
      headings: { passed: "0", importance: "high", value: { h1: 2 }, errors: ["=1+1"] },
      "@load_time": { passed: 0, importance: "\t=1", value: -1.5 },
      images: { passed: false, value: 'a,\n"b"', errors: Array(5000).fill({ url: "/a.jpg" }) },
      favicon: { passed: true, importance: "low", value: null },
      note: "no check",
    };
    const reports = [
      { id: 1, url: "+example.com", project: "-example.com", results },
      { id: 2, url: "example.com", results: null },
    ];
    await start((await standIn(() => json(200, { data: reports }))).url);
    assert.deepEqual(await press("every day at 6:00"), written());
    const report = "1,'+example.com,'-example.com";
    const errors = JSON.stringify(results.images.errors).slice(0, 1000).replaceAll('"', '""');
    const expected = [
      CHECKS,
      `${report},title,high,'=cmd|' /C calc'!A0,"{""too_short"":{""min"":10}}"\r\n`,
      `${report},headings,high,"{""h1"":2}","[""=1+1""]"\r\n`,
      `${report},'@load_time,'\t=1,-1.5,\r\n`,
      `${report},images,,"a,\n""b""","${errors}"\r\n`,
    ].join("");
    assert.equal(readFileSync(file("checks.csv"), "utf8"), MARK + expected);
    const answer = await download("seo-checks.csv");
    assert.equal(answer.headers.get("content-disposition"), 'attachment; filename="seo-checks.csv"');
    assert.equal(await answer.text(), expected);
  });

  it("shows the whole path of a relative one", async () => {
    await deploy((await up({ reports: 1 })).url, { tab: { REPORTS_CSV: "relative.csv", CHECKS_CSV: "" } });
    assert.deepEqual(await press("every day at 6:00"), { written: [file("relative.csv"), file("seo-checks.csv")] });
  });

  it("keeps formulas, nested values and invalid dates out of the cells", async () => {
    const odd = { id: 1, url: '=HYPERLINK("x")', project: "@a, b", score: null, results: { a: 1 }, privacy: "2" };
    await start((await standIn(() => json(200, [{ ...odd, generated_at: "soon", created_at: null }]))).url);
    await press("every day at 6:00");
    const csv = readFileSync(file("reports.csv"), "utf8");
    assert.equal(csv, `${MARK}${HEADER}1,"'=HYPERLINK(""x"")","'@a, b",,,2,,,,\r\n`);
  });

  it("keeps formulas out of the cells that a spreadsheet makes at semicolons", async () => {
    const errors = ['x;=1+1;"+2', "a\n-3", "b;c"];
    const results = { title: { passed: false, importance: "a; @b", value: 'é"; \t=1', errors } };
    const record = { id: 1, url: "example.com/?a;=1", project: "x;y", results };
    await start((await standIn(() => json(200, { data: [record] }))).url);
    await press("every day at 6:00");
    for (const name of ["reports.csv", "checks.csv"]) {
      const text = readFileSync(file(name), "utf8");
      assert.doesNotMatch(text, /(^|[;\r\n])["\s]*[=+\-@]/m, text);
      assert.ok(text.includes("example.com/?a;'=1,x;y,"), text);
    }
    assert.match(readFileSync(file("checks.csv"), "utf8"), /é/);
  });

  it("writes the header of an empty list", async () => {
    await start((await up({ reports: 0 })).url);
    assert.deepEqual(await press("every day at 6:00"), written());
    assert.equal(readFileSync(file("reports.csv"), "utf8"), MARK + HEADER);
    assert.equal(readFileSync(file("checks.csv"), "utf8"), MARK + CHECKS);
    assert.equal(await (await download()).text(), HEADER);
    assert.equal(await (await download("seo-checks.csv")).text(), CHECKS);
  });

  unavailable(async (url, { code, says }) => {
    for (const name of ["reports.csv", "checks.csv"]) writeFileSync(file(name), "as it was");
    await start(url);
    const outputs = await press("every day at 6:00");
    only(outputs, "not written", new RegExp(`^The reports cannot be exported: .*${says.source}`));
    for (const name of ["reports.csv", "checks.csv"]) assert.equal(readFileSync(file(name), "utf8"), "as it was");
    const answer = await download();
    assert.equal(answer.status, code === "SEO_RATE_LIMITED" ? 503 : 502);
    assert.equal(await answer.text(), outputs["not written"]?.[0]);
  });
});

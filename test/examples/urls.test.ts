import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../dev/nodered.js";
import type { Report } from "../../sandbox/reports.js";
import { describeExample, type Outputs } from "../support/examples.js";

const HEADER = "url,id,score,outcome,error";

describeExample("04 - URLs from a spreadsheet", ({ up, deploy, press, file, quiet, unavailable }) => {
  const tab = () => ({ URLS_CSV: file("urls.csv"), RESULTS_CSV: file("results.csv") });

  async function start(url: string, csv: string): Promise<Outputs> {
    writeFileSync(file("urls.csv"), csv);
    rmSync(file("results.csv"), { force: true });
    await deploy(url, { tab: tab() });
    return press("start");
  }

  const results = () => readFileSync(file("results.csv"), "utf8").split("\r\n");

  it("gives each row a report, goes on after errors, and keeps the order", async () => {
    const rows = ["https://example.com/a,,", "=1+1,,", ",private,", "https://example.com/b,password,s"];
    const { url, reports } = await up({ reports: 0 });
    const outputs = await start(url, `url,privacy,password\n${rows.join("\n")}\n`);
    assert.deepEqual(outputs, { written: [file("results.csv")] });
    const [a, b] = reports.list({ sort: "asc" });
    const [header, first, second, third, fourth, end] = results();
    assert.equal(header, HEADER);
    assert.equal(first, `https://example.com/a,${a?.id},${a?.score},created,`);
    assert.match(second ?? "", /^'=1\+1,,,failed,"?.*url/);
    assert.match(third ?? "", /^,,,failed,"?url .*msg\.payload\.url/);
    assert.equal(fourth, `https://example.com/b,${b?.id},${b?.score},created,`);
    assert.equal(end, "");
    assert.deepEqual([a?.privacy, b?.privacy, b?.password], [0, 2, "s"]);
    quiet();
  });

  it("stores every row of the sample", async () => {
    const { url, reports } = await up({ reports: 0 });
    copyFileSync(join(root, "examples/urls.csv"), file("urls.csv"));
    await deploy(url, { tab: { URLS_CSV: "urls.csv", RESULTS_CSV: "results.csv" } });
    assert.deepEqual(await press("start"), { written: [file("results.csv")] });
    const rows = readFileSync(file("urls.csv"), "utf8").trim().split("\n").length - 1;
    assert.equal(reports.list({}).length, rows);
    assert.deepEqual(
      results().filter((row) => !/,\d+,\d+,created,$/.test(row)),
      [HEADER, ""],
    );
    quiet();
  });

  it("creates no second report of a page: returns it for a day, then regenerates it", async () => {
    const { url, reports } = await up({ reports: 0, now: Date.now });
    const csv = "url,privacy\nhttps://example.com/a,\nhttps://example.com/b,private\n";
    await start(url, csv);
    const [, b] = reports.list({ sort: "asc" }) as Report[];
    assert.ok(b);
    b.generated_at -= 2 * 24 * 3600 * 1000;
    await start(url, csv);
    assert.deepEqual(
      results().map((row) => row.split(",")[3]),
      ["outcome", "fresh", "regenerated", undefined],
    );
    assert.deepEqual(
      reports.list({ sort: "asc" }).map(({ generation }) => generation),
      [0, 1],
    );
    quiet();
  });

  it("says what is missing", async () => {
    const { url, requests } = await up();
    const says = async (sentence: string) => assert.deepEqual(await press("start"), { error: [sentence] });
    for (const name of ["URLS_CSV", "RESULTS_CSV"]) {
      await deploy(url, { tab: { ...tab(), [name]: "" } });
      await says(`Set ${name} in the properties of this flow.`);
    }
    await deploy(url, { tab: { ...tab(), URLS_CSV: file("none.csv") } });
    await says(`There is no file ${file("none.csv")}. Create it, or set URLS_CSV in the properties of this flow.`);
    rmSync(file("results.csv"), { force: true });
    for (const [csv, sentence] of [
      ["url,privacy\n", "has no rows."],
      ["URL;privacy\nhttps://example.com/;\n", 'has no column "url". Its columns: URL;privacy.'],
    ] as const) {
      assert.deepEqual(await start(url, csv), { error: [`${file("urls.csv")} ${sentence}`] });
    }
    assert.equal(existsSync(file("results.csv")), false);
    assert.deepEqual(requests, []);
    quiet();
  });

  unavailable(async (url, { says }) => {
    await start(url, "url\nhttps://example.com/a\nhttps://example.com/b\n");
    const [, a = "", b = ""] = results();
    assert.match(a, new RegExp(`^https://example\\.com/a,,,failed,"?.*${says.source}`));
    assert.match(b, new RegExp(`^https://example\\.com/b,,,failed,"?.*${says.source}`));
  });
});

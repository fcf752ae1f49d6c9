import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../dev/nodered.js";
import type { Report } from "../../sandbox/reports.js";
import { batchEnded, describeExample, type Outputs } from "../support/examples.js";

const HEADER = "date,index,url,id,score,outcome,error";
const TODAY = new Date().toISOString().slice(0, 10);

describeExample("04 - URLs from a spreadsheet", ({ up, deploy, press, file, example, unavailable }) => {
  const tab = () => ({ URLS_CSV: file("urls.csv"), RESULTS_CSV: file("results.csv") });

  beforeEach(() => rmSync(file("results.csv"), { force: true }));

  async function start(url: string, csv: string | Buffer, places = tab()): Promise<Outputs> {
    writeFileSync(file("urls.csv"), csv);
    await deploy(url, { tab: places });
    return press("start", batchEnded);
  }

  /** The file of the results without its first character, with which Excel reads UTF-8. */
  const written = () =>
    existsSync(file("results.csv")) ? readFileSync(file("results.csv"), "utf8").replace(/^\uFEFF/, "") : "";
  const row = (index: number, url: string, { id, score }: Report, outcome: string) =>
    `${TODAY},${index},"${url}",${id},${score},${outcome},""`;

  /** The rows in the order of the list. */
  function results(): string[] {
    const [header, ...rows] = written().split("\r\n");
    assert.equal(header, HEADER);
    assert.equal(rows.pop(), "");
    return rows.sort((a, b) => Number(a.split(",")[1]) - Number(b.split(",")[1]));
  }

  it("gives each row a report, continues after errors, and writes no formula", async () => {
    const { url, reports } = await up({ reports: 0 });
    const pages = ["https://example.com/a", "=1+1", '"say ""no""\n;=1, twice"', "https://example.com/b"];
    const { progress = [], ...rest } = await start(url, `url\n${pages.join("\n")}\n`);
    const { batch, total, created, failed } = progress.at(-1) as Record<string, unknown>;
    assert.deepEqual([batch, total, created, failed, rest], ["default", 4, 2, 2, {}]);
    const [first = "", second = "", third = "", fourth = "", ...more] = results();
    const of = (page: string) => reports.list({}).find((report) => report.url === page) as Report;
    assert.equal(first, row(0, "https://example.com/a", of("example.com/a"), "created"));
    assert.match(second, /^[\d-]+,1,"'=1\+1",,,failed,"The URL must be .*"$/);
    assert.match(third, /^[\d-]+,2,"say ""no""\n;'=1, twice",,,failed,".+"$/);
    assert.equal(fourth, row(3, "https://example.com/b", of("example.com/b"), "created"));
    assert.deepEqual(more, []);
  });

  it("keeps the other columns, with a header for each list that has others", async () => {
    const { url } = await up({ reports: 0 });
    const own = (text: string) => text.replace(/^[\d-]+,\d+,"[^"]+",\d*,\d*,\w+,"[^"]*"/, "…");
    await start(url, "owner,url,team\nKim,https://example.com/a,\n=1,https://example.com/b,web\n");
    await start(url, "url\nhttps://example.com/c\n");
    const [header, ...lines] = written().trim().split("\r\n").map(own);
    assert.equal(header, `${HEADER},"owner","team"`);
    assert.deepEqual(lines.slice(0, 2).sort(), [`…,"'=1","web"`, '…,"Kim",""']);
    assert.deepEqual(lines.slice(2), [HEADER, "…"]);
  });

  const excel: [what: string, csv: Buffer][] = [
    [
      "semicolons",
      Buffer.from('\uFEFFURL;Kunde\r\nhttps://example.com/a;Müller\r\n;\r\nhttps://example.com/b,c;"x;\r\ny"\r\n'),
    ],
    [
      "tabs, and no UTF-8",
      Buffer.from('url\tKunde\nhttps://example.com/a\tMüller\nhttps://example.com/b,c\t"x;\r\ny"', "latin1"),
    ],
  ];
  for (const [what, csv] of excel)
    it(`reads a file that Excel saved with ${what}`, async () => {
      const { url, reports } = await up({ reports: 0 });
      await start(url, csv);
      const pages = reports.list({}).map((report) => report.url);
      assert.deepEqual(pages.sort(), ["example.com/a", "example.com/b,c"]);
      assert.match(written(), /^[^\n]+,"Kunde"\r\n/);
      assert.match(written(), /,"Müller"\r\n/);
      assert.match(written(), /,"x;\r\ny"\r\n/);
    });

  it("creates a sample where there is no file, and no other file", async () => {
    const { url, reports } = await up({ reports: 0 });
    rmSync(file("urls.csv"), { force: true });
    await deploy(url, { tab: { URLS_CSV: "urls.csv", RESULTS_CSV: "results.csv" } });
    await press("start", batchEnded);
    assert.deepEqual([reports.list({}).length, results().length], [3, 3]);
  });

  it("creates a report for every row of the sample", async () => {
    const { url, reports } = await up({ reports: 0 });
    await start(url, readFileSync(join(root, "examples/urls.csv")));
    const rows = readFileSync(file("urls.csv"), "utf8").trim().split("\n").length - 1;
    assert.equal(reports.list({}).length, rows);
    assert.equal(results().filter((one) => /,\d+,\d+,created,""$/.test(one)).length, rows);
  });

  it("writes a repeated result unless the file has the same row, also in a day's second round", async () => {
    const { url } = await up({ reports: 0 });
    await start(url, "url\nhttps://example.com/a\n");
    const [row] = results();
    const seo = { index: 0, input: { url: "https://example.com/a" }, outcome: "failed", repeated: true };
    for (const _click of [1, 2]) {
      await deploy(url, {
        tab: tab(),
        change(node) {
          if (node.name !== "start") return;
          const writer = example.find(({ name }) => name === "write a row");
          Object.assign(node, { props: [{ p: "seo", v: JSON.stringify(seo), vt: "json" }], wires: [[writer?.id]] });
        },
      });
      await press("start", ({ received }) => received === 2);
    }
    assert.deepEqual(results(), [row, `${TODAY},0,"https://example.com/a",,,failed,""`]);
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
    for (const [csv, sentence] of [
      ["url\n", `No rows in ${file("urls.csv")}.`],
      [
        "page;owner\nhttps://example.com/;\n",
        `No column "url" in ${file("urls.csv")}. Its first line must name the columns. It is: page;owner`,
      ],
      [
        "url,Privacy\nhttps://example.com/,private\n",
        `A column "privacy" is in ${file("urls.csv")}. Delete it, and set Privacy in the node audit pages.`,
      ],
    ] as const) {
      writeFileSync(file("urls.csv"), csv);
      await deploy(url, { tab: tab() });
      await says(sentence);
    }
    assert.equal(existsSync(file("results.csv")), false);
    assert.deepEqual(requests, []);
  });

  it("shows that a row cannot be written", async () => {
    const { url } = await up({ reports: 0 });
    const places = { ...tab(), RESULTS_CSV: file("none/results.csv") };
    const { error: [text] = [] } = await start(url, "url\nhttps://example.com/a\n", places);
    assert.match(String(text), /ENOENT.*none\/results\.csv/);
  });

  unavailable(async (url, { says }) => {
    const list = "url\nhttps://example.com/a\nhttps://example.com/b\n";
    const { error: [text] = [], progress = [] } = await start(url, list);
    assert.match(String(text), says);
    const { paused, waiting } = progress.at(-1) as { paused: string; waiting: number };
    assert.match(paused, says);
    assert.equal(waiting, 2);
    assert.equal(written(), "");
  });
});

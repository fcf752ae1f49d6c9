import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { journalsIn, readFailures, readKept, toCsv } from "../../../src/audit/failures.js";
import { mayHaveJournals } from "../../../src/audit/folder.js";
import { SeoError } from "../../../src/errors.js";
import { closeAfterEach, openFolder } from "../../support/opened.js";
import { createBench, createFake, urls } from "./fake.js";

const rejected = new SeoError("SEO_REJECTED", "No.", { attempts: 1 });
const candidates = [7, 8].map((id) => ({ id, url: "example.org/page/2", created_at: "" }));
const lost = new SeoError("SEO_NETWORK", "Lost.", { attempts: 1, uncertain: true, candidates });

describe("The failures of batches that are kept", () => {
  const use = closeAfterEach();

  /** The folder of a node that has kept so many batches, of these pages. */
  async function keep(pages: unknown[], batches = 1) {
    const { path } = await use(openFolder());
    const fate = (page: string) => (page.endsWith("/2") ? lost : page.endsWith("/3") ? rejected : "answered");
    const { add, audit, finished } = createBench(path, createFake({ fate }));
    for (let batch = 1; batch <= batches; batch++) {
      await add(pages, { batch: String(batch) });
      await finished(String(batch));
    }
    await audit.close();
    return { path, folder: join(path, "node"), journals: journalsIn(path, "node") };
  }
  const failing = urls(1, 3);

  it("are the failed and uncertain rows, in order", async () => {
    const [page = ""] = failing;
    const { path, journals } = await keep([...urls(3), { url: "", owner: 1 }, page, { url: page }]);
    const rows = await readFailures(journals, "1");
    const failed = { outcome: "failed", message: "No.", candidates: [] };
    assert.deepEqual(rows, [
      {
        index: 1,
        url: urls(2)[1],
        outcome: "uncertain",
        message: "Lost.",
        candidates: [7, 8].map((id) => `example.org/page/2 (#${id})`),
      },
      { index: 2, url: page, ...failed },
      { index: 3, url: '{"url":"","owner":1}', ...failed, message: "url is required; the row's url is blank." },
      { index: 4, url: page, ...failed },
      { index: 5, url: page, ...failed },
    ]);
    assert.match(toCsv(rows), /"example\.org\/page\/2 \(#7\), example\.org\/page\/2 \(#8\)"/);
    assert.deepEqual(await readFailures(journalsIn(path, "other"), "1"), []);
    const file = join(path, "file");
    writeFileSync(file, "");
    // Opening what is no folder says so.
    const places: [folder: string, node: string][] = [
      [path, "node"],
      [path, "other"],
      [file, "node"],
    ];
    assert.deepEqual(
      places.map((place) => mayHaveJournals(...place)),
      [true, false, true],
    );
  });

  it("are read from each journal, beginning with the newest, unless that is damaged or gone", async () => {
    const { folder, journals } = await keep(failing, 11);
    mkdirSync(join(folder, "12-12.jsonl"));
    writeFileSync(join(folder, "13-13.txt"), "");
    writeFileSync(join(folder, "14-14.jsonl"), '{"type":"batch","format":1,"name":"14"}\n');
    const all: { key: string; read(): Promise<unknown> }[] = [];
    for await (const one of journals()) all.push(one);
    const paths = all.map(({ key }) => key.replace(/ \d+$/, ""));
    const numbers = Array.from({ length: 11 }, (_, index) => 11 - index);
    assert.deepEqual(
      paths.map((path) => Number.parseInt(basename(path), 10)),
      numbers,
    );
    const [gone = "", damaged = ""] = paths;
    rmSync(gone);
    writeFileSync(damaged, readFileSync(damaged, "utf8").replace('"ended"', '"strange"'));
    assert.equal(await all[0]?.read(), undefined);
    const kept = [...(await readKept(journals, new Map())).values()];
    assert.deepEqual(
      kept.map((one) => [one?.batch, one && "reason" in one ? one.reason : undefined]),
      numbers.slice(1).map((number) => [String(number), number === 10 ? "damaged" : undefined]),
    );
    for (const name of ["10", "14", "another"]) assert.deepEqual(await readFailures(journals, name), []);
  });
});

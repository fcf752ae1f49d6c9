import assert from "node:assert/strict";
import { SeoError } from "../../src/errors.js";
import { createAccount } from "../../src/reconcile/account.js";
import { covers } from "../../src/reconcile/list.js";

const LIST = "seo-report-list";
type Json = Record<string, unknown>;

const response = (data: unknown) => ({ statusCode: 200, headers: {}, body: { data } });
const dated = (id: unknown, second: number): Json => ({ id, created_at: new Date(second * 1000).toISOString() });
const at = (second: number) => second * 1000;

/** An account whose short list is `short`, and whose list has these pages. `all`: also the records that earlier pages had. */
function open(short: unknown = [], pages: { records: Json[]; total?: number; all?: Json[] }[] = []) {
  const asked: [type: string, input: Record<string, string>][] = [];
  let read = 0;
  const account = createAccount(
    {
      async request() {
        if (short instanceof Error) throw short;
        return response(short);
      },
      async *pages(type, input) {
        asked.push([type, input]);
        for (const { records, total, all = records } of pages) {
          read++;
          yield { records, total, response: response(all) };
        }
      },
    },
    () => 0,
  );
  return {
    ...account,
    respond: account.observe,
    generatedAt: (id: string) => account.beforeUpdate(id).generatedAt,
    asked,
    read: () => read,
    observe: (...records: Json[]) => account.observe(response(records)),
    readAfter: (watermark: object) => account.readAfter(LIST, watermark as never),
  };
}

describe("The newest report of an account", () => {
  it("is none if the list is empty, and not known if the response is no list or an error", async () => {
    for (const [short, newest] of [
      [[], { rank: 0, ids: [] }],
      [{ message: "No." }, undefined],
      [new SeoError("SEO_SERVER", "No."), undefined],
    ] as const) {
      const account = open(short);
      await account.findNewest(LIST);
      assert.deepEqual(account.newest(), newest);
    }
  });

  it("is not known if the whole short list is of one second: the next page may have more of it", async () => {
    const all = Array.from({ length: 10 }, (_, index) => dated(`report ${index}`, 5));
    for (const [short, rank] of [
      [all, undefined],
      [[...all.slice(1), dated("older", 4)], at(5)],
    ] as const) {
      const { findNewest, newest } = open(short);
      await findNewest(LIST);
      assert.equal(newest()?.rank, rank);
    }
  });

  it("is all of the last second, by creation date, if any ID is not a number", async () => {
    const { newest, observe, findNewest } = open([]);
    await findNewest(LIST);
    observe({ id: 5 });
    observe(dated("a", 1), dated("7", 3), dated("b", 3), dated("7", 3));
    observe(dated("c", 2));
    assert.equal(newest(), undefined, "not known until it is read again");
    await findNewest(LIST);
    assert.deepEqual(newest(), { of: "created_at", rank: at(3), ids: ["7", "b"] });
    const other = open([dated("a", 1), dated("7", 3), dated("b", 3), dated("7", 3), dated("c", 2)]);
    await other.findNewest(LIST);
    assert.deepEqual(other.newest(), { of: "created_at", rank: at(3), ids: ["7", "b"] });
  });
});

describe("The reports of an account", () => {
  it("do not include those that this client deleted, but of a watermark that was taken before", async () => {
    const { findNewest, newest, forget } = open([dated("a", 5), dated("b", 5)]);
    await findNewest(LIST);
    const before = newest();
    forget("a");
    assert.deepEqual([before?.ids, newest()?.ids], [["a", "b"], ["b"]]);
  });

  it("stay claimed, the latest 100,000 at least", () => {
    const { claimAll, claimOf } = open();
    const ids = Array.from({ length: 100_000 }, (_, id) => String(id));
    claimAll(ids, 9);
    assert.equal(claimOf({ id: 0 }), 9);
  });

  it("keep their last date, the latest 10,000 at least", () => {
    const { observe, generatedAt } = open();
    observe({ id: 1, generated_at: "first" }, { id: "x", generated_at: "text" }, { id: 2, generated_at: 7 });
    assert.deepEqual([generatedAt("1"), generatedAt("x"), generatedAt("2")], ["first", "text", undefined]);
    for (let id = 10; id < 10_000; id++) observe({ id, generated_at: "later" });
    assert.equal(generatedAt("1"), "first");
    for (let id = 10; id < 30_010; id++) observe({ id, generated_at: "later" });
    assert.deepEqual([generatedAt("1"), generatedAt("30009"), generatedAt("20010")], [undefined, "later", "later"]);
  });

  it("keep a date that is later than that of a response", () => {
    const { observe, generatedAt, regenerated } = open();
    const [earlier, later] = ["2026-01-01T00:00:00Z", "2026-01-01 02:00:01+02:00"];
    for (const date of ["unknown", earlier, later, earlier]) observe({ id: 1, generated_at: date });
    assert.equal(generatedAt("1"), later);
    regenerated({ id: 1, generated_at: earlier }, "request");
    assert.equal(generatedAt("1"), earlier, "unless this client has just regenerated the report");
  });

  it("keep one date, whether the ID is a number or text, unless the text is written otherwise", () => {
    const { observe, generatedAt } = open();
    observe({ id: "1", generated_at: "before" }, { id: 1, generated_at: "after" }, { id: "01", generated_at: "other" });
    assert.deepEqual([generatedAt("1"), generatedAt("01")], ["after", "other"]);
  });

  it("are listed under the page to which theirs redirected the last time", () => {
    const { claim, namesOf } = open();
    const names = ["b.example", undefined, "c.example", "a.example"].map((url) => {
      claim({ id: 1, url }, "a.example", undefined);
      return namesOf("a.example")[1];
    });
    assert.deepEqual(names, ["b.example", "b.example", "c.example", undefined]);
  });

  it("come with the time of the last response, if it is not known whether their date has moved before it", () => {
    const { respond, observe, beforeUpdate } = open();
    const [given, seen, date] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "Fri, 02 Jan 2026 12:00:05 GMT"];
    respond({ headers: { date }, body: { id: 9 } });
    assert.deepEqual(beforeUpdate("1", given), { generatedAt: given, since: Date.parse(date) });
    observe({ id: 1, generated_at: seen });
    assert.deepEqual(beforeUpdate("1", given), { generatedAt: seen, since: undefined });
    assert.ok(Math.abs(Number(beforeUpdate("2", given).since) - Date.now()) < 1000, "the response had no Date header");
  });

  const after = { of: "id", rank: 5, ids: ["5"] };
  it("are read until a page passes the watermark", async () => {
    const pages = [[9, 8], [7, 6], [5, 4], [3]].map((ids) => ({ records: ids.map((id) => ({ id })), total: 7 }));
    const { readAfter, read, asked } = open([], pages);
    const { records } = await readAfter(after);
    assert.deepEqual([records, read()], [[{ id: 9 }, { id: 8 }, { id: 7 }, { id: 6 }, { id: 5 }, { id: 4 }], 3]);
    assert.deepEqual(asked, [[LIST, { sort_by: "id", sort: "desc", per_page: "25" }]]);
  });

  for (const [name, pages, error] of [
    ["is not sorted", [[1, 2]], "The list of reports is not sorted by date."],
    ["has an ID that is not a number", [[9, "x"]], "The list of reports is not sorted by date."],
    ["becomes shorter", [[9, 8], [7]], "The list of reports became shorter while it was read."],
  ] as const)
    it(`are not known if the list ${name}`, async () => {
      const listed = pages.map((ids, i) => ({ records: ids.map((id) => ({ id })), total: 10 - i }));
      await assert.rejects(open([], listed).readAfter(after), { code: "SEO_RESPONSE", message: error });
    });
});

describe("A list proves that a report does not exist", () => {
  const NONE = { rank: 0, ids: [] };
  const THIRD = { of: "id", rank: 3, ids: ["3"] };
  const some = [{ id: 2 }, { id: 1 }];
  const full = Array.from({ length: 10 }, (_, i) => ({ id: 10 - i }));

  /** `all`: the records of each page, the second of which has only those of the first. `total`: their number by the list. */
  const rows: [title: string, proves: boolean, watermark: object, all: Json[], total: number][] = [
    ["unless it is empty", false, THIRD, [], 0],
    ["if there was none, and a page that is not full is returned again", true, NONE, some, 2],
    ["unless there was none, and a full page is returned again", false, NONE, full, 10],
    ["unless there was none, and more records were counted than are returned", false, NONE, some, 3],
  ];
  for (const [title, proves, watermark, all, total] of rows)
    it(title, async () => {
      const pages = [all, []].map((records) => ({ records, all, total }));
      assert.equal(covers(await open([], pages).readAfter(watermark), watermark as never), proves);
    });
});

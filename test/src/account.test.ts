import assert from "node:assert/strict";
import { pageKey } from "../../src/address.js";
import { SeoError } from "../../src/errors.js";
import { createAccount } from "../../src/reconcile/account.js";
import { covers } from "../../src/reconcile/list.js";

const LIST = "seo-report-list";
const FRESH = 300_000;
type Json = Record<string, unknown>;

const response = (data: unknown) => ({ statusCode: 200, headers: {}, body: { data } });
const dated = (id: unknown, second: number): Json => ({ id, created_at: new Date(second * 1000).toISOString() });
const at = (second: number) => second * 1000;

/** An account whose short list is `short`, and whose list has these pages. `all`: also the records that earlier pages had. */
function open(short: unknown = [], pages: { records: Json[]; total?: number; all?: Json[] }[] = []) {
  const asked: [type: string, input: Record<string, string>][] = [];
  let now = 1_000_000;
  let read = 0;
  const account = createAccount(
    {
      async request(type, input) {
        asked.push([type, input]);
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
    () => now,
  );
  return {
    ...account,
    asked,
    read: () => read,
    pass: (ms: number) => {
      now += ms;
    },
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

  it("is read again once the first report shows that its ID is no number", async () => {
    const { asked, findNewest, observe } = open([]);
    await findNewest(LIST);
    observe(dated("a", 3));
    await findNewest(LIST);
    assert.equal(asked.length, 2);
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

  it("is read from one short list for all requests, and again after five minutes", async () => {
    for (const short of [[{ id: 1 }], new SeoError("SEO_SERVER", "No.")]) {
      const { asked, findNewest, pass } = open(short);
      await Promise.all([findNewest(LIST), findNewest(LIST)]);
      assert.deepEqual(asked, [[LIST, { sort_by: "id", sort: "desc", per_page: "10" }]]);
      pass(FRESH - 1);
      await findNewest(LIST);
      assert.equal(asked.length, 1);
      pass(1);
      await findNewest(LIST);
      assert.equal(asked.length, 2);
    }
  });

  it("is known for longer if a message gets a new one", async () => {
    const { asked, findNewest, pass, claim, observe } = open([{ id: 1 }]);
    await findNewest(LIST);
    pass(FRESH - 1);
    observe({ id: 2 });
    claim({ id: 2 }, pageKey("example.com"));
    pass(FRESH - 1);
    await findNewest(LIST);
    assert.equal(asked.length, 1);
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
  it("stay claimed, the latest 100,000 at least", () => {
    const { claimAll, claimOf } = open();
    claimAll(
      Array.from({ length: 100_000 }, (_, id) => String(id)),
      9,
    );
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

  const after = { of: "id", rank: 5, ids: ["5"] };
  it("after a watermark are read until a page passes it", async () => {
    const pages = [[9, 8], [7, 6], [5, 4], [3]].map((ids) => ({ records: ids.map((id) => ({ id })), total: 7 }));
    const { readAfter, read, asked } = open([], pages);
    const { records } = await readAfter(after);
    assert.deepEqual([records, read()], [[{ id: 9 }, { id: 8 }, { id: 7 }, { id: 6 }, { id: 5 }], 3]);
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
  const SECOND = { of: "created_at", rank: at(3), ids: ["c"] };
  const ids = (...all: number[]) => all.map((id) => ({ id }));
  const [e, d, c, b] = [dated("e", 5), dated("d", 3), dated("c", 3), dated("b", 2)] as [Json, Json, Json, Json];

  const full = ids(10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
  const later = full.slice(1).map(({ id }) => dated(`later ${id}`, 5));

  /** `pages`: all records of each page, with those of earlier pages. */
  const rows: [title: string, proves: boolean, watermark: object, pages: Json[][], known?: Json[]][] = [
    ["if it goes back to the watermark", true, THIRD, [ids(5, 4), ids(3)]],
    ["if it goes back beyond it, because that report was deleted", true, THIRD, [ids(5, 4), ids(2)]],
    ["unless it ends before", false, THIRD, [ids(5, 4), []]],
    ["unless the service ignores the page number", false, THIRD, [ids(5, 4), ids(5, 4)]],
    ["unless it is empty", false, THIRD, [[]]],
    ["unless the newest report that is known is missing", false, THIRD, [ids(5, 4, 3)], ids(6)],
    ["even if the newest report was deleted that was known before", true, THIRD, [ids(2)], ids(3)],
    ["if there was none, and it comes to its end", true, NONE, [ids(2, 1), []]],
    ["if there was none, and it is empty", true, NONE, [[]]],
    ["unless it is empty although a report is known", false, NONE, [[]], ids(1)],
    ["if there was none, and a page that is not full is returned again", true, NONE, [ids(2, 1), ids(2, 1)]],
    ["unless there was none, and a full page is returned again", false, NONE, [full, full]],
    [
      "if it goes back beyond the second of the watermark",
      true,
      SECOND,
      [
        [e, d],
        [c, b],
      ],
    ],
    ["if it ends with that second", true, SECOND, [[e, d], [c], []]],
    [
      "unless it is cut within that second",
      false,
      SECOND,
      [
        [...later, d],
        [...later, d],
      ],
    ],
  ];
  it("unless there was none, and more records were counted than are returned", async () => {
    for (const [total, proves] of [
      [3, false],
      [2, true],
    ] as const) {
      const listed = [ids(2, 1), []].map((records) => ({ records, total }));
      assert.equal(covers(await open([], listed).readAfter(NONE), NONE), proves);
    }
  });

  it("even if this client deleted the newest report that is known", async () => {
    const { readAfter, observe, forget } = open([], [{ records: ids(5, 4, 3) }]);
    observe({ id: 6 });
    forget("6");
    assert.equal(covers(await readAfter(THIRD), THIRD as never), true);
  });

  for (const [title, proves, watermark, pages, known = []] of rows)
    it(title, async () => {
      const listed = pages.map((all, i) => ({
        records: all.filter(
          (one) =>
            !pages
              .slice(0, i)
              .flat()
              .some(({ id }) => id === one.id),
        ),
        all,
      }));
      const { readAfter, observe } = open([], listed);
      observe(...known);
      assert.equal(covers(await readAfter(watermark), watermark as never), proves);
    });
});

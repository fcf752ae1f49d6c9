import assert from "node:assert/strict";
import { setTimeout as late } from "node:timers/promises";
import fc from "fast-check";
import { SeoError } from "../../src/errors.js";
import { type ListPage, readPages, readShape } from "../../src/lists.js";
import type { CallResponse } from "../../src/responses.js";
import { type Lists, listed, type Row, reports, shapes, startLists } from "../support/lists.js";
import { readAll } from "../support/reading.js";

const REPORTS = "seo-report-list";
const table = Object.entries(shapes);
/** Shapes that do not show whether another page follows. */
const silent = new Set([
  "counted from 0",
  "counted from 1, but called 0",
  "plain array",
  "plain data",
  "plain array of the whole list",
  "the whole list in data",
]);
const response = { statusCode: 200, headers: {}, attempts: 1, duration: 0, waited: 0 };
/** A response that needs no HTTP. */
const answered = (body: unknown): CallResponse => ({ body, ...response });
/** Reads a list from the given pages. The key of a page is what its request adds to the query: `page=2`. */
async function readGiven(pages: Record<string, unknown>, limit = 0) {
  const asked: string[] = [];
  const read: ListPage[] = [];
  const ask = async (extra: Record<string, string>) => {
    const what = String(new URLSearchParams(extra));
    asked.push(what);
    if (what in pages) return answered(pages[what]);
    throw new Error(`${what} is not available`);
  };
  for await (const page of readPages(ask, {}, { id: "id", limit, ahead: 4 })) read.push(page);
  const ids = read.flatMap(({ records }) => records).map((row) => (row as { id: number }).id);
  return { asked, ids, last: read.at(-1) };
}
/** Reads a list whose pages `get` returns. */
async function readGot(get: (extra: Record<string, string>) => Promise<CallResponse>, size = "100") {
  const records: unknown[] = [];
  let truncated = false;
  for await (const page of readPages(get, { per_page: size }, { ahead: 2 })) {
    records.push(...page.records);
    ({ truncated } = page);
  }
  return { records, truncated };
}
const pagesAsked = ({ asked }: Lists) => asked.map(({ query }) => Number(query.get("page") ?? 1));

describe("The position of a page", () => {
  const nothing = { page: undefined, pages: undefined, total: undefined, more: undefined, cursor: undefined };
  const data = [{ id: 1 }];
  // Figures beside the data. If they are undefined, the body is a plain list.
  for (const [beside, found] of [
    [undefined, {}],
    [{}, {}],
    [{ meta: { total: 1, current_page: "2", last_page: 3 } }, { page: 2, pages: 3, total: 1 }],
    [{ meta: { total: null, current_page: "", last_page: "many" } }, {}],
    [{ meta: { last_page: 0, current_page: false } }, {}],
    [{ total: 1.5 }, {}],
    [{ links: { next: "https://other.example/?page=2" } }, { more: true }],
    [{ links: { next: null } }, { more: false }],
    [{ links: { next: "" } }, { more: false }],
    [{ links: {} }, {}],
    [{ next_page_url: "/?page=2" }, { more: true }],
    [{ next_page_url: null }, { more: false }],
    [{ meta: { next_page_url: null } }, { more: false }],
    [{ meta: { next_cursor: "c" } }, { more: true, cursor: "c" }],
    [{ meta: { next_cursor: 7 } }, { more: true, cursor: "7" }],
    [{ meta: { next_cursor: null } }, { more: false }],
    [{ meta: { next_cursor: {} } }, { more: false }],
    [{ links: { next: "/api/v1/reports?cursor=a%26b&per_page=10" } }, { more: true, cursor: "a&b" }],
    [{ links: { next: 7 } }, { more: true }],
  ] as const) {
    const body = beside ? { data, ...beside } : data;
    it(`is read from ${JSON.stringify(body)}`, () => {
      assert.deepEqual(readShape(body), { records: data, ...nothing, ...found });
    });
  }
});

describe("Reading all pages", () => {
  let lists: Lists;

  before(async () => {
    lists = await startLists({ all: [] });
  });

  after(() => lists.close());

  /** Sets the service's list and behavior from here on. */
  const serve = (options: Lists["options"]) => {
    lists.asked.length = 0;
    lists.busiest = 0;
    lists.options = options;
  };

  describe("stops", () => {
    for (const [what, beside] of Object.entries({
      "a next link": { links: { next: "https://other.example/?page=2" } },
      "the same cursor": { meta: { next_cursor: "again" } },
      "a last_page that is far too high": { meta: { current_page: 1, last_page: 1e6, total: 1e8 } },
    })) {
      it(`if the service always returns ${what}`, async () => {
        serve({ all: [], reply: () => ({ body: { data: reports(100), ...beside } }) });
        const { records } = await readAll(lists.url, REPORTS);
        assert.deepEqual(records, reports(100));
        assert.ok(lists.asked.length <= 5, `${lists.asked.length} requests`);
      });
    }

    it("at an empty page before last_page, even if later pages were requested ahead", async () => {
      serve({
        all: [],
        reply: ({ query }) => {
          const page = Number(query.get("page") ?? 1);
          const data = page > 3 ? [] : reports(100, page * 1000);
          return { body: { data, meta: { current_page: page, last_page: 9, total: 900 } } };
        },
      });
      const { records } = await readAll(lists.url, REPORTS);
      assert.equal(records.length, 300);
    });
  });

  describe("while the list changes", () => {
    /** Changes the list when its third page is requested. */
    const changing = (change: (all: Lists["options"]["all"]) => Lists["options"]["all"]) => {
      serve({
        all: reports(350),
        wait: async ({ nth }) => {
          if (nth === 3) lists.options.all = change(lists.options.all);
        },
      });
      return readAll(lists.url, REPORTS, { concurrency: 1 });
    };

    it("returns no record twice if its ID becomes text", async () => {
      const withTextId = (row: Row) => ({ ...row, id: String(row.id) });
      const { records } = await changing((all) => [...reports(50, 351), ...all.map(withTextId)]);
      const ids = records.map((row) => Number((row as { id: unknown }).id));
      const expected = reports(350).map(({ id }) => id);
      assert.deepEqual(ids, expected);
    });

    it("stops if records are deleted and the last pages with them", async () => {
      const { records, pages } = await changing((all) => all.slice(0, 250));
      assert.deepEqual(records, reports(350).slice(0, 250));
      assert.equal(pages, 3);
    });
  });

  describe("requests", () => {
    it("every page with the whole query, even if the links lack it", async () => {
      serve({ all: reports(350) });
      const input = { search: "a&b=c", search_by: "url", project: "x y", result: "bad", sort_by: "score", sort: "asc" };
      await readAll(lists.url, REPORTS, { input });
      for (const { path, query } of lists.asked) {
        assert.equal(path, "/api/v1/reports");
        const { page: _, per_page, ...rest } = Object.fromEntries(query);
        assert.deepEqual({ ...rest, per_page }, { ...input, per_page: "100" });
      }
      assert.deepEqual(pagesAsked(lists), [1, 2, 3, 4]);
    });

    it("the right pages if the service returns smaller ones than requested", async () => {
      serve({ all: reports(130), most: 25 });
      assert.deepEqual((await readAll(lists.url, REPORTS)).records, reports(130));
    });
  });

  describe("ahead", () => {
    it("uses the whole concurrency, and keeps the order of the pages", async () => {
      for (const concurrency of [1, 2, 5]) {
        // Pages that are requested together return in reverse order.
        serve({ all: reports(2000), wait: ({ nth }) => late((concurrency - (nth % concurrency)) * 5) });
        const { records } = await readAll(lists.url, REPORTS, { concurrency });
        assert.deepEqual(records, reports(2000));
        assert.equal(lists.busiest, concurrency);
      }
    });

    it("requests at most three pages more than were taken", async () => {
      const asked: number[] = [];
      const ask = async ({ page = "1" }: Record<string, string>) => {
        asked.push(Number(page));
        const body = { data: reports(10, Number(page) * 10), meta: { current_page: page, last_page: 20 } };
        return answered(body);
      };
      let taken = 0;
      for await (const { page } of readPages(ask, {}, { id: "id", limit: 0, ahead: 3 })) {
        assert.equal(page, ++taken);
        assert.equal(asked.length, Math.min(20, taken + 3), `when ${taken} were taken`);
      }
      const all = Array.from({ length: 20 }, (_, i) => i + 1);
      assert.deepEqual(asked, all);
    });
  });

  for (const [name, shape] of table)
    it(`returns the right records, in few requests, whatever is read: ${name}`, async () => {
      const property = fc.asyncProperty(
        fc.constantFrom(...Object.entries(listed)),
        fc.oneof(fc.nat(320), fc.constantFrom(0, 99, 100, 101, 300)),
        fc.constantFrom("10", "25", "50", "100"),
        fc.oneof(fc.nat(340), fc.constantFrom(0, 99, 100, 101, 299, 300, 301)),
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.nat(4), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async ([type, make], count, per_page, limit, concurrency, latencies, ends) => {
          serve({ all: make(count), shape, ends, wait: ({ nth }) => late(latencies[nth % latencies.length] ?? 0) });
          const { records, truncated } = await readAll(lists.url, type, { limit, concurrency, input: { per_page } });
          assert.deepEqual(records, make(count).slice(0, limit || undefined));
          // A full page for every number can be the whole list, or that of a service that ignores the number.
          const isAmbiguous = silent.has(name) && count === Number(per_page);
          if (!isAmbiguous) assert.equal(truncated, limit > 0 && limit < count);
          const needed = Math.max(1, Math.ceil(Math.min(limit || count, count) / Number(per_page)));
          const probe = silent.has(name) ? 1 : 0;
          assert.ok(lists.asked.length <= needed + probe, `${lists.asked.length} requests instead of ${needed}`);
          assert.deepEqual(lists.strayed, [], "no request goes to the host in the links");
        },
      );
      // As many as the limit, on the only page.
      await fc.assert(property, { numRuns: 15, examples: [[[REPORTS, reports], 4, "10", 4, 1, [0], false]] });
    });
});

describe("A list of several pages", () => {
  const rows = (...ids: number[]) => ids.map((id) => ({ id }));

  it("is read by cursor if it has both a cursor and page numbers", async () => {
    const meta = { current_page: 1, last_page: 3 };
    const { asked, ids } = await readGiven({
      "": { data: rows(1, 2), meta: { ...meta, next_cursor: "b" } },
      "cursor=b": { data: rows(3, 4), meta: { ...meta, next_cursor: "c" } },
      "cursor=c": { data: rows(5), meta: { ...meta, next_cursor: null } },
    });
    assert.deepEqual(asked, ["", "cursor=b", "cursor=c"]);
    assert.deepEqual(ids, [1, 2, 3, 4, 5]);
  });

  it("is truncated at the limit only if the next page has a new record, or fails", async () => {
    for (const [truncated, next] of [[false, []], [false, rows(1, 2)], [true, rows(2, 3)], [true]] as const) {
      const { asked, last } = await readGiven({ "": rows(1, 2), ...(next && { "page=2": next }) }, 2);
      assert.deepEqual([asked, last?.truncated], [["", "page=2"], truncated]);
    }
  });

  it("fails at the page whose request failed, after returning the pages before it", async () => {
    // Also if only a gateway does not find it, or a page before it says that it exists.
    const notFound = (body: unknown) => new SeoError("SEO_NOT_FOUND", "lost", { body });
    const failures: [cause: Error, figures?: object][] = [
      [new Error("lost"), { meta: { last_page: 3 } }],
      [new SeoError("SEO_SERVER", "lost", { body: {} })],
      [notFound("<html>")],
      [notFound({}), { meta: { last_page: 3 } }],
      [notFound({}), { links: { next: "?" } }],
    ];
    for (const [cause, figures] of failures) {
      const ask = async ({ page }: Record<string, string>) => {
        if (page === "2") throw cause;
        return answered({ data: rows(Number(page ?? 1)), ...figures });
      };
      const reading = readPages(ask, {}, { id: "id", limit: 0, ahead: 3 });
      assert.deepEqual((await reading.next()).value?.records, rows(1));
      await late(20);
      await assert.rejects(reading.next(), /lost/);
    }
  });
});

describe("A list that shifts while it is read", () => {
  const row = (id: number) => ({ id });
  const ids = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => row(from + i));

  it("is read to its last page, even if a page has only records of earlier pages", async () => {
    // Ten reports were created after the first page was read.
    const pages = [ids(1, 10), ids(1, 10), ids(11, 20), ids(21, 30), ids(31, 40)];
    for (const own of [true, false]) {
      const get = async ({ page = "1" }: Record<string, string>) =>
        answered({ data: pages[Number(page) - 1], meta: { ...(own && { current_page: page }), last_page: 5 } });
      assert.deepEqual((await readGot(get)).records, ids(1, 40));
    }
  });

  it("has each record once, also if a page repeats one", async () => {
    const { records } = await readGot(async () => answered([{ id: 1 }, { id: 2 }, { id: 1 }]));
    assert.deepEqual(records, [{ id: 1 }, { id: 2 }]);
  });

  it("is truncated if the service returns the same full page for every number", async () => {
    for (const more of [{}, { links: { next: "/?page=2" } }, { meta: { current_page: 1, last_page: 3 } }]) {
      const get = async () => answered({ data: ids(1, 10), ...more });
      assert.deepEqual(await readGot(get, "10"), { records: ids(1, 10), truncated: true }, JSON.stringify(more));
    }
    const endless = async ({ page = 1 }: Record<string, unknown>) =>
      answered({ data: ids(1, 10), meta: { current_page: page, last_page: Number(page) + 1 } });
    assert.deepEqual(await readGot(endless, "10"), { records: ids(1, 10), truncated: true });
    assert.deepEqual(await readGot(async () => answered(ids(1, 12)), "10"), { records: ids(1, 12), truncated: false });
  });

  it("is truncated if records were moved past the page that was read", async () => {
    const get = async ({ page = "1" }) => {
      const [data, total] = page === "1" ? [ids(1, 10), 20] : [ids(12, 20), 19];
      return answered({ data, meta: { last_page: 2, total } });
    };
    assert.equal((await readGot(get)).truncated, true);
  });

  it("is read completely or truncated if only links say that a page follows", async () => {
    const property = fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 25 }), { maxLength: 6 }), async (created) => {
      let all = ids(1, 35);
      const shifts = [...created];
      const get = async ({ page = "1" }: Record<string, string>) => {
        const start = (Number(page) - 1) * 10;
        const next = start + 10 < all.length ? "/?page=9" : null;
        const body = { data: all.slice(start, start + 10), links: { next } };
        const first = 100 + all.length;
        all = [...ids(first, first - 1 + (shifts.shift() ?? 0)), ...all];
        return answered(body);
      };
      const { records, truncated } = await readGot(get);
      const missing = ids(1, 35).filter(({ id }) => !records.some((record) => (record as { id: number }).id === id));
      assert.ok(truncated || missing.length === 0, JSON.stringify(missing));
      if (created.every((count) => count < 10)) assert.equal(truncated, false);
    });
    await fc.assert(property);
  });
});

describe("A list of which some records have no ID", () => {
  const rows = Array.from({ length: 25 }, (_, i) => (i % 4 === 0 ? { url: `example.com/${i}` } : { id: i }));

  for (const [name, shape] of table)
    it(`is returned completely: ${name}`, async () => {
      const lists = await startLists({ all: rows, shape });
      const { records, truncated } = await readAll(lists.url, REPORTS, { input: { per_page: "10" } });
      assert.deepEqual([records, truncated], [rows, false]);
      const cut = await readAll(lists.url, REPORTS, { input: { per_page: "10" }, limit: 12 });
      assert.deepEqual([cut.records, cut.truncated], [rows.slice(0, 12), true]);
      await lists.close();
    });

  it("ends if the service ignores the page number", async () => {
    const all = rows.slice(0, 10);
    const { records } = await readGot(async () => answered(all));
    assert.deepEqual(records, all);
  });
});

describe("A response that is not a usable list", () => {
  const rejected = (body: unknown, error: object) => {
    const reading = readGot(async () => answered(body));
    return assert.rejects(reading, { code: "SEO_RESPONSE", ...error });
  };

  for (const data of [[null], ["one"]])
    it(`is rejected: records that are ${typeof data[0]}`, () => rejected({ data }, { message: /not an object/ }));

  for (const body of [{}, { data: {} }, { data: null }, "text", 7, null])
    it(`is rejected: ${JSON.stringify(body)}`, () =>
      rejected(body, {
        message: "The response is not a list: expected an array, or an object with an array in data.",
        details: { body, attempts: 1 },
      }));
});

import assert from "node:assert/strict";
import { pageKey } from "../../src/address.js";
import { SeoError } from "../../src/errors.js";
import { type Lookup, operations } from "../../src/operations.js";
import { createAccount } from "../../src/reconcile/account.js";
import { look as lookOnce } from "../../src/reconcile/look.js";
import { type OpenRequest, Search, toCandidates } from "../../src/reconcile/search.js";

const HEADER = Date.UTC(2026, 0, 2, 12, 0, 5);
/** Five seconds before the look, less a second, because a Date header has whole seconds. */
const SENT = HEADER - 6000;
const DAY = 86_400_000;
const zoned = (ms: number) => new Date(ms).toISOString();
const bare = (ms: number) => zoned(ms).slice(0, 19).replace("T", " ");
const offset = (ms: number, sign: string) => `${zoned(ms - 7_200_000).slice(0, 19)}${sign}`;

/** After a rejection by the service itself, the only look decides; otherwise, the first of several does not. */
const lost = (decides: boolean) => new SeoError("SEO_SERVER", "No.", decides ? { statusCode: 500, body: {} } : {});
const searchFor = (request: OpenRequest, decides: boolean) => new Search(request, lost(decides), 300_000, 0);

const shownAs = (generated_at: unknown) => ({ data: { id: 7, url: "example.com", created_at: "c", generated_at } });

/**
 * How a look at an update ends if the service shows the report with `shown`, and `known` was its date before it was sent.
 * `earlier`: the dates at earlier looks.
 */
async function look(
  shown: unknown,
  known?: string,
  { decides = true, earlier = [] as unknown[], body = shownAs(shown) as unknown } = {},
) {
  const asked: unknown[] = [];
  const entry: OpenRequest = {
    lookup: operations["seo-report-update"].lookup as Lookup,
    input: { reportId: "7" },
    page: pageKey("7"),
    sentAt: 10_000,
    generatedAt: known,
  };
  const bodies = [...earlier.map(shownAs), body];
  const requests = {
    request: async (...all: unknown[]) => {
      asked.push(all);
      return { statusCode: 200, headers: { date: new Date(HEADER).toUTCString() }, body: bodies.shift() };
    },
    pages: () => assert.fail("no list"),
  };
  const account = createAccount(requests, () => 0);
  const knowledge = { account, requester: requests, open: new Set([entry]), now: () => 15_000 };
  const read = () => assert.fail("no list");
  const search = searchFor(entry, decides && earlier.length === 0);
  for (const [nth] of earlier.entries()) {
    assert.equal((await lookOnce(knowledge, search, read)).was, "open");
    search.apply({ was: "open" }, 0);
    while (nth === earlier.length - 1 && decides && !search.decides) search.apply({ was: "open" }, 0);
  }
  asked.length = 0;
  const { was } = await lookOnce(knowledge, search, read);
  assert.deepEqual(asked, [["seo-report-show", { reportId: "7" }]]);
  return was;
}

describe("An update whose response was lost", () => {
  const before = zoned(SENT - 3_600_000);
  const noFraction = (date: string) => date.replace(/\.\d+/, "");
  const rows: [title: string, shown: unknown, known: string | undefined, was: string][] = [
    ["its date moved", zoned(SENT - 60_000), before, "carried out"],
    ["its date moved, without a time zone", bare(SENT - 60_000), bare(SENT - 70_000), "carried out"],
    ["its date did not move", before, before, "not carried out"],
    ["its date moved to more than a day ago", zoned(SENT - DAY - 1000), before, "not carried out"],
    ["no date was known, and it is that of sending", zoned(SENT), undefined, "carried out"],
    ["no date was known, and it is before sending", zoned(SENT - 1), undefined, "undecided"],
    ["no date was known, and it is a minute after the look", zoned(HEADER + 60_000), undefined, "carried out"],
    ["no date was known, and it is later", zoned(HEADER + 60_001), undefined, "undecided"],
    ["no date was known, and it is a day before sending", zoned(SENT - DAY), undefined, "undecided"],
    ["no date was known, and it is more than a day before", zoned(SENT - DAY - 1), undefined, "not carried out"],
    ["no date was known, and it has no time zone", bare(SENT + 1000), undefined, "undecided"],
    ["no date was known, and its zone is two hours behind", offset(SENT + 1000, "-02:00"), undefined, "carried out"],
    [
      "no date was known, and its zone is written without a colon",
      offset(SENT + 1000, "-0200"),
      undefined,
      "carried out",
    ],
    ["the date that was known is the same, written without a fraction", noFraction(before), before, "not carried out"],
    [
      "the date that was known is the same, written with an offset",
      offset(Date.parse(before), "-02:00"),
      before,
      "not carried out",
    ],
    ["the date that was known differs by less than a second", zoned(Date.parse(before) + 999), before, "undecided"],
    ["the date that was known had no time zone", before, bare(SENT - 70_000), "undecided"],
    ["the date that was known is the same day, without a time", before.slice(0, 10), before.slice(0, 10), "undecided"],
    ["the date that was known is no date", before, "3 days ago 5", "undecided"],
    ...[null, undefined, "", 7, "1 second ago", "in 2 days"].flatMap((shown): typeof rows => [
      [`it has no date: ${shown}`, shown, before, "undecided"],
      [`it has no date, and none was known: ${shown}`, shown, undefined, "undecided"],
    ]),
  ];
  for (const [title, shown, known, was] of rows)
    it(`is ${was} if ${title}`, async () => {
      assert.equal(await look(shown, known), was);
      const early = await look(shown, known, { decides: false });
      assert.equal(early, was === "carried out" ? was : "open", "only the deciding look proves the contrary");
    });

  it("took effect if its date moved since an earlier look", async () => {
    const later = bare(SENT + 1000);
    assert.equal(await look(later, undefined, { earlier: [bare(SENT - 60_000)] }), "carried out");
    assert.equal(await look(later, undefined, { earlier: [null, bare(SENT - 60_000)] }), "carried out");
    assert.equal(await look(later, undefined, { earlier: [later] }), "undecided");
    assert.equal(await look(later, undefined, { earlier: [null] }), "undecided");
  });

  for (const body of [[], null, "OK", { message: "maintenance" }, { data: { id: 8, generated_at: zoned(SENT) } }])
    it(`is looked for again if the response is not the report: ${JSON.stringify(body)}`, async () => {
      for (const known of [before, undefined])
        for (const decides of [true, false])
          await assert.rejects(look(undefined, known, { body, decides }), { code: "SEO_RESPONSE" });
    });
});

describe("An undecided outcome", () => {
  it("names the ten oldest candidates of a list that is newest first", () => {
    const records = Array.from({ length: 12 }, (_, i) => ({ id: 12 - i, url: "u", created_at: "c", score: 1 }));
    const candidates = records.slice(2).map(({ id }) => ({ id, url: "u", created_at: "c" }));
    assert.deepEqual(toCandidates(records), candidates);
  });
});

describe("A create request whose response was lost", () => {
  const PAGE = "example.com/a";
  const listed = { statusCode: 200, headers: {}, body: {} };
  const report = (id: number, url: string, more = {}) => ({ id, url, created_at: "c", privacy: 0, ...more });

  function open({ fails = false, body = (id: unknown): unknown => ({ data: { id, shown: true } }) } = {}) {
    const asked: unknown[][] = [];
    const requests = {
      request: async (type: string, input: Record<string, string>) => {
        asked.push([type, input]);
        if (fails) throw new Error("No.");
        return { ...listed, body: body(Number(input.reportId)) };
      },
      pages: () => assert.fail("no list"),
    };
    const account = createAccount(requests, () => 0);
    const entries = new Set<OpenRequest>();
    const enter = (url: string, more: Partial<OpenRequest> & { input?: Record<string, string> } = {}): OpenRequest => {
      const lookup = operations["seo-report-store"].lookup as Lookup;
      const watermark = { of: "id", rank: 5, ids: ["5"] } as const;
      const entry = {
        lookup,
        page: pageKey(url),
        sentAt: 0,
        watermark: { ...watermark, ids: ["5"] },
        input: {},
        ...more,
      };
      entries.add(entry);
      return entry;
    };
    const searches = new Map<OpenRequest, Search>();
    const knowledge = { account, requester: requests, open: entries, now: () => 0 };
    const look = (request: OpenRequest, records: object[], decides = true, response: typeof listed | null = listed) => {
      const known = searches.get(request);
      const search = known?.decides === decides ? known : searchFor(request, decides);
      searches.set(request, search);
      const found = { records: records as never, last: report(4, PAGE), repeats: false, total: 0, newest: undefined };
      return lookOnce(knowledge, search, async () => ({ ...found, response: response ?? undefined, startedAt: 0 }));
    };
    /** Until when the decision is put off. */
    const putOff = async (...looked: Parameters<typeof look>) => {
      const finding = await look(...looked);
      return finding.was === "put off" ? finding.until : finding.was;
    };
    return { account, asked, enter, entries, look, putOff };
  }

  it("had no effect if nothing new is listed, which only the deciding look proves", async () => {
    const { enter, look } = open();
    const entry = enter(PAGE);
    assert.deepEqual(await look(entry, [report(5, PAGE)]), { was: "not carried out" });
    assert.deepEqual(await look(entry, [report(5, PAGE)], false), { was: "open" });
  });

  it("took effect if its page's report is listed, which is then claimed", async () => {
    const { account, asked, enter, look } = open();
    const records = [report(8, PAGE), report(7, PAGE), report(6, "example.com/b")];
    assert.deepEqual(await look(enter(PAGE), records, false), {
      was: "carried out",
      response: { ...listed, body: { data: { id: 7, shown: true } } },
    });
    assert.deepEqual(asked, [["seo-report-show", { reportId: "7" }]]);
    assert.deepEqual(
      records.map((record) => account.claimOf(record) !== undefined),
      [false, true, false],
    );
  });

  it("gets the listed record if the report cannot be shown, otherwise stays undecided", async () => {
    const { enter, look } = open({ fails: true });
    const record = report(6, PAGE);
    assert.deepEqual(await look(enter(PAGE), [record]), {
      was: "carried out",
      response: { ...listed, body: { data: record } },
    });
    const other = open({ fails: true });
    const lost = await other.look(other.enter(PAGE), [record], true, null);
    assert.deepEqual(lost, { was: "undecided", records: [record] });
  });

  for (const other of ["OK", [], { message: "maintenance" }, { data: { id: 8 } }])
    it(`gets the listed record if another response comes, but not without its privacy: ${JSON.stringify(other)}`, async () => {
      const { enter, look } = open({ body: () => other });
      const record = report(6, PAGE);
      assert.deepEqual(await look(enter(PAGE), [record]), {
        was: "carried out",
        response: { ...listed, body: { data: record } },
      });
      const changed = open({ body: () => other });
      assert.deepEqual(await changed.look(changed.enter(PAGE, { input: { privacy: "1" } }), [record]), {
        was: "undecided",
        records: [record],
      });
    });

  for (const [input, privacy, request] of [
    [{ privacy: "1" }, 0, ["seo-report-update", { reportId: "6", privacy: "1" }]],
    [{ privacy: "2", password: "p" }, null, ["seo-report-update", { reportId: "6", privacy: "2", password: "p" }]],
    [{ privacy: "1" }, 1, ["seo-report-show", { reportId: "6" }]],
    [{ privacy: "0" }, null, ["seo-report-show", { reportId: "6" }]],
    [{}, 1, ["seo-report-show", { reportId: "6" }]],
  ] as const)
    it(`gets the privacy that was requested: ${JSON.stringify(input)}, listed ${privacy}`, async () => {
      const { asked, enter, look } = open();
      await look(enter(PAGE, { input }), [report(6, PAGE, { privacy })]);
      assert.deepEqual(asked, [request]);
    });

  it("is undecided if another new report is unexplained", async () => {
    const { enter, look } = open();
    const records = [report(8, "example.com/b"), report(7, "example.com/b")];
    assert.deepEqual(await look(enter(PAGE), records), { was: "undecided", records });
  });

  it("is put off while another open request may have created the new report", async () => {
    const { enter, putOff } = open();
    const entry = () => enter(PAGE);
    const records = [report(8, "example.com/b")];
    const other = enter("example.com/b");
    assert.equal(await putOff(entry(), records), 30_000);
    other.horizonAt = 40_000;
    assert.equal(await putOff(entry(), records), 40_000);
    other.horizonAt = 20_000;
    assert.equal(await putOff(entry(), records), 30_000);
    other.watermark = undefined;
    assert.equal(await putOff(entry(), records), "undecided", "it was not sent");
  });

  it("is put off while another request's report can be its own", async () => {
    const { account, enter, putOff } = open();
    const entry = enter(PAGE);
    const [first, sameAddress, unrelated] = [report(6, "b.example"), report(7, "b.example"), report(8, "c.example")];
    account.claim({ id: 6 }, pageKey("b.example"), 10);
    assert.equal(await putOff(entry, [first]), 10);
    account.claimAll(["7", "8"], 20);
    assert.equal(await putOff(entry, [unrelated, sameAddress, first]), 20);
    account.claim({ id: 6 }, pageKey("b.example"));
    assert.equal(await putOff(entry, [unrelated, first]), "not carried out", "it was created later");
  });

  it("reads the address of each new report once, however many requests are open", async () => {
    const { enter, look } = open();
    let read = 0;
    const url = { toString: () => `b.example/${++read}` };
    const records = Array.from({ length: 50 }, (_, index) => report(100 - index, url as unknown as string));
    const entries = Array.from({ length: 50 }, (_, index) => enter(`${PAGE}/${index}`));
    for (const entry of entries) assert.equal((await look(entry, records))?.was, "undecided");
    assert.equal(read, records.length);
  });

  it("waits for requests in flight, whose response can claim its report", async () => {
    const { enter, look, account, entries } = open();
    const entry = enter(PAGE);
    const answered = Promise.resolve().then(() => account.claimAll(["6"], 0));
    enter("example.com/old", { settled: answered });
    assert.deepEqual(await look(entry, [report(6, PAGE)]), { was: "not carried out" });
    const ended = enter(PAGE);
    enter("example.com/old", {
      settled: Promise.resolve()
        .then(() => entries.delete(ended))
        .then(() => {}),
    });
    assert.deepEqual(await look(ended, [report(7, PAGE)]), { was: "open" }, "it was cancelled meanwhile");
  });
});

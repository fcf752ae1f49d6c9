import assert from "node:assert/strict";
import { readAddress } from "../../src/address.js";
import { type Lookup, operations } from "../../src/operations.js";
import { type Entry, lookAtReport, undecided } from "../../src/reconcile/look.js";

const HEADER = Date.UTC(2026, 0, 2, 12, 0, 5);
/** Five seconds before the look, less a second, because a Date header has whole seconds. */
const SENT = HEADER - 6000;
const DAY = 86_400_000;
const zoned = (ms: number) => new Date(ms).toISOString();
const bare = (ms: number) => zoned(ms).slice(0, 19).replace("T", " ");
const offset = (ms: number, sign: string) => `${zoned(ms - 7_200_000).slice(0, 19)}${sign}`;

/** How a look at an update ends if the service shows the report with `shown`, and `known` was its date before it was sent. */
async function look(shown: unknown, known?: string, { decides = true, seenAt = undefined as string | undefined } = {}) {
  const asked: unknown[] = [];
  const entry: Entry = {
    lookup: operations["seo-report-update"].lookup as Lookup,
    input: { reportId: "7" },
    address: readAddress("7"),
    sentAt: 10_000,
    generatedAt: known,
    ...(seenAt !== undefined && { seenAt }),
  };
  const body = { data: { id: 7, url: "example.com", created_at: "c", generated_at: shown } };
  const requests = {
    request: async (...all: unknown[]) => {
      asked.push(all);
      return { statusCode: 200, headers: { date: new Date(HEADER).toUTCString() }, body };
    },
    pages: () => assert.fail("no list"),
  };
  const finding = await lookAtReport(requests, () => 15_000, entry, decides);
  assert.deepEqual(asked, [["seo-report-show", { reportId: "7" }]]);
  assert.equal(entry.seenAt, seenAt ?? String(shown));
  return finding?.was;
}

describe("An update whose response was lost", () => {
  const before = zoned(SENT - 3_600_000);
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
    ["it has no date", null, undefined, "undecided"],
  ];
  for (const [title, shown, known, was] of rows)
    it(`is ${was} if ${title}`, async () => {
      assert.equal(await look(shown, known), was);
      const early = await look(shown, known, { decides: false });
      assert.equal(early, was === "carried out" ? was : undefined, "only the deciding look proves the contrary");
    });

  it("is carried out if its date moved since the first look", async () => {
    assert.equal(await look(bare(SENT + 1000), undefined, { seenAt: bare(SENT - 60_000) }), "carried out");
    assert.equal(await look(bare(SENT + 1000), undefined, { seenAt: bare(SENT + 1000) }), "undecided");
  });
});

describe("An undecided outcome", () => {
  it("names the ten oldest candidates of a list that is newest first", () => {
    const records = Array.from({ length: 12 }, (_, i) => ({ id: 12 - i, url: "u", created_at: "c", score: 1 }));
    assert.deepEqual(undecided(records), {
      was: "undecided",
      candidates: records.slice(2).map(({ id }) => ({ id, url: "u", created_at: "c" })),
    });
  });
});

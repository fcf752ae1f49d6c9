import assert from "node:assert/strict";
import { toCandidates } from "../../src/reconcile/search.js";
import { judgeCreation, judgeUpdate, type ListLook, type NewReport, REPEAT } from "../../src/reconcile/verdict.js";

const CLOCK = Date.UTC(2026, 0, 2, 12, 0, 5);
const ELAPSED = 5000;
/** When it was sent, less a second, because a Date header has whole seconds. */
const SENT = CLOCK - ELAPSED - 1000;
const DAY = 86_400_000;
const zoned = (ms: number) => new Date(ms).toISOString();
const bare = (ms: number) => zoned(ms).slice(0, 19).replace("T", " ");
const offset = (ms: number, sign: string) => `${zoned(ms - 7_200_000).slice(0, 19)}${sign}`;

const usual = { decides: true, isRestored: false, atFirst: undefined, clock: CLOCK, elapsed: ELAPSED };
/** The verdict on an update whose report is shown with a date. `before`: as it was known; `atFirst`: at the earliest look. */
const update = (shown: unknown, before?: string, more: Partial<Parameters<typeof judgeUpdate>[0]> = {}) =>
  judgeUpdate({ ...usual, record: { generated_at: shown }, before, ...more }).was;

describe("An update whose response was lost", () => {
  const before = zoned(SENT - 3_600_000);
  const noFraction = (date: string) => date.replace(/\.\d+/, "");
  const rows: [title: string, shown: unknown, known: string | undefined, was: string][] = [
    ["its date moved", zoned(SENT - 60_000), before, "carried out"],
    ["its date moved, without a time zone", bare(SENT - 60_000), bare(SENT - 70_000), "carried out"],
    ["its date did not move", before, before, "not carried out"],
    ["its date did not move, and has part of a second", zoned(SENT + 1), zoned(SENT + 1), "not carried out"],
    ["its date did not move, and is the second of sending", zoned(SENT), zoned(SENT), "undecided"],
    ["its date did not move, and is that second without a time zone", bare(SENT), bare(SENT), "not carried out"],
    ["its date went back", zoned(SENT - 3_601_000), before, "undecided"],
    ["its date went back to that of sending", zoned(SENT), zoned(SENT + 1000), "undecided"],
    ["its date went back to more than a day ago", zoned(SENT - 2 * DAY), before, "not carried out"],
    ["its date went back to a second more than a day ago", zoned(SENT - DAY - 1000), before, "not carried out"],
    ["its date moved to more than a day ago", zoned(SENT - 2 * DAY), zoned(SENT - 3 * DAY), "undecided"],
    ["no date was known, and it is that of sending", zoned(SENT), undefined, "carried out"],
    ["no date was known, and it is before sending", zoned(SENT - 1), undefined, "undecided"],
    ["no date was known, and it is a minute after the look", zoned(CLOCK + 60_000), undefined, "carried out"],
    ["no date was known, and it is later", zoned(CLOCK + 60_001), undefined, "undecided"],
    ["no date was known, and it is a day before sending", zoned(SENT - DAY), undefined, "undecided"],
    ["no date was known, and it is more than a day before", zoned(SENT - DAY - 1), undefined, "not carried out"],
    ["no date was known, and it has no time zone", bare(SENT + 1000), undefined, "undecided"],
    ["no date was known, and its zone is two hours behind", offset(SENT + 1000, "-02:00"), undefined, "carried out"],
    ["no date was known, and its zone has no colon", offset(SENT + 1000, "-0200"), undefined, "carried out"],
    ["the date that was known is the same without a fraction", noFraction(before), before, "not carried out"],
    ["the date that was known has an offset", offset(Date.parse(before), "-02:00"), before, "not carried out"],
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
    it(`is ${was} if ${title}`, () => {
      assert.equal(update(shown, known), was);
      const early = update(shown, known, { decides: false });
      assert.equal(early, was === "carried out" ? was : "open", "only the deciding look proves the contrary");
    });

  it("of an earlier process took effect if its date moved, however long ago", () => {
    const shown = zoned(SENT - 3 * DAY);
    assert.equal(update(shown, zoned(SENT - 9 * DAY), { isRestored: true }), "carried out");
    assert.equal(update(shown, undefined, { isRestored: true }), "undecided");
  });

  it("can have taken effect only after a known moment, if the date moved since it was read", () => {
    const since = SENT - 59_001;
    for (const [ms, was] of [
      [SENT - 60_000, "carried out"],
      [SENT - 60_001, "undecided"],
    ] as const)
      assert.equal(update(zoned(ms), before, { since }), was);
    assert.equal(update(zoned(SENT), before, { since: CLOCK }), "carried out", "by the clock of the look");
    assert.equal(update(bare(SENT - 61_000), bare(SENT - 70_000), { since }), "carried out");
    assert.equal(update(before, before, { since }), "not carried out");
  });

  it("took effect if its date moved since the earliest look", () => {
    const later = bare(SENT + 1000);
    assert.equal(update(later, undefined, { atFirst: bare(SENT - 60_000) }), "carried out");
    assert.equal(update(later, undefined, { atFirst: later }), "undecided");
    assert.equal(update(bare(SENT - 60_000), undefined, { atFirst: later }), "undecided");
  });
});

describe("A create request whose response was lost", () => {
  const NOW = 1000;
  const report = (url: string, more: Partial<NewReport> = {}): NewReport => ({
    ...{ record: { url }, isOfPage: false, isAtPage: false, isOwn: false, claimedUntil: undefined, others: [] },
    ...more,
  });
  const older = report("older", { isOfPage: true });
  const newer = report("newer", { isOfPage: true });
  const atPage = report("at page", { isOfPage: true, isAtPage: true });
  const own = report("own", { isOwn: true, claimedUntil: 0 });
  const unknown = report("unknown");
  const [claimed, doubtful] = [report("claimed", { claimedUntil: 0 }), report("doubtful", { claimedUntil: 5000 })];
  const explained = report("explained", { others: [0] });
  const later = report("later", { others: [0, 2 * REPEAT] });

  /** `found`: the report that was created, those that may have been, or until when the decision is put off. */
  const rows: [title: string, reports: NewReport[], was: string, found?: unknown, more?: Partial<ListLook>][] = [
    ["no report is new", [], "not carried out"],
    ["all new reports are others'", [claimed], "not carried out"],
    ["its page's report is listed, of several the oldest", [newer, older, unknown], "carried out", "older"],
    ["its page does not redirect any more", [newer, atPage, older], "carried out", "at page"],
    ["its page's report is listed before the horizon", [newer], "carried out", "newer", { decides: false }],
    ["it got its report itself before it was restored", [newer, own], "carried out", "own"],
    ["another new report is unexplained", [unknown, claimed, explained], "undecided", ["unknown"]],
    ["no report of its page is listed before the horizon", [unknown], "open", undefined, { decides: false }],
    ["a request in flight can claim its report", [newer], "unsettled", undefined, { isSettled: false }],
    ["a request in flight explains a report", [unknown], "unsettled", undefined, { isSettled: false }],
    ["all new reports have been claimed", [claimed], "not carried out", undefined, { isSettled: false }],
    ["another request can have created the new report", [explained, claimed], "put off", NOW + REPEAT],
    ["another request is worked on for longer", [explained, later], "put off", 2 * REPEAT],
    ["a report that another request got can be its own", [doubtful], "put off", 5000],
    ["another horizon has passed", [doubtful], "not carried out", undefined, { startedAt: 5000 }],
    ["its address was in doubt before", [doubtful], "put off", 5000, { doubted: new Set(["doubtful"]) }],
    ["its address was in no doubt before", [doubtful], "not carried out", undefined, { doubted: new Set(["x"]) }],
  ];
  for (const [title, reports, was, found, more] of rows)
    it(`is ${was} if ${title}`, () => {
      const verdict = judgeCreation(reports, { decides: true, isSettled: true, startedAt: NOW, ...more });
      const urls = (records: { url?: unknown }[]) => records.map(({ url }) => url);
      const [one] = "record" in verdict ? urls([verdict.record]) : [];
      const all = "records" in verdict ? urls(verdict.records) : undefined;
      assert.deepEqual([verdict.was, one ?? all ?? ("until" in verdict ? verdict.until : undefined)], [was, found]);
    });

  it("names the ten oldest candidates of a list that is newest first, if it is undecided", () => {
    const records = Array.from({ length: 12 }, (_, i) => ({ id: 12 - i, url: "u", created_at: "c", score: 1 }));
    const candidates = records.slice(2).map(({ id }) => ({ id, url: "u", created_at: "c" }));
    assert.deepEqual(toCandidates(records), candidates);
  });
});

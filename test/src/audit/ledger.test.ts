import assert from "node:assert/strict";
import fc from "fast-check";
import { createLedger, type Entry } from "../../../src/audit/ledger.js";
import { createPages, type Outcome, outcomes } from "../../../src/audit/pages.js";
import type { Ended, Sent, Streak } from "../../../src/audit/store.js";
import { STREAK } from "../../../src/audit/streaks.js";

interface Row {
  key: string;
  valid: boolean;
}

/** What is true of a page. */
interface Page {
  rows: number[];
  invalid: boolean;
  state: "waiting" | "sent" | "ended";
  sent?: Sent | undefined;
  ended?: Ended | undefined;
  /** The outcomes of the rows that were told. */
  told: Map<number, Outcome>;
  /** Somebody works on it. */
  taken: boolean;
}

const isDone = ({ told, rows }: Page) => told.size === rows.length;
const hasFailed = (outcome: Outcome) => outcome === "failed" || outcome === "uncertain";

/** The only place where a page can be found. */
function placeOf(page: Page, isHeld: boolean): string {
  if (page.taken) return "taken";
  if (isDone(page)) return "done";
  if (isHeld) return "held";
  if (page.state !== "waiting") return "begun";
  return page.invalid ? "invalid" : "new";
}

const codes = ["SEO_UNAUTHORIZED", "SEO_NETWORK", "SEO_REJECTED"] as const;
const failure = (ended: Outcome, code: string): Ended => ({ ended, attempts: 1, error: { code, message: "No." } });

function open(lists: readonly Row[][]) {
  const pages = createPages();
  const ledger = createLedger(pages);
  function add(rows: readonly Row[]): void {
    for (const { key, valid } of rows) {
      if (!valid && pages.find(key) === undefined) ledger.reject();
      pages.add(key, 0);
    }
  }
  lists.forEach(add);
  return { pages, ledger, add };
}

/** A batch that does what the engine does, beside a record of each page. Only what is in the log survives when it is reopened. */
function createBatch() {
  const lists: Row[][] = [];
  const log: Entry[] = [];
  /** What was told is in the log somewhat later. */
  const notes: Entry[] = [];
  const records = new Map<number, Page>();
  let { pages, ledger, add } = open(lists);
  let paused = false;
  let dropped = false;

  const total = () => lists.flat().length;
  const recordOf = (page: number) => records.get(page) as Page;
  const isHeld = (page: number) => ledger.held().includes(page);
  const pagesIn = (...places: string[]) =>
    [...records.keys()].filter((page) => places.includes(placeOf(recordOf(page), isHeld(page))));
  const pagesWith = (suits: (record: Page) => unknown) =>
    [...records].filter(([, record]) => suits(record)).map(([page]) => page);
  const pick = <Item>(items: readonly Item[], number: number) => items[number % items.length];
  const takenBy = (number: number, suits: (record: Page) => boolean) =>
    pick(
      pagesIn("taken").filter((page) => suits(recordOf(page))),
      number,
    );

  function wait(record: Page): void {
    record.state = "waiting";
    record.ended = undefined;
    record.told.clear();
  }

  /** Applies an entry. Pages that were held can wait again afterwards. */
  function write(entry: Entry): void {
    const held = ledger.held();
    const wasStopped = ledger.streak()?.before !== undefined;
    log.push(entry);
    ledger.apply(entry);
    const { before } = ledger.streak() ?? {};
    for (const page of held) if (!ledger.ended.has(page) && !isDone(recordOf(page))) wait(recordOf(page));
    if (!wasStopped && before) assert.deepEqual([...before].sort(), pagesWith(({ state }) => state === "sent").sort());
  }

  /** Takes a page of one place, in any order. */
  function takeOf(place: string, page: number | undefined, isDropped = false): void {
    const expected = isDropped ? [] : pagesIn(place);
    assert.ok(page === undefined ? expected.length === 0 : expected.includes(page), `${page} is not ${place}`);
    if (page !== undefined) recordOf(page).taken = true;
  }

  function release(page: number): void {
    recordOf(page).taken = false;
    ledger.release(page);
  }

  function end(page: number, ended: Ended): void {
    const record = recordOf(page);
    record.state = "ended";
    record.ended = ended;
    record.taken = true;
    if (record.sent && ended.ended !== "uncertain") record.sent = { ...record.sent, intent: undefined };
    write({ row: page, ...ended });
  }

  const note = () => log.push(...notes.splice(0));

  function tell(page: number): void {
    const record = recordOf(page);
    const row = record.rows.find((row) => !record.told.has(row)) as number;
    record.told.set(row, (record.ended as Ended).ended);
    if (isDone(record)) {
      if (!record.ended?.error) record.sent = undefined;
      record.ended = undefined;
      // Nobody gives a row back that is invalid.
      if (record.invalid) record.taken = false;
    }
    ledger.apply({ row, told: true });
    notes.push({ row, told: true });
    // A batch that was reset is removed.
    if (dropped) note();
  }

  const readings = () => ({
    counts: { ...ledger.counts },
    total: ledger.total(),
    paused: ledger.paused(),
    dropped: ledger.dropped(),
    held: [...ledger.held()],
    states: Array.from({ length: total() }, (_, row) => pages.state(row)),
    stopped: ledger.streak()?.before,
    ended: [...ledger.ended].sort(([a], [b]) => a - b),
    sent: [...ledger.sent].sort(([a], [b]) => a - b),
    failed: ledger.failed(),
    isDone: ledger.isDone(),
    has: (["invalid", "begun", "new"] as const).map((which) => ledger.has(which, total())),
  });

  const steps: Record<string, (number: number) => unknown> = {
    join(number) {
      // A list that is added has no pages that are known. Its rows can repeat each other.
      const known = new Set(lists.flat().map(({ key }) => key));
      const rows = Array.from({ length: 1 + (number % 6) }, (_, index) => (number + index * (number % 3)) % 36)
        .map((name) => ({ key: String(name), valid: name % 6 > 0 }))
        .filter(({ key }) => !known.has(key));
      for (const [index, { key, valid }] of rows.entries()) {
        const first = rows.findIndex((row) => row.key === key);
        if (first === index)
          records.set(total() + index, {
            rows: [total() + index],
            invalid: !valid,
            state: "waiting",
            told: new Map(),
            taken: false,
          });
        else recordOf(total() + first).rows.push(total() + index);
      }
      lists.push(rows);
      add(rows);
    },
    begun: () => takeOf("begun", ledger.takeBegun(), dropped),
    invalid: () => takeOf("invalid", ledger.takeRejected()),
    new(number) {
      const end = number % 5 === 0 ? number % (total() + 1) : total();
      const [expected] = dropped ? [] : pagesIn("new").filter((page) => page < end);
      assert.equal(ledger.has("new", end), expected !== undefined);
      assert.equal(ledger.takeNew(end), expected);
      if (expected !== undefined) recordOf(expected).taken = true;
    },
    send(number) {
      const page = takenBy(number, ({ invalid, state, told }) => !invalid && state !== "ended" && told.size === 0);
      if (page === undefined) return;
      const sent: Sent = {
        ...(number % 2
          ? { sent: "create" }
          : { sent: "regenerate", report: String(number % 9), generatedAt: `${number}` }),
        // Without one, the request was canceled before it was sent.
        intent: number % 3 ? ({ number } as never) : undefined,
      };
      Object.assign(recordOf(page), { state: "sent", sent: { report: undefined, generatedAt: undefined, ...sent } });
      write({ row: page, at: "now", ...sent });
    },
    succeed(number) {
      const page = takenBy(number, ({ state }) => state === "sent");
      if (page !== undefined)
        end(page, { ended: number % 2 ? "created" : "regenerated", report: "1", attempts: number % 3 });
    },
    fail(number) {
      const page = takenBy(number, ({ state }) => state === "sent");
      if (page === undefined) return;
      // Most have the same code, because only those stop the batch.
      end(page, failure(number % 7 ? "failed" : "uncertain", codes[Math.max(0, (number % 12) - 9)] as string));
      if (!dropped) release(page);
    },
    failNew(number) {
      for (const name of ["new", "send", "fail"]) steps[name]?.(number);
    },
    /** The plan ends a page that nobody has taken. */
    fresh(number) {
      const page = pick(pagesIn("new"), number);
      if (page === undefined) return;
      const { held, stopped } = readings();
      end(page, { ended: "fresh", report: "1", attempts: 0 });
      assert.deepEqual([readings().held, readings().stopped], [held, stopped]);
    },
    reject(number) {
      const page = takenBy(number, ({ invalid, state }) => invalid && state === "waiting");
      if (page !== undefined) end(page, { ...failure("failed", "SEO_INPUT"), attempts: 0 });
    },
    tell(number) {
      const page = takenBy(number, ({ ended }) => ended !== undefined);
      if (page !== undefined) tell(page);
    },
    release(number) {
      const page = takenBy(number, () => true);
      if (page !== undefined) release(page);
    },
    /** A page that is held is the probe. */
    again(number) {
      const page = pick(ledger.held(), number);
      if (page === undefined || dropped) return;
      note();
      write({ row: page, again: true });
    },
    /** If nothing else is left, what is held is told. */
    letGo() {
      if (dropped || ledger.streak()?.before || pagesIn("taken", "begun", "invalid", "new").length > 0) return;
      const held = pagesIn("held");
      write({ letGo: true });
      assert.deepEqual(pagesIn("begun"), held);
    },
    note,
    retry() {
      note();
      write({ retry: true });
      for (const record of records.values())
        if (isDone(record) && [...record.told.values()].some(hasFailed)) wait(record);
    },
    pause(number) {
      paused = number % 2 > 0;
      write({ paused });
    },
    reset() {
      dropped = true;
      write({ reset: true });
    },
    reopen() {
      for (const page of pagesIn("taken")) release(page);
      note();
      const before = readings();
      ({ pages, ledger, add } = open(lists));
      for (const entry of log) ledger.apply(entry);
      ledger.restore();
      assert.deepEqual(readings(), before);
    },
    /** What cannot follow is rejected, and changes nothing. */
    mistake(number) {
      const some = pick([...records.keys()], number);
      if (some === undefined) return;
      const before = readings();
      const reject = (entry: object, message: string) =>
        assert.throws(() => ledger.apply(entry as Entry), { message }, JSON.stringify(entry));
      const repeating = [...records.values()].flatMap(({ rows }) => rows.slice(1));
      for (const row of [-1, 0.5, total(), "0", ...repeating])
        for (const entry of [{ sent: "create" }, failure("failed", "SEO_NETWORK"), { again: true }])
          reject({ row, ...entry }, "there is no such row");
      for (const row of [-1, 0.5, total(), "0"]) reject({ row, told: true }, "there is no such row");
      for (const ended of ["strange", "waiting", undefined])
        reject({ row: some, ended, attempts: 1 }, "the outcome is unknown");
      for (const entry of [{}, { row: some }, { strange: true }]) reject(entry, "the line has an unknown meaning");
      assert.deepEqual(readings(), before);
    },
  };

  /** Compares everything that can be read. */
  function check(number: number): void {
    const states = Array.from({ length: total() }, (): string => "waiting");
    for (const [page, { rows, state, told }] of records)
      for (const row of rows) states[row] = told.get(row) ?? (row === page ? state : "waiting");
    const { counts, held, stopped: _, ...read } = readings();
    assert.equal(new Set(held).size, held.length);
    for (const page of held) {
      const { ended, invalid, taken } = recordOf(page);
      assert.ok(ended?.error && !invalid && (!taken || dropped), `${page} is held`);
    }
    assert.deepEqual(read, {
      total: total(),
      paused,
      dropped,
      states,
      ended: pagesWith(({ ended }) => ended).map((page) => [page, recordOf(page).ended]),
      sent: pagesWith(({ sent }) => sent).map((page) => [page, recordOf(page).sent]),
      failed: states.filter((state) => hasFailed(state as Outcome)).length,
      isDone: states.every((state) => (outcomes as readonly string[]).includes(state)),
      has: ["invalid", "begun", "new"].map((place) => (place === "invalid" || !dropped) && pagesIn(place).length > 0),
    });
    for (const [state, count] of Object.entries(counts))
      assert.equal(count, states.filter((other) => other === state).length, state);
    const end = number % (total() + 1);
    const first = number % (end + 1);
    const list = { existing: "create" as const, first, end };
    const fresh = pagesIn("new").filter((page) => page >= first && page < end);
    assert.equal(ledger.countNew(list), fresh.length);
    assert.equal(ledger.find(list, "another"), undefined);
    for (const [page, { rows, sent, told, invalid }] of records) {
      assert.equal(ledger.find(list, lists.flat()[page]?.key as string), fresh.includes(page) ? page : undefined);
      assert.equal(ledger.isInvalid(page), invalid);
      assert.deepEqual(
        ledger.untold(page),
        rows.filter((row) => !told.has(row)),
      );
      assert.deepEqual(ledger.requestOf(page, undefined), sent ?? { sent: "create" });
      const plan = { report: "6", generatedAt: "2026-01-01" };
      const isOther = sent !== undefined && sent.report !== plan.report;
      assert.deepEqual(ledger.requestOf(page, plan), isOther ? sent : { sent: "regenerate", ...sent, ...plan });
    }
  }

  return {
    check,
    step(name: string, number: number): void {
      steps[name]?.(number);
      check(number);
    },
    /** Works until nothing is left. */
    finish(): void {
      for (let rounds = 0; !dropped && !ledger.isDone(); rounds++) {
        assert.ok(rounds <= 3 * total(), "pages were forgotten");
        for (const name of ["invalid", "begun", "new", "reject", "send", "succeed", "letGo", "again"]) steps[name]?.(1);
        for (const page of pagesIn("taken")) {
          while (recordOf(page).ended) tell(page);
          if (isDone(recordOf(page)) && recordOf(page).taken) release(page);
        }
        check(rounds);
      }
    },
  };
}

const PAGES = 60;

/** A ledger, beside a record of its failures in a row. */
function createFailures() {
  const list = Array.from({ length: PAGES }, (_, page) => ({ key: String(page), valid: true }));
  const { ledger, pages } = open([list]);
  const waiting = new Set(Array(PAGES).keys());
  const telling = new Set<number>();
  /** Pages that were requested again after they were held. */
  const repeated = new Set<number>();
  const requested = new Set<number>();
  const failures = new Map<number, Ended>();
  const flying: number[] = [];
  let streak: Streak | undefined;

  function repeat(page: number): void {
    repeated.add(page);
    waiting.add(page);
  }

  /** Ends the streak. */
  function resolve(all: boolean): void {
    for (const page of streak?.pages ?? []) {
      const { ended, error } = failures.get(page) as Ended;
      const isBlameless = ended === "failed" && error?.code !== "SEO_REJECTED";
      if (all || (streak?.before && isBlameless && !repeated.has(page))) repeat(page);
      else telling.add(page);
    }
    streak = undefined;
  }

  function send(): number | undefined {
    const page = ledger.takeNew(PAGES);
    assert.equal(page, waiting.size > 0 ? Math.min(...waiting) : undefined);
    if (page === undefined) return undefined;
    waiting.delete(page);
    resend(page);
    return page;
  }

  const forget = (page: number) => streak?.before?.delete(page);

  function resend(page: number): void {
    forget(page);
    ledger.apply({ row: page, sent: "create" });
  }

  function tell(page: number): void {
    telling.delete(page);
    repeated.delete(page);
    ledger.apply({ row: page, told: true });
    ledger.release(page);
  }

  /** `attempts`: none if it found the effect of a request that was sent earlier. */
  function succeed(page: number, attempts: number): void {
    if (streak?.before ? !streak.before.has(page) : attempts > 0) resolve(streak?.probe === page);
    forget(page);
    ledger.apply({ row: page, ended: "created", attempts });
    tell(page);
  }

  function fail(page: number, ended: Ended): void {
    const { error } = ended;
    failures.set(page, ended);
    if (streak && !streak.before && streak.error?.code !== error?.code) resolve(false);
    streak = { pages: [], ...streak, error };
    streak.pages.push(page);
    if (streak.before && streak.probe === page) {
      for (const held of streak.pages) telling.add(held);
      streak = undefined;
    } else if (streak.pages.length >= STREAK) streak.before ??= new Set(flying);
    forget(page);
    ledger.apply({ row: page, ...ended });
    ledger.release(page);
  }

  const steps: Record<string, (number: number) => void> = {
    succeed(number) {
      const page = send();
      if (page !== undefined) succeed(page, number % 3);
    },
    fail(number) {
      const page = send();
      if (page === undefined) return;
      // Whether the failure of a page that was requested before counts may depend on when it was sent first.
      const isFirst = !requested.has(page);
      requested.add(page);
      const code = codes[Math.max(0, (number % 12) - (isFirst ? 9 : 10))] as string;
      fail(page, failure(isFirst && number % 7 === 0 ? "uncertain" : "failed", code));
    },
    fly() {
      const page = flying.length < 3 ? send() : undefined;
      if (page !== undefined) flying.push(page);
    },
    land(number) {
      const page = flying.shift();
      if (page === undefined) return;
      requested.add(page);
      if (number % 5 === 0) resend(page);
      if (number % 2) succeed(page, 1);
      else fail(page, failure("failed", "SEO_NETWORK"));
    },
    tell() {
      const page = ledger.takeBegun();
      assert.equal(page !== undefined, telling.size > 0);
      if (page === undefined) return;
      assert.ok(telling.has(page), `${page} is not to be told`);
      tell(page);
    },
    /** A page that is held is the probe. */
    again(number) {
      if (!streak?.before || streak.pages.length === 0) return;
      const [page] = streak.pages.splice(number % streak.pages.length, 1) as [number];
      streak.probe = page;
      repeat(page);
      ledger.apply({ row: page, again: true });
      if (number % 3) steps[number % 2 ? "succeed" : "fail"]?.(number);
    },
    /** A batch that was reset tells a failure at once. */
    told(number) {
      const page = streak?.pages[number % streak.pages.length];
      if (!streak || page === undefined) return;
      streak.pages = streak.pages.filter((other) => other !== page);
      streak.before = undefined;
      tell(page);
    },
    retry() {
      for (let page = 0; page < PAGES; page++)
        if (["failed", "uncertain"].includes(pages.state(page))) waiting.add(page);
      ledger.apply({ retry: true });
    },
    letGo() {
      resolve(false);
      ledger.apply({ letGo: true });
    },
  };

  return (name: string, number: number): void => {
    steps[name]?.(number);
    assert.deepEqual(ledger.held(), streak?.pages ?? []);
    assert.equal(ledger.has("begun", 0), telling.size > 0);
    assert.equal(ledger.countNew({ existing: "create", first: 0, end: PAGES }), waiting.size);
    for (const what of ["pages", "error", "before"] as const) assert.deepEqual(ledger.streak()?.[what], streak?.[what]);
  };
}

const stepsOf = (weights: Record<string, number>) => {
  const names = Object.entries(weights).flatMap(([name, weight]) => Array<string>(weight).fill(name));
  return fc.array(fc.tuple(fc.constantFrom(...names), fc.nat(1000)), {
    minLength: 20,
    maxLength: 150,
    size: "max",
  });
};

describe("The ledger of a batch", () => {
  it("has each page in one place, and reads the same state from its log", () => {
    const requests = { begun: 3, new: 4, send: 4, succeed: 1, fail: 4, failNew: 16, fresh: 1, tell: 8, release: 2 };
    const rows = { join: 4, invalid: 2, reject: 2, note: 4 };
    const rest = { again: 1, letGo: 1, retry: 1, pause: 1, reopen: 2, mistake: 1 };
    fc.assert(
      fc.property(stepsOf({ ...requests, ...rows, ...rest }), fc.boolean(), (steps, isReset) => {
        const batch = createBatch();
        for (const [index, [name, number]] of steps.entries()) {
          if (isReset && index === 100) batch.step("reset", number);
          batch.step(name, number);
        }
        batch.finish();
      }),
      { numRuns: 100 },
    );
  });

  it("counts failures in a row, and holds their pages while they may be the account's", () => {
    const weights = { succeed: 1, fail: 20, fly: 2, land: 2, tell: 6, again: 2, told: 1, retry: 1, letGo: 1 };
    fc.assert(
      fc.property(stepsOf(weights), (steps) => {
        const step = createFailures();
        for (const [name, number] of steps) step(name, number);
      }),
      { numRuns: 500 },
    );
  });

  it("keeps the date of a report whose update was canceled, until a later plan finds another date", () => {
    const list = [{ key: "a.example", valid: true }];
    const request: Sent = { sent: "regenerate", report: "7", generatedAt: "2026-01-01" };
    const log: Entry[] = [
      { row: 0, at: "now", ...request, intent: { generatedAt: "2026-01-01" } },
      { row: 0, at: "now", ...request, intent: undefined },
    ];
    const { ledger } = open([list]);
    // A log is lines of JSON.
    for (const entry of log) ledger.apply(JSON.parse(JSON.stringify(entry)));
    ledger.restore();
    assert.equal(ledger.takeBegun(), 0);
    assert.deepEqual(ledger.requestOf(0, undefined), { ...request, intent: undefined });
    const plan = { report: "7", generatedAt: "2026-02-02" };
    assert.deepEqual(ledger.requestOf(0, plan), { ...request, ...plan, intent: undefined });
    assert.deepEqual(ledger.requestOf(0, { ...plan, report: "8" }), { ...request, intent: undefined });
  });
});

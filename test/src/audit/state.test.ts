import assert from "node:assert/strict";
import { mock } from "node:test";
import { setImmediate as breathe } from "node:timers/promises";
import fc from "fast-check";
import { Batch } from "../../../src/audit/batch.js";
import type { Ended, Entry, PageRequest, Settings } from "../../../src/audit/entries.js";
import { keyOf, type Row } from "../../../src/audit/rows.js";
import * as states from "../../../src/audit/state.js";
import { createReading } from "../../../src/audit/state.js";
import type { Intent } from "../../../src/reconcile/watermark.js";

/** A page, as it was listed. */
interface Page {
  rows: number[];
  row: Row;
  list: number;
}

/** Two that follow each other differ in one value. */
const settings: Settings[] = [
  { existing: "create" },
  { existing: "create", privacy: "1" },
  { existing: "return", privacy: "1" },
  { existing: "return", privacy: "1", maxAge: 2 },
];
const ends: Ended[] = [
  { outcome: "created", report: "1", attempts: 1 },
  { outcome: "regenerated", report: "2", attempts: 0, reconciled: { looks: 1, after: 2 } },
  { outcome: "failed", attempts: 1, error: { code: "SEO_REJECTED", message: "No." } },
  { outcome: "uncertain", attempts: 2, error: { code: "SEO_NETWORK", message: "No." } },
  { outcome: "fresh", report: "3", attempts: 0 },
];
const intent: Intent = { watermark: { of: "id", rank: 1, ids: [] } };
const hasFailed = (ended?: Ended) => ended?.error !== undefined;
/** Without properties that are undefined. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const rowOf = (number: number): Row =>
  number % 6 ? { input: `https://example.org/${number}` } : { input: number, error: "No." };

/** The end of a row that is no page. */
const invalid: Ended = {
  outcome: "failed",
  attempts: 0,
  error: { code: "SEO_INPUT", message: "No.", ...{ attempts: 0, uncertain: false } },
};

/** How far a page is after some entries. A result counts as delivered if it was not sent again. */
function follow(entries: readonly Entry[], page: number, first: number, isValid: boolean) {
  let stage = isValid ? "waiting" : "ended";
  let list = first;
  let lists = -1;
  let ended = isValid ? undefined : invalid;
  let request: PageRequest | undefined;
  for (const entry of entries) {
    if (entry.type === "list") {
      lists++;
      if (stage === "waiting" && entry.pages.includes(page)) {
        list = lists;
        if (!request?.intent) request = undefined;
      }
    } else if (entry.type === "plan") {
      const plan = entry.pages.find((one) => one.page === page);
      if (!plan || stage !== "waiting" || entry.list !== list || request?.intent) continue;
      request = { action: "regenerate", report: plan.report, generatedAt: plan.generatedAt };
    } else if (entry.type === "retry") {
      if (!hasFailed(ended) || !isValid) continue;
      stage = "waiting";
      ended = undefined;
    } else if (!("page" in entry) || entry.page !== page) continue;
    else if (entry.type === "sent") {
      const { type: _, page: __, ...rest } = entry;
      stage = "sent";
      request = rest;
    } else if (entry.type === "delivered") {
      if (stage !== "ended") continue;
      stage = "delivered";
      if (hasFailed(ended)) continue;
      ended = undefined;
      request = undefined;
    } else {
      const { type, page: _, ...rest } = entry;
      if (request && !("outcome" in rest && rest.outcome === "uncertain")) request = { ...request, intent: undefined };
      stage = type === "ended" ? "ended" : "waiting";
      ended = type === "ended" ? (rest as Ended) : undefined;
    }
  }
  return { stage, list, ended, request };
}

/** Everything that is known of a batch. */
function read({ draft: _, ...state }: states.State): unknown {
  const sort = (map: Map<unknown, unknown>) => [...map].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  return plain(
    Object.entries(state).map(([name, value]) => [
      name,
      value instanceof Map ? sort(value) : value instanceof Set ? [...value] : value,
    ]),
  );
}

/** A batch that does what an engine does, beside its journal. */
function createDriven() {
  /** The entries that are saved, and those in the order in which they count: a delivery does at once. */
  let log: Entry[] = [{ type: "batch", name: "a" }];
  let history = log.slice();
  let unsaved: { entry: Entry; resolve(): void }[] = [];
  let pages: Map<number, Page>;
  let rows: Row[];
  let draft: Row[];
  let lists: Settings[];
  let inWork: Set<number>;
  let isWriting: Set<number>;
  let behind: Set<number>;
  let isMessage: boolean;
  /** The state when the batch was opened. */
  let saved: number;
  let earlier: Set<number>;
  let hasFinished = false;
  let expected: { rows: number; pages: number[] } | undefined;
  let reading: states.Reading;
  let batch: Batch;

  const pick = <Item>(items: readonly Item[], number: number) => items[number % items.length];
  const stageOf = (page: number) => states.stageOf(reading.state, page);
  const pagesThat = (suits: (page: number, stage: string | undefined) => boolean) =>
    [...pages.keys()].filter((page) => suits(page, stageOf(page)));
  const isValid = (page: number) => pages.get(page)?.row.error === undefined;
  const worker = (number: number, ...stages: string[]) =>
    pick(
      pagesThat((page, stage) => inWork.has(page) && !isWriting.has(page) && stages.includes(String(stage))),
      number,
    );
  const pageOf = (row: Row) => pagesThat((page) => keyOf((pages.get(page) as Page).row) === keyOf(row))[0];

  /** Saved entries count. */
  function note(entry: Entry): void {
    if (entry.type === "rows") draft = entry.from === 0 ? [...entry.rows] : [...draft, ...entry.rows];
    if (entry.type !== "list") return;
    lists.push(entry.settings);
    for (const row of draft) {
      const page = pageOf(row);
      if (page === undefined) pages.set(rows.length, { rows: [rows.length], row, list: lists.length - 1 });
      else pages.get(page)?.rows.push(rows.length);
      rows.push(row);
    }
    draft = [];
  }

  function open(): void {
    unsaved = [];
    reading = createReading();
    [pages, rows, draft, lists] = [new Map(), [], [], []];
    [inWork, isWriting, behind, isMessage] = [new Set(), new Set(), new Set(), false];
    history = log.slice();
    for (const entry of log) {
      reading.take(entry);
      note(entry);
    }
    saved = log.length;
    earlier = new Set(pagesThat((_, stage) => stage === "ended"));
    const none = async () => {};
    const append = (entry: Entry) =>
      new Promise<void>((resolve) => unsaved.push({ entry: plain(entry) as Entry, resolve }));
    batch = new Batch({ append, close: none, keep: none, remove: none }, reading);
  }

  /** Messages change a batch one after the other. */
  function message(work: Promise<unknown>): void {
    isMessage = true;
    const { state } = reading;
    void work.finally(() => {
      if (state === reading.state) isMessage = false;
    });
  }

  function write(page: number, entry: Entry): void {
    isWriting.add(page);
    void batch.write(entry).then(() => isWriting.delete(page));
  }

  function deliver(page: number): void {
    batch.delivered(page);
    history.push({ type: "delivered", page });
  }

  function release(page: number, isLast: boolean): void {
    inWork.delete(page);
    batch.release(page, isLast);
    if (isLast && stageOf(page) === "waiting") behind.add(page);
  }

  async function save(count = unsaved.length): Promise<void> {
    for (const { entry, resolve } of unsaved.splice(0, count)) {
      log.push(entry);
      if (entry.type !== "delivered") history.push(entry);
      if (entry.type === "list") {
        assert.deepEqual({ rows: entry.rows, pages: entry.pages }, expected);
        expected = undefined;
      }
      note(entry);
      resolve();
      // Entries that are saved together count in their order, before anything else happens.
    }
    await breathe();
  }

  const messages = ["pause", "resume", "retry"] as const;
  const steps: Record<string, (number: number) => unknown> = {
    list(number) {
      if (isMessage) return;
      const given = Array.from({ length: 1 + (number % 5) }, (_, index) => rowOf((number + index * (number % 3)) % 30));
      const added = pick(settings, number) as Settings;
      const known = new Set<number>();
      for (const page of given.map(pageOf)) {
        if (page === undefined || stageOf(page) !== "waiting") continue;
        const old = lists[states.listOf(reading.state, page)] as Settings;
        if (JSON.stringify(old) !== JSON.stringify(added)) known.add(page);
      }
      const isNew = given.filter((row) => pageOf(row) === undefined).length;
      expected = { rows: isNew, pages: [...known] };
      message(batch.add({ settings: added, rows: given }).then((count) => assert.equal(count, isNew)));
    },
    /** A list that was not completed. */
    torn(number) {
      if (!isMessage) message(batch.write({ type: "rows", from: 0, rows: [rowOf(number)] }));
    },
    plan(number) {
      if (lists.length === 0) return;
      const list = number % lists.length;
      const some = pagesThat((page) => isValid(page) && (page + number) % 3 > 0);
      const plans = some.map((page) => ({ page, report: String(number), generatedAt: `${number}` }));
      void batch.write({ type: "plan", list, pages: plans });
      if (number % 2) void batch.write({ type: "planned", list });
    },
    take() {
      const next = batch.next();
      if (!next) return undefined;
      inWork.add(next.page);
      behind.delete(next.page);
      batch.take(next.page);
      return next.page;
    },
    send(number) {
      const page = worker(number, "waiting", "sent");
      if (page === undefined || !isValid(page)) return;
      const action = number % 2 ? "create" : "regenerate";
      write(page, { type: "sent", page, action, report: String(number), ...(number % 3 && { intent }) });
    },
    wait(number) {
      const page = worker(number, "sent");
      if (page !== undefined) write(page, { type: "waits", page });
    },
    end(number) {
      const page = worker(number, "waiting", "sent");
      if (page !== undefined) write(page, { type: "ended", page, ...(pick(ends, number) as Ended) });
    },
    deliver(number) {
      const page = worker(number, "ended");
      if (page !== undefined) deliver(page);
    },
    release(number) {
      const page = worker(number, "waiting", "sent", "ended", "delivered");
      if (page !== undefined) release(page, number % 2 > 0);
    },
    /** Nothing could be sent for the page. */
    putBack(number) {
      const page = steps.take?.(0) as number | undefined;
      if (page !== undefined) release(page, number % 2 > 0);
    },
    /** A failed page is requested again before the note of its result is written. */
    async again(number) {
      const page = steps.take?.(0) as number | undefined;
      if (page === undefined || isMessage || reading.state.dropped || stageOf(page) !== "waiting") return;
      for (let times = 0; times < 2; times++) {
        write(page, { type: "sent", page, action: "create", ...(number % 2 && { intent }) });
        await save();
        write(page, { type: "ended", page, ...(ends[2 + (number % 2)] as Ended) });
        await save();
        if (times > 0) return;
        deliver(page);
        message(batch.change("retry"));
        await save();
        steps.plan?.(number);
      }
    },
    message(number) {
      if (!isMessage && !reading.state.dropped) message(batch.change(pick(messages, number) as "pause"));
    },
    /** The next results' notes are written. */
    pass: () => mock.timers.tick(50),
    save: (number) => save(1 + (number % 4)),
    /** The process dies, and the next one reads the journal. */
    async die(number) {
      await save(number % (unsaved.length + 1));
      await batch.close();
      open();
    },
  };

  /** Compares everything that can be read with what the entries say, and with what another process would read. */
  function check(): void {
    const { state } = reading;
    const counts = { created: 0, regenerated: 0, fresh: 0, failed: 0, uncertain: 0 };
    let open = 0;
    const endOf = (page: number) =>
      (history.findLast((entry) => entry.type === "ended" && entry.page === page) ?? invalid) as Ended;
    for (const [page, { rows, row, list: first }] of pages) {
      const { stage, list, ended, request } = follow(history, page, first, isValid(page));
      const got = [stageOf(page), state.ended.get(page) ?? null, state.requests.get(page) ?? null];
      assert.deepEqual(plain(got), plain([stage, ended ?? null, request ?? null]), `page ${page}`);
      const hasSucceeded = stage === "delivered" && !ended;
      if (!hasSucceeded) assert.equal(states.listOf(state, page), list);
      if (!hasSucceeded) assert.equal(batch.settingsOf(page).privacy, lists[list]?.privacy);
      assert.deepEqual(states.rowsOf(state, page), rows);
      assert.equal(states.pageOf(state, keyOf(row)), page);
      if (stage === "delivered") counts[endOf(page).outcome] += rows.length;
      else open += rows.length;
      const hasEnded = log.slice(saved).some((one) => one.type === "ended" && one.page === page);
      const now = state.ended.get(page);
      if (now && stage === "ended") assert.equal(batch.isEarlier(now), earlier.has(page) && !hasEnded);
      for (const one of rows)
        if (hasSucceeded) assert.equal(state.inputs[one], "");
        else assert.deepEqual(states.inputOf(state, one), row.input);
      assert.equal(state.invalid.has(page), row.error !== undefined);
    }
    assert.deepEqual(state.counts, counts);
    assert.deepEqual([states.total(state), states.done(state)], [rows.length, rows.length - open]);
    const made = (list: number) => history.some((entry) => entry.type === "planned" && entry.list === list);
    for (const [list, { existing }] of lists.entries())
      assert.equal(state.lists[list]?.planned, existing === "create" || (made(list) && !hasFinished));
    assert.equal(
      batch.isUnchanged,
      log.slice(saved).every(({ type }) => type === "delivered"),
    );
    const last = history.findLast(({ type }) => type === "pause" || type === "resume");
    assert.equal(state.paused, last?.type === "pause");

    const free = pagesThat((page, stage) => isValid(page) && stage === "waiting" && !inWork.has(page));
    const begun = pagesThat((page, stage) => (stage === "sent" || stage === "ended") && !inWork.has(page));
    const next = batch.next();
    if (begun.length > 0) assert.ok(next && begun.includes(next.page) && !next.isLater);
    else {
      const [first] = state.dropped ? [] : free.filter((page) => !behind.has(page));
      const [later] = state.dropped ? [] : [...behind].filter((page) => free.includes(page));
      assert.deepEqual(next?.page, first ?? later);
    }

    const again = createReading();
    for (const entry of log) again.take(entry);
    for (const page of pages.keys())
      if (stageOf(page) === "delivered") states.apply(again.state, { type: "delivered", page });
    assert.deepEqual(read(again.state), read(state));
    assert.deepEqual(
      again.reports,
      log.flatMap((entry) => (entry.type === "ended" ? (entry.report ?? []) : [])),
    );
  }

  open();
  return {
    async step(name: string, number: number): Promise<void> {
      await steps[name]?.(number);
      await breathe();
      check();
    },

    /** Drops what waits, if it is to; works until nothing is left, and retries what has failed. */
    async finish(drops: boolean): Promise<void> {
      const { state } = reading;
      for (let rounds = 0; isMessage || unsaved.length > 0; rounds++) {
        assert.ok(rounds < 10, "a message does not end");
        await save();
      }
      if (drops) message(batch.change("reset"));
      await save();
      const isOver = () =>
        inWork.size === 0 && (states.done(state) === states.total(state) || (drops && !batch.next()));
      for (let rounds = 0; !isOver(); rounds++) {
        assert.ok(rounds < 20 * (rows.length + 1), "a page was forgotten");
        steps.take?.(1);
        for (const _ of [...inWork]) {
          steps.end?.(rounds);
          await save();
          for (const name of ["deliver", "release"]) steps[name]?.(0);
        }
        check();
      }
      for (let times = 0; times < 3; times++) mock.timers.tick(50);
      await save();
      assert.deepEqual(log.filter(({ type }) => type === "reset").length, Number(drops));
      if (drops) return;
      // Nothing depends on when the notes were written.
      history = log;
      check();
      log = [...log, { type: "finished" }];
      open();
      assert.ok(reading.state.finished);
      hasFinished = true;
      const failed = pagesThat((page) => isValid(page) && hasFailed(reading.state.ended.get(page)));
      message(batch.change("retry"));
      await save();
      check();
      assert.deepEqual(
        pagesThat((_, stage) => stage === "waiting"),
        failed,
      );
      assert.equal(reading.state.finished, false);
    },
  };
}

describe("the state of a batch", () => {
  before(() => mock.timers.enable({ apis: ["setTimeout"] }));
  after(() => mock.timers.reset());

  it("is what its entries say, also to the next process, and has each page in one place", async () => {
    const work = { take: 8, send: 6, wait: 2, end: 8, deliver: 8, release: 6, putBack: 3, again: 2 };
    const weights = { ...work, list: 5, torn: 1, plan: 2, message: 4, pass: 6, save: 14, die: 1 };
    const names = Object.entries(weights).flatMap(([name, weight]) => Array<string>(weight).fill(name));
    const step = fc.tuple(fc.constantFrom(...names), fc.nat(1000));
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 20, maxLength: 120, size: "max" }),
        fc.boolean(),
        async (steps, drops) => {
          const driven = createDriven();
          for (const [name, number] of [["list", 4], ["save", 3], ["save", 3], ...steps] as typeof steps)
            await driven.step(name, number);
          await driven.finish(drops);
        },
      ),
      { numRuns: 150 },
    );
  });

  it("has 50,000 rows of one page as soon as those of many", () => {
    const { state, take } = createReading();
    take({ type: "rows", from: 0, rows: Array(50_000).fill(rowOf(1)) });
    const began = performance.now();
    take({ type: "list", settings: { existing: "create" }, rows: 50_000, pages: [] });
    assert.equal(states.rowsOf(state, 0).length, 50_000);
    assert.ok(performance.now() - began < 5000);
  });

  it("does not change if an entry cannot follow those before it", () => {
    const { state, take } = createReading();
    take({ type: "batch", name: "a" });
    take({ type: "rows", from: 0, rows: [1, 2, 1].map(rowOf) });
    take({ type: "list", settings: { existing: "return" }, rows: 3, pages: [] });
    take({ type: "rows", from: 0, rows: [rowOf(4)] });
    const before = read(state);
    const strange = [null, 5, {}, { type: "strange" }, { type: "toString" }];
    const cases: [unknown, string][] = strange.map((entry) => [entry, "the entry has an unknown type"]);
    const more = { action: "create", outcome: "created", attempts: 1 };
    for (const page of [-1, 0.5, 2, 3, undefined]) {
      for (const type of ["sent", "waits", "ended", "delivered"])
        cases.push([{ type, page, ...more }, "there is no such page"]);
      const pages = [{ page: 0, report: "1" }, { page }];
      cases.push([{ type: "plan", list: 0, pages }, "there is no such page"]);
      cases.push([{ type: "list", settings: {}, rows: 1, pages: [0, page] }, "there is no such page"]);
    }
    for (const list of [-1, 1]) cases.push([{ type: "planned", list }, "there is no such list"]);
    for (const outcome of [undefined, "waiting", "toString"])
      cases.push([{ type: "ended", page: 0, outcome, attempts: 1 }, "the outcome is unknown"]);
    cases.push([{ type: "rows", from: 2, rows: [] }, "rows are missing before it"]);
    cases.push([{ type: "list", settings: {}, rows: 2, pages: [] }, "rows of the list are missing"]);
    for (const [entry, message] of cases) {
      assert.throws(() => take(entry as Entry), { message }, JSON.stringify(entry));
      assert.deepEqual([read(state), state.draft], [before, [rowOf(4)]], JSON.stringify(entry));
    }
  });
});

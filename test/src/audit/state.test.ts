import assert from "node:assert/strict";
import { mock } from "node:test";
import { setImmediate as breathe } from "node:timers/promises";
import fc from "fast-check";
import { Batch, type Journal } from "../../../src/audit/batch.js";
import {
  type Ended,
  type Entry,
  FORMAT,
  type Outcome,
  type PageRequest,
  type Settings,
} from "../../../src/audit/entries.js";
import { type Row, rowKey } from "../../../src/audit/rows.js";
import * as states from "../../../src/audit/state.js";
import { apply, State } from "../../../src/audit/state.js";
import type { Intent } from "../../../src/reconcile/watermark.js";

/** Two that follow each other differ in one value. */
const settings: Settings[] = [
  { existing: "create" },
  { existing: "create", privacy: "1" },
  { existing: "return", privacy: "1" },
  { existing: "return", privacy: "1", maxAge: 2 },
];
const intent: Intent = { watermark: { of: "id", rank: 1, ids: [] } };
const ended = (outcome: Outcome): Ended => ({
  ...{ outcome, attempts: 1 },
  ...(outcome === "failed" || outcome === "uncertain" ? { error: { code: "SEO_SERVER", message: "No." } } : {}),
});
const ends = (["created", "regenerated", "failed", "uncertain", "fresh"] as const).map(ended);
/** Without properties that are undefined. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
/** Each sixth is no page. */
const rowOf = (number: number): Row =>
  number % 6 ? { input: `https://example.org/${number}` } : { input: number, error: "No." };

function replay(entries: readonly Entry[]): State {
  const state = new State();
  for (const entry of entries) apply(state, entry);
  return state;
}

/** Everything that is known of a batch. */
function read({ draft: _, ...state }: states.State): unknown {
  const sort = (map: Map<unknown, unknown>) => [...map].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  const listed = (value: unknown) => (value instanceof Map ? sort(value) : value instanceof Set ? [...value] : value);
  return plain(Object.entries(state).map(([name, value]) => [name, listed(value)]));
}

/** A batch of which only the entries are saved. */
function batchOf(append: Journal["append"], state = replay([])): Batch {
  const none = async () => {};
  return new Batch({ append, close: none, keep: none, remove: none }, state);
}

describe("A page of a batch", () => {
  const listed = (rows: Row[], pages: number[], existing: Settings["existing"]): Entry[] => [
    { type: "rows", from: 0, rows },
    { type: "list", settings: { existing }, rows: rows.length, pages },
  ];
  const given = [rowOf(1), rowOf(2), rowOf(1)];
  const begin: Entry[] = [{ type: "batch", format: FORMAT, name: "a" }, ...listed(given, [], "regenerate")];
  const again = listed([], [0], "return");
  const plan = (list = 0): Entry => ({ type: "plan", pages: [{ page: 0, list, report: "7", generatedAt: "then" }] });
  const sent: Entry = { type: "sent", page: 0, action: "create", intent };
  const waits: Entry = { type: "waits", page: 0 };
  const delivered: Entry = { type: "delivered", page: 0 };
  const retry: Entry = { type: "retry" };
  const end = (outcome: Outcome): Entry => ({ type: "ended", page: 0, ...ended(outcome) });
  const planned: PageRequest = { action: "regenerate", report: "7", generatedAt: "then" };
  const lost: PageRequest = { action: "create", intent };
  const certain: PageRequest = { action: "create" };
  const uncertain = [sent, end("uncertain"), delivered, retry];
  const explained: PageRequest = { ...lost, error: ended("uncertain").error };

  const rows: [title: string, entries: Entry[], phase: states.Phase, request?: PageRequest, end?: Outcome][] = [
    ["waits once it is listed", [], "waiting"],
    ["takes its request from the plan of its list", [plan()], "waiting", planned],
    ["loses its plan if another list names it", [plan(), ...again], "waiting"],
    ["takes no request from the plan of a list before its own", [...again, plan(0)], "waiting"],
    ["takes its request from the plan of the list that named it last", [...again, plan(1)], "waiting", planned],
    ["keeps its request while it is sent, whatever is planned", [sent, plan()], "sent", lost],
    ["keeps its request while it is sent, whichever list names it", [sent, ...again], "sent", lost],
    ["waits again if its request had no effect", [sent, waits], "waiting", certain],
    ["takes a new plan if its request had no effect", [sent, waits, plan()], "waiting", planned],
    ["has ended until its result is delivered", [sent, end("created")], "ended", certain, "created"],
    ["is forgotten once its success is delivered", [sent, end("created"), delivered], "delivered"],
    ["keeps its failure", [sent, end("failed"), delivered], "delivered", certain, "failed"],
    ["is not delivered before it has ended", [sent, delivered], "sent", lost],
    ["waits after msg.retry if it failed", [sent, end("failed"), delivered, retry], "waiting", certain],
    ["waits after msg.retry if its failure was not delivered", [sent, end("failed"), retry], "waiting", certain],
    ["is not delivered after msg.retry", [sent, end("failed"), retry, delivered], "waiting", certain],
    ["stays a success after msg.retry", [sent, end("fresh"), delivered, retry], "delivered"],
    ["is looked for after msg.retry if it is uncertain", uncertain, "waiting", explained],
    ["is looked for first, whatever is planned", [...uncertain, plan()], "waiting", explained],
    ["is looked for first, whichever list names it", [...uncertain, ...again], "waiting", explained],
  ];
  for (const [title, entries, phase, request, outcome] of rows)
    it(title, () => {
      const state = replay([...begin, ...entries]);
      const found = [states.phaseOf(state, 0), state.requests.get(0) ?? null, state.ended.get(0)?.outcome ?? null];
      assert.deepEqual(plain(found), [phase, request ?? null, outcome ?? null]);
      // Its result is that of each row that repeats it.
      const last = entries.findLast((entry) => entry.type === "ended");
      const counts = { created: 0, regenerated: 0, fresh: 0, failed: 0, uncertain: 0 };
      assert.deepEqual(state.counts, { ...counts, ...(phase === "delivered" && last && { [last.outcome]: 2 }) });
      assert.equal(state.listOf[0], entries.includes(again[1] as Entry) && phase === "waiting" ? 1 : 0);
    });

  it("is planned once more if it is retried after the end of its batch", () => {
    const made: Entry[] = [...begin, { type: "planned", lists: [0] }];
    const isPlanned = (...entries: Entry[]) => replay([...made, ...entries]).lists[0]?.planned;
    assert.deepEqual([isPlanned(retry), isPlanned({ type: "finished" }, retry)], [true, false]);
    assert.equal(replay([...made, { type: "finished" }, retry]).finished, false);
  });

  it("is worked on if a list joins its batch after the end", () => {
    assert.equal(replay([...begin, { type: "finished" }, ...again]).finished, false);
  });
});

/** Milliseconds pass, and then turns of the event loop. */
async function pass(ms = 50, turns = 10): Promise<void> {
  mock.timers.tick(ms);
  for (let turn = 0; turn < turns; turn++) await breathe();
}

/** A batch that does what an engine does, beside its journal. */
function createDriven() {
  /** The saved entries. */
  const log: Entry[] = [{ type: "batch", format: FORMAT, name: "a" }];
  let unsaved: { entry: Entry; resolve(): void }[];
  let state: State;
  let batch: Batch;
  let inWork: Set<number>;
  let isWriting: Set<number>;
  /** Pages that wait behind all others, in their order. */
  let behind: Set<number>;
  let isMessage: boolean;

  const pick = <Item>(items: readonly Item[], number: number) => items[number % items.length];
  const phaseOf = (page: number) => states.phaseOf(state, page);
  const pagesThat = (suits: (page: number, phase: states.Phase) => boolean) =>
    Array.from(state.inputs.keys()).filter((page) => phaseOf(page) !== "repeat" && suits(page, phaseOf(page)));
  const isValid = (page: number) => !state.invalid.has(page);
  const worker = (number: number, ...phases: states.Phase[]) =>
    pick(
      pagesThat((page, phase) => inWork.has(page) && !isWriting.has(page) && phases.includes(phase)),
      number,
    );
  const pageOf = (row: Row) => states.pageOf(state, rowKey(row));

  function open(): void {
    // What a process that died would have saved is not.
    const own: typeof unsaved = [];
    unsaved = own;
    [inWork, isWriting, behind, isMessage] = [new Set(), new Set(), new Set(), false];
    state = replay(log);
    const append = (entry: Entry) =>
      new Promise<void>((resolve) => own.push({ entry: plain(entry) as Entry, resolve }));
    batch = batchOf(append, state);
  }

  /** Messages change a batch one after the other. */
  function message(work: Promise<unknown>): void {
    isMessage = true;
    const before = state;
    void work.finally(() => {
      if (state === before) isMessage = false;
    });
  }

  function write(page: number, entry: Entry): void {
    isWriting.add(page);
    void batch.write(entry).then(() => isWriting.delete(page));
  }

  /** Entries that are saved together count in their order, before anything else happens. */
  async function save(count = unsaved.length): Promise<void> {
    for (const { entry, resolve } of unsaved.splice(0, count)) {
      log.push(entry);
      resolve();
    }
    await breathe();
  }

  const messages = ["pause", "resume", "retry"] as const;
  const steps: Record<string, (number: number) => unknown> = {
    list(number) {
      if (isMessage) return;
      const given = Array.from({ length: 1 + (number % 5) }, (_, index) => rowOf((number + index * (number % 3)) % 30));
      const isNew = given.filter((row) => pageOf(row) === undefined).length;
      const added = pick(settings, number) as Settings;
      message(batch.add({ settings: added, rows: given }).then((count) => assert.equal(count, isNew)));
    },
    /** A list that was not completed. */
    torn(number) {
      if (!isMessage) message(batch.write({ type: "rows", from: 0, rows: [rowOf(number)] }));
    },
    plan(number) {
      const { length } = state.lists;
      if (length === 0) return;
      const some = pagesThat((page) => isValid(page) && (page + number) % 3 > 0);
      const list = number % length;
      const plans = some.map((page) => ({ page, list, report: String(number), generatedAt: `${number}` }));
      void batch.write({ type: "plan", pages: plans });
      if (number % 2) void batch.write({ type: "planned", lists: [list] });
    },
    acquire() {
      const next = batch.next();
      if (!next) return;
      inWork.add(next.page);
      behind.delete(next.page);
      batch.acquire(next.page);
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
      if (page !== undefined) batch.delivered(page);
    },
    release(number) {
      const page = worker(number, "waiting", "sent", "ended", "delivered");
      if (page === undefined) return;
      const isLast = number % 2 > 0;
      inWork.delete(page);
      if (isLast && phaseOf(page) === "waiting") {
        batch.putLast(page);
        behind.add(page);
      }
      batch.release(page);
    },
    message(number) {
      if (!isMessage && !state.dropped) message(batch.write({ type: pick(messages, number) as "pause" }));
    },
    /** The next results' notes are written. */
    pass: () => pass(),
    save: (number) => save(1 + (number % 4)),
    /** The process dies, and the next one reads the journal. */
    async die(number) {
      await save(number % (unsaved.length + 1));
      open();
    },
  };

  /** What holds at any time. */
  function check(): void {
    const again = replay(log);
    for (const page of pagesThat((_, phase) => phase === "delivered")) apply(again, { type: "delivered", page });
    assert.deepEqual(read(again), read(state), "the next process reads another state");

    const pages = pagesThat(() => true);
    const rows = pages.flatMap((page) => states.rowsOf(state, page)).sort((a, b) => a - b);
    assert.deepEqual(rows, Array.from(state.inputs.keys()), "each row is that of one page");
    const done = pagesThat((_, phase) => phase === "delivered").flatMap((page) => states.rowsOf(state, page));
    assert.equal(states.done(state), done.length);
    for (const page of pages) {
      const phase = phaseOf(page);
      const end = state.ended.get(page);
      const hasSucceeded = phase === "delivered" && !end;
      assert.equal(end !== undefined, phase === "ended" || (phase === "delivered" && !hasSucceeded));
      for (const row of states.rowsOf(state, page)) assert.equal(state.inputs[row] === "", hasSucceeded);
      if (isValid(page) && !hasSucceeded) assert.equal(pageOf({ input: states.inputOf(state, page) }), page);
    }

    const free = pagesThat((page, phase) => isValid(page) && phase === "waiting" && !inWork.has(page));
    const begun = pagesThat((page, phase) => (phase === "sent" || phase === "ended") && !inWork.has(page));
    const next = batch.next();
    if (begun.length > 0) assert.ok(next && begun.includes(next.page) && !next.isLater);
    else {
      const [first] = state.dropped ? [] : free.filter((page) => !behind.has(page));
      const [later] = state.dropped ? [] : [...behind].filter((page) => free.includes(page));
      assert.deepEqual([next?.page, next?.isLater ?? false], [first ?? later, (first ?? later) !== first]);
    }
  }

  open();
  return {
    async step(name: string, number: number): Promise<void> {
      await steps[name]?.(number);
      await breathe();
      check();
    },

    /** Drops what waits, if it is to, and works until nothing is left. */
    async finish(drops: boolean): Promise<void> {
      for (let rounds = 0; isMessage || unsaved.length > 0; rounds++) {
        assert.ok(rounds < 10, "a message does not end");
        await save();
      }
      if (drops) message(batch.write({ type: "reset" }));
      await save();
      for (let rounds = 0; inWork.size > 0 || batch.next(); rounds++) {
        assert.ok(rounds < 20 * (states.total(state) + 1), "a page does not end");
        steps.acquire?.(1);
        for (const _ of [...inWork]) {
          steps.end?.(rounds);
          await save();
          for (const name of ["deliver", "release"]) steps[name]?.(0);
        }
        check();
      }
      if (!drops) assert.equal(states.done(state), states.total(state), "a page was forgotten");
      for (let times = 0; times < 3; times++) await pass();
      await save();
      // All notes are written.
      assert.deepEqual(read(replay(log)), read(state));
    },
  };
}

describe("The state of a batch", () => {
  before(() => mock.timers.enable({ apis: ["setTimeout"] }));
  after(() => mock.timers.reset());

  it("is what its entries say, also to the next process, and has each page in one place", async () => {
    const work = { acquire: 10, send: 6, wait: 2, end: 8, deliver: 8, release: 8 };
    const weights = { ...work, list: 5, torn: 1, plan: 2, message: 4, pass: 6, save: 14, die: 1 };
    const names = Object.entries(weights).flatMap(([name, weight]) => Array<string>(weight).fill(name));
    const step = fc.tuple(fc.constantFrom(...names), fc.nat(1000));
    const all = fc.array(step, { minLength: 20, maxLength: 120, size: "max" });
    const property = fc.asyncProperty(all, fc.boolean(), async (steps, drops) => {
      const driven = createDriven();
      for (const [name, number] of [["list", 4], ["save", 3], ["save", 3], ...steps] as typeof steps)
        await driven.step(name, number);
      await driven.finish(drops);
    });
    await fc.assert(property, { numRuns: 150 });
  });

  it("saves that it was opened before anything else, also if that fails at first", async () => {
    const log: string[] = [];
    let isFull = true;
    const batch = batchOf(async ({ type }) => {
      if (isFull) throw new Error("The disk is full.");
      log.push(type);
    });
    batch.opened("http://one.example");
    await assert.rejects(batch.write({ type: "pause" }));
    isFull = false;
    for (const type of ["pause", "resume"] as const) await batch.write({ type });
    assert.deepEqual(log, ["opened", "pause", "resume"]);
  });

  it("has no note of a result that was delivered before msg.retry", async () => {
    const log: Entry[] = [];
    const batch = batchOf(async (entry) => void log.push(entry));
    await batch.add({ settings: settings[0] as Settings, rows: [rowOf(1)] });
    const fail = () => batch.write({ type: "ended", page: 0, ...ended("failed") });
    const notes = () => log.filter(({ type }) => type === "delivered").length;
    await fail();
    batch.delivered(0);
    await batch.write({ type: "retry" });
    mock.timers.tick(49);
    await fail();
    await pass(1);
    assert.equal(notes(), 0);
    batch.delivered(0);
    await pass(50, 5);
    assert.equal(notes(), 0, "Node-RED delivers in later turns");
    await pass(0);
    assert.equal(notes(), 1);
  });

  it("says for how long earlier processes of the same boot have known what was sent, and which reports they got", () => {
    const list: Entry = { type: "list", settings: settings[0] as Settings, rows: 9, pages: [] };
    const sent: Entry = { type: "sent", page: 0, action: "create", intent };
    const rows = Array.from({ length: 9 }, (_, row) => rowOf(row * 6 + 1));
    const state = replay([{ type: "rows", from: 0, rows }, list]);
    apply(state, sent);
    const open = (boot: string, at: number, page: number) => {
      apply(state, { type: "opened", service: "http://one.example", boot, at });
      const claims = states.claimsOf(state).map(([ids, age]) => `${ids}: ${age}`);
      apply(state, { type: "ended", page, ...ended("created"), report: `r${page}` });
      return [state.requests.get(0)?.intent?.age, ...claims];
    };
    assert.deepEqual(states.claimsOf(state), [[[], 0]]);
    assert.deepEqual(open("a", 10, 1), [0, ": 0", ": 0"]);
    assert.deepEqual(open("a", 25, 2), [15, ": 15", "r1: 0", ": 0"]);
    apply(state, { type: "opened", service: "http://one.example", boot: "a", at: 25 });
    assert.deepEqual(open("a", 30, 3), [20, ": 20", "r1: 5", "r2: 0", ": 0"]);
    assert.deepEqual(states.claimsOf(state).at(-1), [["r3"], 0]);
    assert.deepEqual(open("b", 7, 4), [0, "r1,r2,r3: 0", ": 0"]);
    assert.deepEqual(open("b", 9, 5), [2, "r1,r2,r3: 2", "r4: 0", ": 0"]);
    assert.deepEqual(open("b", 8, 6), [1, "r1,r2,r3: 1", "r4,r5: 0", ": 0"]);
    apply(state, { type: "ended", page: 7, ...ended("failed") });
    const claims = states.claimsOf(state);
    for (const more of [{}, { boot: "b" }, { at: 99 }, { boot: "b", at: 8 }])
      apply(state, { type: "opened", service: "http://one.example", ...more });
    assert.deepEqual([states.claimsOf(state), claims.at(-1)], [claims, [["r6"], 0]]);
    apply(state, sent);
    assert.deepEqual(state.requests.get(0), { action: "create", intent });
  });

  it("takes a page from anywhere among those that wait", () => {
    const rows = Array.from({ length: 100 }, (_, row) => rowOf(row * 6 + 1));
    const list: Entry = { type: "list", settings: settings[0] as Settings, rows: 100, pages: [] };
    const begun = Array.from({ length: 90 }, (_, page): Entry => ({ type: "ended", page, ...ended("created") }));
    const delivered = begun.map((_, page): Entry => ({ type: "delivered", page }));
    const batch = new Batch({} as Journal, replay([{ type: "rows", from: 0, rows }, list, ...begun, ...delivered]));
    const pages = Array.from({ length: 500 }, () => Number(batch.next(true)?.page));
    assert.equal(batch.next()?.page, 90);
    for (let page = 90; page < 100; page++) {
      const share = pages.filter((one) => one === page).length / pages.length;
      assert.ok(share > 0.02 && share < 0.3, `${page}: ${share}`);
    }
  });

  it("has 50,000 rows of one page as soon as those of many", () => {
    const state = new State();
    const take = (entry: Entry) => apply(state, entry);
    take({ type: "rows", from: 0, rows: Array(50_000).fill(rowOf(1)) });
    const began = performance.now();
    take({ type: "list", settings: { existing: "create" }, rows: 50_000, pages: [] });
    assert.equal(states.rowsOf(state, 0).length, 50_000);
    assert.ok(performance.now() - began < 5000);
  });

  it("does not change if an entry cannot follow those before it", () => {
    const state = new State();
    const take = (entry: Entry) => apply(state, entry);
    take({ type: "batch", format: FORMAT, name: "a" });
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
      const pages = [{ page: 0, list: 0, report: "1" }, { page }];
      cases.push([{ type: "plan", pages }, "there is no such page"]);
      cases.push([{ type: "list", settings: {}, rows: 1, pages: [0, page] }, "there is no such page"]);
    }
    for (const list of [-1, 1]) cases.push([{ type: "planned", lists: [0, list] }, "there is no such list"]);
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

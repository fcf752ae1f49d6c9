import assert from "node:assert/strict";
import fc from "fast-check";
import { createSharedBatch, type SharedBatch } from "../../../src/audit/shared/batch.js";
import { createElsewhere } from "../../../src/audit/shared/elsewhere.js";
import { lostData } from "../../../src/audit/shared/faults.js";
import { createGroup, type Group, type GroupEntry, machineOf } from "../../../src/audit/shared/group.js";
import { createLog } from "../../../src/audit/shared/log.js";
import type { Ended, Sent, Watcher } from "../../../src/audit/store.js";
import { taken } from "../../../src/audit/trouble.js";
import type { SeoError } from "../../../src/errors.js";
import { createMemory, type Way } from "./memory.js";

const ROWS = 8;
const rows = Array.from({ length: ROWS }, (_, row) => `{"input":"a.example/${row % 6}"}\n`).join("");
const codes = ["SEO_REJECTED", "SEO_UNAUTHORIZED"];
const failed = (row: number, by: string, code = "SEO_UNAUTHORIZED"): GroupEntry => ({
  row,
  ended: "failed",
  attempts: 1,
  error: { code, message: "No." },
  by,
});

/** A machine that knows the log as far as it has read it, and what it has taken. */
interface Replica {
  name: string;
  group: Group;
  read: number;
  claims: number;
  taken: { row: number; by: string }[];
}

const kinds = [
  "new",
  "begun",
  "sent",
  "ended",
  "failed",
  "told",
  "left",
  "gone",
  "letGo",
  "again",
  "retry",
  "end",
] as const;
type Kind = (typeof kinds)[number];

function createReplica(name: string): Replica {
  const group = createGroup();
  group.apply({ list: { existing: "create" }, rows });
  return { name, group, read: 0, claims: 0, taken: [] };
}

/** What a machine would write, as far as it knows. */
function entryOf(replica: Replica, kind: Kind, number: number, names: string[]): GroupEntry | undefined {
  const { group, name } = replica;
  const { ledger, owners } = group;
  const mine = [...owners].filter(([key, by]) => key >= 0 && machineOf(by) === name);
  const [row = -1, by = ""] = mine[number % mine.length] ?? [];
  if (kind === "new" || kind === "begun" || kind === "end") return { take: kind, by: `${name}/${++replica.claims}` };
  if (kind === "gone") return { gone: names[number % names.length] ?? "" };
  if (kind === "letGo") return { letGo: true };
  if (kind === "retry") return { retry: true };
  if (kind === "left") {
    // What it once had: it may have ended, and another may have it now.
    const { row, by } = replica.taken[number % replica.taken.length] ?? { row: -1, by: "" };
    return { left: row, by };
  }
  if (kind === "again") return { row: ledger.held()[0] ?? 0, again: true };
  if (mine.length === 0) return undefined;
  if (kind === "sent") return { row, sent: "create", intent: {}, by };
  if (kind === "ended") return { row, ended: "created", report: String(row), attempts: number % 2, by };
  if (kind === "failed") return failed(row, by, codes[number % 3 && 1]);
  const [untold] = ledger.ended.has(row) ? ledger.untold(row) : [];
  return untold === undefined ? undefined : { row: untold, told: true, by };
}

const snapshot = ({ ledger, pages, owners, repeated, finished, isOver }: Group) => ({
  counts: { ...pages.counts },
  states: Array.from({ length: ROWS }, (_, row) => pages.state(row)),
  owners: [...owners].sort(([a], [b]) => a - b),
  held: ledger.held(),
  stopped: ["a", "b", "c"].map((name) => ledger.streakOf(name)?.before !== undefined),
  ended: [...ledger.ended.keys()].sort(),
  repeated: [...repeated].sort(),
  finished: finished(),
  isOver: isOver(),
});

const steps = fc.array(
  fc.record({
    machine: fc.nat(2),
    reads: fc.nat(4),
    kind: fc.constantFrom(...kinds),
    number: fc.nat(20),
  }),
  { maxLength: 120, size: "max" },
);

describe("Machines that apply a shared log", () => {
  it("agree on every page, and no two of them have the same one, whatever they knew when they wrote", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const log: GroupEntry[] = [];
        const names = ["a", "b", "c"];
        const replicas = names.map(createReplica);
        const judge = createReplica("judge");
        for (const { machine, reads, kind, number } of all) {
          const replica = replicas[machine] as Replica;
          for (const entry of log.slice(replica.read, replica.read + reads)) replica.group.apply(entry);
          replica.read = Math.min(log.length, replica.read + reads);
          const entry = entryOf(replica, kind, number, names);
          if (!entry) continue;
          log.push(entry);
          const { owners, ledger } = judge.group;
          const before = new Map(owners);
          const held = ledger.held();
          const result = judge.group.apply(entry);
          if ("sent" in entry && result === true) {
            assert.equal(before.get(entry.row), entry.by, "a machine sent for a page that it had not");
            assert.ok(!ledger.ended.has(entry.row), "a page was sent after it had ended");
          }
          if ("left" in entry && before.get(entry.left) !== entry.by)
            assert.deepEqual(owners, before, "a machine gave a page back that it had not");
          for (const page of ledger.ended.keys())
            assert.ok(owners.has(page) || ledger.held().includes(page) || ledger.has("begun", 0), `${page} is lost`);
          if ("again" in entry) assert.equal(result, held.includes(entry.row), "a page waits again that was told");
          if ("take" in entry && typeof result === "number") {
            replica.taken.push({ row: result, by: entry.by });
            assert.ok(entry.take === "begun" || !before.has(result), "a page was given to two machines");
          }
        }
        for (const replica of replicas) for (const entry of log.slice(replica.read)) replica.group.apply(entry);
        for (const replica of replicas) assert.deepEqual(snapshot(replica.group), snapshot(judge.group));
      }),
      { numRuns: 1000 },
    );
  });

  it("follow the requests of others until their outcome is known, and say what others got", () => {
    fc.assert(
      fc.property(steps, fc.nat(60), (all, begins) => {
        const names = ["a", "b", "c"];
        const { group } = createReplica("a");
        const replicas = names.map((name) => ({ ...createReplica(name), group }));
        const isOwn = (by: string) => machineOf(by) === "a";
        const elsewhere = createElsewhere(group, isOwn);
        const followed = new Map<string, Sent>();
        const told: string[] = [];
        const expected: string[] = [];
        const watcher = {
          sent(url: string, sent: Sent) {
            assert.ok(!followed.has(url));
            followed.set(url, sent);
            return () => followed.delete(url);
          },
          got: (report: string) => told.push(report),
          ended: () => told.push("another's request"),
        };
        for (const [step, { machine, kind, number }] of all.entries()) {
          if (step === begins) elsewhere.watch(watcher as unknown as Watcher);
          const entry = entryOf(replicas[machine] as Replica, kind, number, names);
          if (!entry) continue;
          const result = group.apply(entry);
          elsewhere.applied(entry, result);
          if (step < begins) continue;
          if ("ended" in entry && result === true) {
            if (entry.report !== undefined) expected.push(entry.report);
            if (machine > 0 && entry.attempts > 0) expected.push("another's request");
          }
          for (let page = 0; page < 6; page++) {
            const url = `a.example/${page}`;
            const by = group.owners.get(page);
            const isSent = group.pages.state(page) === "sent";
            if (isSent && by !== undefined && !isOwn(by)) assert.equal(followed.get(url), group.ledger.sent.get(page));
            // Whoever sent it may be gone.
            if (followed.has(url)) assert.ok(isSent && !(by !== undefined && isOwn(by)));
          }
        }
        assert.deepEqual(told, expected);
        elsewhere.end();
        assert.equal(followed.size, 0);
      }),
      { numRuns: 1000 },
    );
  });

  it("remember the reports that they got, in order", () => {
    const { applied, reports } = createElsewhere(createGroup(), () => false);
    for (const report of ["2", "1", "3"]) applied({ row: 0, ended: "created", report, attempts: 1, by: "b/1" }, true);
    assert.deepEqual(reports(), ["2", "1", "3"]);
  });

  it("does not count what a machine writes that has lost its page", () => {
    const { group } = createReplica("a");
    assert.equal(group.apply({ take: "new", by: "a/1" }), 0);
    assert.equal(group.apply({ row: 0, sent: "create", intent: {}, by: "a/1" }), true);
    group.apply({ gone: "a" });
    assert.equal(group.apply({ row: 0, ended: "created", attempts: 1, by: "a/1" }), false);
    assert.equal(group.apply({ take: "new", by: "a/2" }), undefined);
    assert.equal(group.apply({ take: "begun", by: "b/1" }), 0);
    assert.deepEqual(group.ledger.sent.get(0)?.intent, {});
    assert.equal(group.apply({ row: 0, ended: "created", attempts: 1, by: "b/1" }), true);
    group.apply({ gone: "b" });
    assert.equal(group.apply({ take: "begun", by: "c/1" }), 0);
    assert.ok(group.repeated.has(0));
  });

  describe("of which one has stopped", () => {
    const PAGES = 20;
    let group: Group;
    const state = () => [group.pages.counts.waiting, group.ledger.held().length];
    const stopped = (...names: string[]) => names.map((name) => group.ledger.streakOf(name)?.before !== undefined);
    let claims: number;

    /** A machine requests a page. */
    function request(name: string, code?: string): number {
      const by = `${name}/${++claims}`;
      const row = Number(group.apply({ take: "new", by }));
      assert.equal(group.apply({ row, sent: "create", intent: {}, by }), true);
      if (code) group.apply(failed(row, by, code));
      else group.apply({ row, ended: "created", report: String(row), attempts: 1, by });
      if (!code) group.apply({ row, told: true, by });
      group.apply({ left: row, by });
      return row;
    }
    function stop(name: string, code = "SEO_UNAUTHORIZED"): void {
      for (let failures = 0; failures < 5; failures++) request(name, code);
    }

    beforeEach(() => {
      claims = 0;
      group = createGroup();
      const rows = Array.from({ length: PAGES }, (_, row) => `{"input":"a.example/${row}"}\n`).join("");
      group.apply({ list: { existing: "create" }, rows });
    });

    it("count the failures of each, whatever the others do", () => {
      for (let failures = 0; failures < 5; failures++) {
        assert.deepEqual(stopped("a", "b"), [false, false]);
        request("a", "SEO_UNAUTHORIZED");
        request("b");
      }
      assert.deepEqual(stopped("a", "b"), [true, false]);
    });

    it("count no failure of a page after whose first request the same machine has sent one that succeeded", () => {
      const sent = Array.from({ length: 12 }, (_, page) => `${page % 2 ? "a" : "b"}/${page}`).map((by) => {
        const row = Number(group.apply({ take: "new", by }));
        group.apply({ row, sent: "create", intent: {}, by });
        return { row, by };
      });
      request("a");
      for (const { row, by } of sent) {
        group.apply({ row, sent: "create", intent: {}, by });
        group.apply(failed(row, by, "SEO_REJECTED"));
        group.apply({ left: row, by });
      }
      assert.deepEqual(stopped("a", "b"), [false, true]);
      assert.deepEqual(state(), [PAGES - 13, 6]);
      assert.equal(group.apply({ take: "begun", by: "a/x" }), 1);
      request("b", "SEO_REJECTED");
      stop("a", "SEO_REJECTED");
      assert.deepEqual(stopped("a", "b"), [true, true]);
    });

    it("request its pages, once another one succeeds", () => {
      stop("a");
      assert.deepEqual(state(), [PAGES - 5, 5]);
      request("b");
      assert.deepEqual(state(), [PAGES - 1, 0]);
      assert.deepEqual(stopped("a", "b"), [true, false]);
      assert.equal(request("b"), 0);
    });

    it("give a page back once", () => {
      stop("a");
      request("b");
      stop("c");
      request("b");
      assert.deepEqual(state(), [PAGES - 7, 0]);
      assert.equal(group.ledger.has("begun", 0), true);
    });

    it("wait if all have stopped, and request all pages after a probe", () => {
      stop("a");
      stop("b");
      assert.deepEqual(stopped("a", "b"), [true, true]);
      request("a", "SEO_UNAUTHORIZED");
      assert.deepEqual(state(), [PAGES - 11, 11]);
      request("b");
      assert.deepEqual(state(), [PAGES - 1, 0]);
      assert.deepEqual(stopped("a", "b"), [true, false]);
      request("a");
      assert.deepEqual(stopped("a", "b"), [false, false]);
    });

    it("do not take a success for a probe's that was sent before", () => {
      const by = "b/0";
      const row = Number(group.apply({ take: "new", by }));
      group.apply({ row, sent: "create", intent: {}, by });
      stop("a");
      group.apply({ row, ended: "created", report: "1", attempts: 1, by });
      assert.deepEqual(state(), [PAGES - 6, 5]);
    });

    it("take the success of a retry for a probe's", () => {
      const by = "b/0";
      const row = Number(group.apply({ take: "new", by }));
      group.apply({ row, sent: "create", intent: {}, by });
      stop("a");
      group.apply({ row, sent: "create", intent: {}, by });
      group.apply({ row, ended: "created", report: "1", attempts: 2, by });
      assert.deepEqual(state(), [PAGES - 1, 0]);
    });

    it("take no success for that of a machine which found it after another one was gone", () => {
      for (const row of [0, 1]) {
        group.apply({ take: "new", by: `z/${row}` });
        group.apply({ row, sent: "create", intent: {}, by: `z/${row}` });
      }
      group.apply({ gone: "z" });
      const find = (by: string) => {
        const row = Number(group.apply({ take: "begun", by }));
        group.apply({ row, ended: "created", report: "1", attempts: 0, by });
      };
      request("a", "SEO_UNAUTHORIZED");
      find("a/x");
      assert.deepEqual(state(), [PAGES - 3, 1]);
      stop("a");
      group.apply({ gone: "a" });
      find("b/x");
      assert.deepEqual(stopped("b"), [true]);
    });

    it("report failures that may be the pages' own, once another one succeeds", () => {
      stop("a", "SEO_REJECTED");
      request("b");
      assert.deepEqual(state(), [PAGES - 6, 0]);
      assert.equal(group.apply({ take: "begun", by: "b/x" }), 0);
      assert.deepEqual(stopped("a", "b"), [true, false]);
    });

    it("have the next one begin with a probe if all are gone", () => {
      stop("a");
      group.apply({ gone: "a" });
      assert.deepEqual(stopped("b", "c"), [true, true]);
      request("b", "SEO_UNAUTHORIZED");
      assert.deepEqual(stopped("b"), [true]);
      assert.deepEqual(state(), [PAGES - 6, 6]);
      request("c");
      assert.deepEqual(state(), [PAGES - 1, 0]);
      assert.deepEqual(stopped("c", "d"), [false, false]);
    });

    it("request the pages of all that have stopped and are gone", () => {
      stop("a");
      stop("b");
      group.apply({ gone: "a" });
      group.apply({ gone: "b" });
      request("c");
      assert.deepEqual(state(), [PAGES - 1, 0]);
    });

    it("request all its pages again if one of them, as the probe, succeeds", () => {
      stop("a", "SEO_REJECTED");
      assert.equal(group.apply({ row: 2, again: true }), true);
      assert.equal(request("a"), 2);
      assert.deepEqual(state(), [PAGES - 1, 0]);
    });

    it("take the success of a page for a probe's that was in flight, failed, and is requested again", () => {
      const by = "a/0";
      const row = Number(group.apply({ take: "new", by }));
      group.apply({ row, sent: "create", intent: {}, by });
      stop("a", "SEO_REJECTED");
      group.apply(failed(row, by, "SEO_REJECTED"));
      group.apply({ left: row, by });
      group.apply({ row, again: true });
      assert.equal(request("a"), row);
      assert.deepEqual(stopped("a"), [false]);
    });

    it("count no failure that is reported at once, because the batch was reset", () => {
      stop("", "SEO_REJECTED");
      group.ledger.apply({ row: 0, told: true });
      assert.deepEqual(stopped(""), [false]);
    });

    it("keep its pages if it is gone, and another one fails that has succeeded", () => {
      request("b");
      stop("a");
      group.apply({ gone: "a" });
      request("b", "SEO_REJECTED");
      assert.deepEqual(stopped("b"), [false]);
      assert.deepEqual(state(), [PAGES - 7, 6]);
      request("b");
      assert.deepEqual(state(), [PAGES - 3, 0]);
    });

    it("report its failures if it is gone before it has stopped", () => {
      request("a", "SEO_UNAUTHORIZED");
      group.apply({ gone: "a" });
      assert.equal(group.apply({ take: "begun", by: "b/x" }), 0);
    });
  });

  it("reject an entry that has no meaning", () => {
    const { group } = createReplica("a");
    assert.throws(() => group.apply({ strange: true } as unknown as GroupEntry));
    assert.throws(() => group.apply({ take: "strange", by: "a/1" } as unknown as GroupEntry));
  });
});

describe("A machine's part of a shared batch", () => {
  let id: string;
  let lines: number;
  let way: Way;
  /** Called with each command. */
  let tried: () => void;
  let memory: ReturnType<typeof createMemory>;
  let batch: SharedBatch;

  beforeEach(async () => {
    id = "a";
    lines = 0;
    way = "answered";
    tried = () => {};
    const next = () => {
      tried();
      return way;
    };
    memory = createMemory();
    const queue = memory.connect(next, () => 20).queue("log");
    batch = createSharedBatch({ existing: "create" }, '{"input":"a.example/0"}\n', {
      name: "default",
      machine: () => id,
      async renew() {
        id = "b";
      },
      stale: 30,
      log: (take) =>
        createLog(
          queue,
          "log",
          async () => true,
          (text) => {
            lines++;
            take(text);
          },
        ),
      toError: (cause) => cause as SeoError,
      succeed: () => assert.fail("the batch was not over"),
      discard: () => assert.fail("the batch was not removed"),
      reopened: () => assert.fail("the batch had not finished"),
    });
    await batch.read();
  });
  afterEach(() => batch.close());

  it("notes once more that it has reported a row if it lost the page before that was noted, and took it again", async () => {
    const page = Number((await batch.take("new"))?.page);
    await batch.sent(page, { sent: "create" });
    await batch.ended(page, { ended: "created", attempts: 1 });
    way = "lost";
    batch.told(page);
    await new Promise<void>((resolve) => {
      tried = resolve;
    });
    way = "answered";
    await batch.bury("a");
    assert.deepEqual(await batch.take("begun").then((claim) => [claim?.page, claim?.repeated]), [page, true]);
    assert.deepEqual(batch.untold(page), []);
    batch.release(page);
    while (!(await batch.last())) await new Promise(setImmediate);
    assert.equal(batch.counts.created, 1);
  });

  it("does not send the request of a page that was given away while the note took long", async () => {
    const page = Number((await batch.take("new"))?.page);
    const logs = memory.queues.get("log")?.get("log-0")?.logs ?? [];
    let reads = 0;
    // The note is appended, and read back; then it has taken longer than it may, and the log is read once more.
    tried = () => {
      if (++reads === 3) logs.push(JSON.stringify({ from: "another", number: 1, entries: [{ gone: "a" }] }));
    };
    await assert.rejects(batch.sent(page, { sent: "create" }), taken);
    assert.equal(reads, 3);
  });

  it("takes no page that was given away when it was taken", async () => {
    await batch.letGo();
    const logs = memory.queues.get("log")?.get("log-0")?.logs ?? [];
    let commands = 0;
    tried = () => {
      if (++commands === 2) logs.push(JSON.stringify({ from: "another", number: 1, entries: [{ gone: "a" }] }));
    };
    assert.equal(await batch.take("new"), undefined);
    assert.equal(commands, 2);
  });

  it("notices that the server has lost what it has just written", async () => {
    const page = Number((await batch.take("new"))?.page);
    const logs = memory.queues.get("log")?.get("log-0")?.logs ?? [];
    let commands = 0;
    tried = () => {
      if (++commands === 2) logs.pop();
    };
    await assert.rejects(batch.sent(page, { sent: "create" }), lostData);
  });

  it("gets a new ID before it takes something if it was taken for dead", async () => {
    await batch.bury("a");
    const before = lines;
    assert.equal((await batch.take("new"))?.page, 0);
    assert.deepEqual([id, lines], ["b", before + 1]);
  });

  it("ends a page that needs no request for its newest plan, if it lost the one before", async () => {
    await batch.join({ existing: "return" }, [{ key: "", text: '{"input":"a.example/1"}' }]);
    const fresh: Ended = { ended: "fresh", report: "1", attempts: 0 };
    await batch.unplanned();
    await batch.bury("a");
    await assert.rejects(batch.ended(1, fresh), taken);
    assert.equal((await batch.unplanned())?.pages, 1);
    await batch.ended(1, fresh);
  });

  it("leaves a plan that it could not make to others", async () => {
    await batch.join({ existing: "return" }, [{ key: "", text: '{"input":"a.example/1"}' }]);
    await batch.unplanned();
    batch.unplan?.();
    while (batch.machines().size > 0) await new Promise(setImmediate);
    assert.equal((await batch.unplanned())?.pages, 1);
  });

  it("reports a row whose end was written without a response", async () => {
    const failed: Ended = { ended: "failed", attempts: 0, error: { code: "SEO_INPUT", message: "No." } };
    await batch.join({ existing: "create" }, [{ key: "", text: '{"input":"a","error":"No."}' }]);
    const row = Number(await batch.takeInvalid());
    way = "mute";
    await assert.rejects(batch.ended(row, failed));
    way = "answered";
    await assert.rejects(batch.ended(row, failed), taken);
    while (batch.machines().size > 0) await new Promise(setImmediate);
    assert.deepEqual(await batch.take("begun").then((claim) => [claim?.page, claim?.ended?.ended]), [row, "failed"]);
  });

  it("has nothing to be worked on if it has vanished", () => {
    let finished = 0;
    batch.vanish();
    batch.watch?.({ finished: () => finished++ } as unknown as Watcher);
    assert.equal(finished, 1);
  });
});

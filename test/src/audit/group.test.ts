import assert from "node:assert/strict";
import fc from "fast-check";
import { createGroup, type Group, type GroupEntry, machineOf } from "../../../src/audit/shared/group.js";

const ROWS = 8;
const rows = Array.from({ length: ROWS }, (_, row) => `{"input":"a.example/${row % 6}"}\n`).join("");
const failure = { code: "SEO_REJECTED", message: "No." };

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
  if (kind === "ended") return { row, ended: "created", report: String(row), attempts: 1, by };
  if (kind === "failed") return { row, ended: "failed", attempts: 1, error: failure, by };
  const [untold] = ledger.ended.has(row) ? ledger.untold(row) : [];
  return untold === undefined ? undefined : { row: untold, told: true, by };
}

const snapshot = ({ ledger, pages, owners, repeated, finished, isOver }: Group) => ({
  counts: { ...pages.counts },
  states: Array.from({ length: ROWS }, (_, row) => pages.state(row)),
  owners: [...owners].sort(([a], [b]) => a - b),
  held: ledger.held(),
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

  it("reject an entry that has no meaning", () => {
    const { group } = createReplica("a");
    assert.throws(() => group.apply({ strange: true } as unknown as GroupEntry));
    assert.throws(() => group.apply({ take: "strange", by: "a/1" } as unknown as GroupEntry));
  });
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { type Change, createComparison, type Figures, type Snapshot } from "../../src/changes.js";
import type { Row } from "../support/lists.js";

/** What the comparison finds between a list and what was kept, and what it keeps then. */
function compare(before: Snapshot, list: Row[], threshold?: number) {
  const comparison = createComparison(before, threshold);
  const changes = list.map(comparison.compare).filter((change): change is Change => change !== undefined);
  return { changes: [...changes, ...comparison.deleted()], seen: comparison.seen };
}

/** What is kept of a list that was never seen. */
const snapshot = (list: Row[]): Snapshot => compare({}, list).seen;

const idOf = (record: unknown) => String((record as Row).id);

/** What is known of the reports by those who only hear of changes. */
function apply(known: Snapshot, changes: Change[]): Snapshot {
  const after = { ...known };
  for (const { change, record, fields = [] } of changes) {
    const id = idOf(record);
    const now = snapshot([record as Row])[id] as Figures;
    if (change === "deleted") delete after[id];
    else if (change === "created") after[id] = now;
    else {
      const news = (fields as (keyof Figures)[]).map((field) => [field, now[field]]);
      after[id] = { ...(after[id] as Figures), ...Object.fromEntries(news) };
    }
  }
  return after;
}

/** Without the id itself, whose type may differ from one answer to the next. */
const plain = (known: Snapshot, names?: (keyof Figures)[]) =>
  Object.fromEntries(
    Object.entries(known).map(([id, { id: _, ...figures }]) => [
      id,
      names ? names.map((name) => known[id]?.[name]) : figures,
    ]),
  );

const missing = fc.constantFrom(undefined, null, "");
const date = fc.constantFrom("2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z");
const number = (max: number) => fc.nat(max).chain((value) => fc.constantFrom<unknown>(value, String(value)));
const either = (one: fc.Arbitrary<unknown>) => fc.oneof({ weight: 4, arbitrary: one }, missing);

const record = fc.record({
  id: fc.nat(12).chain((id) => fc.constantFrom<unknown>(id, String(id))),
  url: either(fc.constantFrom("example.com", "example.com/a")),
  score: either(number(4)),
  result: either(fc.oneof(fc.constantFrom("good", "bad"), number(4))),
  privacy: either(number(2)),
  created_at: either(date),
  generated_at: either(date),
  updated_at: either(date),
  results: fc.constant({ title: "not kept" }),
});
const list = fc.uniqueArray(record, { selector: idOf, maxLength: 10 });

describe("Changes of a list", () => {
  it("make the new figures of the old ones, whatever the lists are", () => {
    fc.assert(
      fc.property(list, list, (old, now) => {
        const before = snapshot(old);
        const { changes, seen } = compare(before, now);
        assert.deepEqual(plain(apply(before, changes)), plain(seen));
      }),
      { numRuns: 1000 },
    );
  });

  it("make them over many looks, too, of which each keeps what the one before it saw", () => {
    fc.assert(
      fc.property(fc.array(list, { maxLength: 6 }), (looks) => {
        let known: Snapshot = {};
        let kept: Snapshot = {};
        for (const now of looks) {
          const { changes, seen } = compare(kept, now);
          known = apply(known, changes);
          kept = JSON.parse(JSON.stringify(seen));
        }
        assert.deepEqual(plain(known), plain(kept));
      }),
      { numRuns: 500 },
    );
  });

  it("are told once for each report, of the right kind, with what was known and what differs", () => {
    fc.assert(
      fc.property(list, list, (old, now) => {
        const before = snapshot(old);
        const { changes, seen } = compare(before, now);
        assert.equal(new Set(changes.map(({ record }) => idOf(record))).size, changes.length);
        const ids = new Set(now.map(idOf));
        for (const { change, record, previous, fields } of changes) {
          const id = idOf(record);
          const kind = !(id in before) ? "created" : ids.has(id) ? "changed" : "deleted";
          assert.equal(change, kind);
          assert.equal(previous, before[id]);
          if (kind === "deleted") assert.equal(record, before[id]);
          else assert.ok(now.includes(record as (typeof now)[number]));
          if (kind !== "changed") {
            assert.equal(fields, undefined);
            continue;
          }
          assert.ok(fields?.length);
          for (const name of fields as (keyof Figures)[]) assert.notEqual(seen[id]?.[name], previous?.[name]);
        }
        assert.deepEqual(
          changes.filter(({ change }) => change === "deleted").map(({ record }) => idOf(record)),
          Object.keys(before).filter((id) => !ids.has(id)),
        );
      }),
      { numRuns: 1000 },
    );
  });

  it("are none between a list and itself, also after it was kept as JSON, and with ids of another type", () => {
    fc.assert(
      fc.property(list, fc.nat(5), (all, threshold) => {
        const before: Snapshot = JSON.parse(JSON.stringify(snapshot(all)));
        const other = all.map((row) => ({ ...row, id: typeof row.id === "string" ? Number(row.id) : String(row.id) }));
        assert.deepEqual(compare(before, other, threshold).changes, []);
      }),
    );
  });

  it("are the same in any order of the list", () => {
    fc.assert(
      fc.property(list, list, (old, now) => {
        const before = snapshot(old);
        const sorted = ({ changes }: { changes: Change[] }) =>
          changes.toSorted((a, b) => Number(idOf(a.record)) - Number(idOf(b.record)));
        assert.deepEqual(sorted(compare(before, now)), sorted(compare(before, now.toReversed())));
      }),
    );
  });

  describe("with a threshold", () => {
    it("make the new score, result and privacy of the old ones, but for scores that moved less", () => {
      fc.assert(
        fc.property(list, list, fc.integer({ min: 1, max: 4 }), (old, now, threshold) => {
          const before = snapshot(old);
          const { changes, seen } = compare(before, now, threshold);
          const names: (keyof Figures)[] = ["score", "result", "privacy"];
          assert.deepEqual(plain(apply(before, changes), names), plain(seen, names));
          for (const [id, { score }] of Object.entries(snapshot(now))) {
            const kept = seen[id]?.score;
            if (score === null || kept === score) continue;
            assert.ok(typeof kept === "number" && Math.abs(kept - score) < threshold, `${kept} for ${score}`);
          }
        }),
        { numRuns: 1000 },
      );
    });

    it("are told when small steps have added up, and never sooner", () => {
      fc.assert(
        fc.property(fc.array(fc.nat(100), { minLength: 1 }), fc.integer({ min: 1, max: 30 }), (scores, threshold) => {
          let [told = 0] = scores;
          let before = snapshot([{ id: 1, score: told }]);
          for (const score of scores) {
            const { changes, seen } = compare(before, [{ id: 1, score, updated_at: `day ${score}` }], threshold);
            const moved = Math.abs(score - told) >= threshold;
            assert.equal(changes.length, moved ? 1 : 0);
            if (moved) {
              assert.equal(changes[0]?.previous?.score, told);
              told = score;
            }
            before = seen;
          }
        }),
      );
    });

    it("are told of a score that was not known, however low it is", () => {
      const { changes, seen } = compare(snapshot([{ id: 1, score: null }]), [{ id: 1, score: 5 }], 10);
      assert.deepEqual(changes[0]?.fields, ["score"]);
      assert.equal(seen[1]?.score, 5);
    });

    it("are not told of a report that was only made again", () => {
      const old = { id: 1, score: 50, result: "good", privacy: 0, generated_at: "2026-01-01" };
      const again = { ...old, generated_at: "2026-01-02", updated_at: "2026-01-02", url: "example.com" };
      assert.deepEqual(compare(snapshot([old]), [again], 1).changes, []);
      assert.deepEqual(compare(snapshot([old]), [{ ...again, result: "bad" }], 1).changes[0]?.change, "changed");
      assert.deepEqual(compare(snapshot([old]), [again]).changes[0]?.fields, ["url", "generated_at", "updated_at"]);
    });
  });

  it("take a number in result for the score, where there is no other", () => {
    const [old, now] = [snapshot([{ id: 1, result: 70 }]), [{ id: 1, result: "71", score: undefined }]];
    assert.deepEqual([old[1]?.score, old[1]?.result], [70, null]);
    assert.deepEqual(compare(old, now).changes[0]?.fields, ["score"]);
    assert.equal(snapshot([{ id: 1, result: 70, score: 80 }])[1]?.score, 80);
  });

  it("are none where a figure is blank, which is no figure", () => {
    const known = { id: 1, url: "example.com", score: 50, result: "good", privacy: 2 };
    const blank = { id: 1, url: "", score: "", result: "", privacy: "" };
    const { changes, seen } = compare(snapshot([known]), [blank]);
    assert.deepEqual(changes, []);
    assert.deepEqual(seen, snapshot([known]));
    assert.deepEqual(snapshot([blank])[1], { ...snapshot([{ id: 1 }])[1] });
  });

  it("are none where a figure is left out, and told when it comes back as another", () => {
    const old = snapshot([{ id: 1, score: 50, privacy: 2, result: "good" }]);
    const { changes, seen } = compare(old, [{ id: 1, score: null }]);
    assert.deepEqual(changes, []);
    assert.deepEqual(compare(seen, [{ id: 1, score: 50, privacy: "2", result: "good" }]).changes, []);
    assert.deepEqual(compare(seen, [{ id: 1, privacy: 1 }]).changes[0]?.fields, ["privacy"]);
  });

  it("take any id for no more than an id", () => {
    const ids = ["__proto__", "constructor", "toString", "0"].map((id) => ({ id, score: 1 }));
    const { changes, seen } = compare({}, ids);
    assert.deepEqual(
      changes.map(({ change }) => change),
      ["created", "created", "created", "created"],
    );
    assert.deepEqual(compare(seen, ids).changes, []);
    assert.equal(compare(seen, []).changes.length, 4);
  });

  it("cannot be told of a record without an id", () => {
    for (const wrong of [{}, { id: null }, { id: {} }, { id: true }, null, "text"]) {
      assert.throws(() => compare({}, [wrong as Row]), { code: "SEO_RESPONSE", message: /without id/ });
    }
  });
});

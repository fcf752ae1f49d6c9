import assert from "node:assert/strict";
import fc from "fast-check";
import { type ById, type Change, conditions, type Figures, reports } from "../../src/changes.js";
import { changes as row } from "../../src/operations.js";
import type { Row } from "../support/lists.js";

type Snapshot = ById<Figures>;

/** Compares a list with a snapshot. Returns the changes and the new snapshot. */
function compare(before: Snapshot, list: Row[], threshold = 0) {
  const comparison = reports.compare({ reports: before }, threshold);
  const changes = [...list.flatMap(comparison.compare), ...comparison.deleted()];
  return { changes, seen: comparison.state(true).reports };
}

/** The snapshot of a list. */
const snapshot = (list: Row[]): Snapshot => compare({}, list).seen;

const idOf = (record: unknown) => String((record as Row).id);

/** Applies changes to a snapshot, as a flow that receives only the changes could. */
function apply(known: Snapshot, changes: Change[]): Snapshot {
  const after = { ...known };
  for (const { change, payload: record, details } of changes) {
    const { fields = [] } = details;
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

/** A snapshot without the IDs, because their type can differ between responses. */
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

describe("Changes between two lists", () => {
  it("lead from the first snapshot to the last over several runs", () => {
    const property = fc.property(fc.array(list, { maxLength: 6 }), (looks) => {
      let known: Snapshot = {};
      let kept: Snapshot = {};
      for (const now of looks) {
        const { changes, seen } = compare(kept, now);
        known = apply(known, changes);
        kept = JSON.parse(JSON.stringify(seen));
      }
      assert.deepEqual(plain(known), plain(kept));
    });
    fc.assert(property, { numRuns: 1000 });
  });

  it("contain each report at most once, with its change, previous values and changed fields", () => {
    const property = fc.property(list, list, (old, now) => {
      const before = snapshot(old);
      const { changes, seen } = compare(before, now);
      assert.equal(new Set(changes.map(({ payload }) => idOf(payload))).size, changes.length);
      const ids = new Set(now.map(idOf));
      for (const { change, payload: record, details } of changes) {
        const { previous, fields } = details;
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
      const deleted = changes.filter(({ change }) => change === "deleted").map(({ payload }) => idOf(payload));
      const missing = Object.keys(before).filter((id) => !ids.has(id));
      assert.deepEqual(deleted, missing);
    });
    fc.assert(property, { numRuns: 1000 });
  });

  it("are empty for an unchanged list, also with saved state and with IDs of another type", () => {
    const property = fc.property(list, fc.nat(5), (all, threshold) => {
      const before: Snapshot = JSON.parse(JSON.stringify(snapshot(all)));
      const other = all.map((row) => ({ ...row, id: typeof row.id === "string" ? Number(row.id) : String(row.id) }));
      assert.deepEqual(compare(before, other, threshold).changes, []);
    });
    fc.assert(property);
  });

  it("do not depend on the order of the list", () => {
    const property = fc.property(list, list, (old, now) => {
      const before = snapshot(old);
      const sorted = ({ changes }: { changes: Change[] }) =>
        changes.toSorted((a, b) => Number(idOf(a.payload)) - Number(idOf(b.payload)));
      assert.deepEqual(sorted(compare(before, now)), sorted(compare(before, now.toReversed())));
    });
    fc.assert(property);
  });

  describe("with a threshold", () => {
    it("lead to the new score, result and privacy, except for smaller score differences", () => {
      const property = fc.property(list, list, fc.integer({ min: 1, max: 4 }), (old, now, threshold) => {
        const before = snapshot(old);
        const { changes, seen } = compare(before, now, threshold);
        const names: (keyof Figures)[] = ["score", "result", "privacy"];
        assert.deepEqual(plain(apply(before, changes), names), plain(seen, names));
        for (const [id, { score }] of Object.entries(snapshot(now))) {
          const kept = seen[id]?.score;
          if (score === null || kept === score) continue;
          assert.ok(typeof kept === "number" && Math.abs(kept - score) < threshold, `${kept} for ${score}`);
        }
      });
      fc.assert(property, { numRuns: 1000 });
    });

    it("are sent once small score differences add up to the threshold, and not before", () => {
      const property = fc.property(
        fc.array(fc.nat(100), { minLength: 1 }),
        fc.integer({ min: 1, max: 30 }),
        (scores, threshold) => {
          let [told = 0] = scores;
          let before = snapshot([{ id: 1, score: told }]);
          for (const score of scores) {
            const { changes, seen } = compare(before, [{ id: 1, score, updated_at: `day ${score}` }], threshold);
            const moved = Math.abs(score - told) >= threshold;
            assert.equal(changes.length, moved ? 1 : 0);
            if (moved) {
              assert.equal(changes[0]?.details.previous?.score, told);
              told = score;
            }
            before = seen;
          }
        },
      );
      fc.assert(property);
    });

    it("do not include a report that was regenerated with the same score, result and privacy", () => {
      const old = { id: 1, score: 50, result: "good", privacy: 0, generated_at: "2026-01-01" };
      const again = { ...old, generated_at: "2026-01-02", updated_at: "2026-01-02", url: "example.com" };
      assert.deepEqual(compare(snapshot([old]), [again], 1).changes, []);
      assert.deepEqual(compare(snapshot([old]), [{ ...again, result: "bad" }], 1).changes[0]?.change, "changed");
      const [change] = compare(snapshot([old]), [again]).changes;
      assert.deepEqual(change?.details.fields, ["url", "generated_at", "updated_at"]);
    });
  });

  it("use a number in result as the score if the record has no score", () => {
    const [old, now] = [snapshot([{ id: 1, result: 70, score: null }]), [{ id: 1, result: "71", score: undefined }]];
    assert.deepEqual([old[1]?.score, old[1]?.result], [70, null]);
    assert.deepEqual(compare(old, now).changes[0]?.details.fields, ["score"]);
    assert.equal(snapshot([{ id: 1, result: 70, score: 80 }])[1]?.score, 80);
  });

  it("are empty if values became blank", () => {
    const known = { id: 1, url: "example.com", score: 50, result: "good", privacy: 2 };
    const blank = { id: 1, url: "", score: "", result: "", privacy: "" };
    const { changes, seen } = compare(snapshot([known]), [blank]);
    assert.deepEqual(changes, []);
    assert.deepEqual(seen, snapshot([known]));
    assert.deepEqual(snapshot([blank])[1], { ...snapshot([{ id: 1 }])[1] });
  });

  describe("meet the condition", () => {
    const meets = (name: string, old: Row, now: Row, limit = 50) =>
      compare(snapshot([{ id: 1, ...old }]), [{ id: 1, ...now }]).changes.some((one) => conditions[name]?.(one, limit));

    it("“worse” if the score fell, or if the result is worse at the same score", () => {
      const property = fc.property(fc.nat(100), fc.nat(100), (old, now) => {
        assert.equal(meets("worse", { score: old }, { score: now }), now < old);
        assert.equal(meets("worse", { result: old }, { result: String(now) }), now < old);
      });
      fc.assert(property);
      const ranks = ["good", "Decent", "bad", "other"];
      for (const old of ranks)
        for (const now of ranks) {
          const worse = now !== "other" && old !== "other" && ranks.indexOf(now) > ranks.indexOf(old);
          assert.equal(meets("worse", { result: old }, { result: now }), worse, `${old} to ${now}`);
          assert.equal(meets("worse", { result: old, score: 5 }, { result: now, score: 5 }), worse);
          assert.equal(meets("worse", { result: old, score: 5 }, { result: now, score: 6 }), false);
        }
      assert.equal(meets("worse", {}, { score: 5 }), false);
      assert.equal(meets("worse", { privacy: 0 }, { privacy: 2 }), false);
    });

    it("“below” if the score is below the limit, and was not or was unknown", () => {
      const property = fc.property(fc.nat(100), fc.nat(100), fc.nat(100), (old, now, limit) => {
        assert.equal(meets("below", { score: old }, { score: now, privacy: 1 }, limit), now < limit && old >= limit);
        assert.equal(meets("below", {}, { score: now }, limit), now < limit);
      });
      fc.assert(property);
      assert.equal(meets("below", { privacy: 0 }, { privacy: 1 }), false);
    });

    it("only “below” if they are new, and none but “all” if they are gone", () => {
      const names = (changes: Change[]) =>
        Object.keys(conditions).filter((name) => changes.every((one) => conditions[name]?.(one, 50)));
      assert.deepEqual(Object.keys(conditions), Object.keys(row.options.only?.values ?? {}));
      const low = [{ id: 1, score: 49 }];
      assert.deepEqual(names(compare({}, low).changes), ["all", "below"]);
      assert.deepEqual(names(compare({}, [{ id: 1, score: 50 }]).changes), ["all"]);
      const gone = compare(snapshot(low), []).changes;
      assert.deepEqual([names(gone), gone[0]?.scores], [["all"], [49, null]]);
    });
  });

  it("are compared only with saved figures", () => {
    const saved: Snapshot = JSON.parse(JSON.stringify(snapshot([{ id: 1 }, { id: 2 }])));
    for (const [state, is] of [
      [{ reports: {} }, true],
      [{ reports: saved }, true],
      [{ reports: { ...saved, 2: {} } }, false],
      [{ reports: { 1: null } }, false],
    ] as const)
      assert.equal(reports.isState(state), is, JSON.stringify(state));
  });

  it("treat any text as an ID, including __proto__", () => {
    const ids = ["__proto__", "constructor", "toString", "0"].map((id) => ({ id, score: 1 }));
    const { changes, seen } = compare({}, ids);
    const kinds = changes.map(({ change }) => change);
    assert.deepEqual(kinds, ["created", "created", "created", "created"]);
    assert.deepEqual(compare(seen, ids).changes, []);
    assert.equal(compare(seen, []).changes.length, 4);
  });
});

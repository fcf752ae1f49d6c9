import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { conditions } from "../../src/changes.js";
import { type CheckState, checks } from "../../src/checks.js";
import type { Issue } from "../../src/findings.js";
import type { Row } from "../support/lists.js";

/** The results of a report, by check. */
type Results = Record<string, boolean>;

const report = (id: number, results: Results, score?: number): Row => ({
  id,
  score,
  results: Object.fromEntries(Object.entries(results).map(([check, passed]) => [check, { passed }])),
});

/** Compares a list with a state. Returns the changes as text and the new state, as a context store returns it. */
function compare(before: CheckState | undefined, list: Row[], whole = true) {
  const comparison = checks.compare(before, 0);
  const found = list.flatMap(comparison.compare);
  const changes = found.map(
    ({ change, payload }) => `${change} ${(payload as Issue).report} ${(payload as Issue).check}`,
  );
  const state = JSON.parse(JSON.stringify(comparison.state(whole))) as CheckState;
  assert.ok(checks.isState(state));
  return { changes, found, state };
}

/** The changes from one list to another. */
const between = (old: Row[], now: Row[]) => compare(compare(undefined, old).state, now).changes;

const results = fc.dictionary(fc.constantFrom("title", "speed", "links", "__proto__", "a b", "é"), fc.boolean());
const list = fc
  .uniqueArray(fc.nat(9), { maxLength: 6 })
  .chain((ids) => fc.tuple(...ids.map((id) => results.map((all) => report(id, all)))));

describe("Changes of checks", () => {
  it("are those that both lists have with another result, and mirror each other", () => {
    const turned = (change: string) => change.replace(/^\w+/, (kind) => (kind === "failed" ? "fixed" : "failed"));
    const property = fc.property(list, list, (a, b) => {
      const there = between(a, b);
      assert.deepEqual(between(b, a).toSorted(), there.map(turned).toSorted());
      const passed = (rows: Row[]) =>
        new Map(
          rows.flatMap(({ id, results }) =>
            Object.entries(results as Row).map(([check, one]) => [`${id} ${check}`, (one as Row).passed]),
          ),
        );
      const [before, now] = [passed(a), passed(b)];
      const expected = [...now].flatMap(([check, ok]) =>
        before.has(check) && before.get(check) !== ok ? [`${ok ? "fixed" : "failed"} ${check}`] : [],
      );
      assert.deepEqual(there.toSorted(), expected.toSorted());
    });
    fc.assert(property, { numRuns: 1000 });
  });

  it("lead from the first results to the last, over any number of lists", () => {
    const property = fc.property(fc.array(list, { minLength: 1, maxLength: 6 }), (lists) => {
      /** The last known result of each check, as a flow that hears only of changes has it. */
      const told = new Map<string, string>();
      let state: CheckState | undefined;
      for (const rows of lists) {
        const next = compare(state, rows, false);
        ({ state } = next);
        for (const change of next.changes) {
          const [kind = "", ...check] = change.split(" ");
          assert.notEqual(told.get(check.join(" ")), kind, "a change is sent once");
          told.set(check.join(" "), kind);
        }
        for (const { id, results } of rows)
          for (const [check, one] of Object.entries(results as Row)) {
            const kind = told.get(`${id} ${check}`);
            if (kind) assert.equal(kind, (one as Row).passed ? "fixed" : "failed");
          }
      }
    });
    fc.assert(property, { numRuns: 500 });
  });

  it("are the issues of failed checks, and fixed ones without errors", () => {
    const { state } = compare(undefined, [report(1, { title: true, links: false })]);
    const wrong = { passed: false, importance: "high", value: 3, errors: ["short"] };
    const now = { id: 1, url: "a.example", project: "a", results: { title: wrong, links: { passed: true } } };
    const { found } = compare(state, [now]);
    const issue = { report: 1, url: "a.example", project: "a" };
    const told = found.map(({ change, payload, details }) => [change, payload, details]);
    assert.deepEqual(told, [
      ["failed", { ...issue, check: "title", importance: "high", value: 3, errors: ["short"] }, { check: "title" }],
      ["fixed", { ...issue, check: "links", importance: null, value: null, errors: [] }, { check: "links" }],
    ]);
  });

  it("compare a check that was missing with its last result", () => {
    let { state } = compare(undefined, [report(1, { title: true, speed: true })]);
    for (const without of [report(1, { title: true }), { id: 1 }, { id: 1, results: null }]) {
      const next = compare(state, [without]);
      assert.deepEqual(next.changes, []);
      ({ state } = next);
    }
    assert.deepEqual(compare(state, [report(1, { title: true, speed: false })]).changes, ["failed 1 speed"]);
  });

  it("keep the reports that a list which was not whole lacks, and no others", () => {
    const { state } = compare(undefined, [report(1, { title: true }), report(2, { title: true })]);
    const cut = compare(state, [report(2, { title: true })], false).state;
    assert.deepEqual(compare(cut, [report(1, { title: false })]).changes, ["failed 1 title"]);
    const whole = compare(state, [report(2, { title: true })]).state;
    assert.deepEqual(compare(whole, [report(1, { title: false })]).changes, []);
  });

  it("are worse if they failed, and below the limit if the report's score is", () => {
    const { state } = compare(undefined, [report(1, { title: true, links: false }), report(2, { title: true })]);
    const { found } = compare(state, [report(1, { title: false, links: true }, 49), report(2, { title: false }, 50)]);
    const meeting = (name: string) =>
      found
        .filter((one) => conditions[name]?.(one, 50))
        .map(({ payload, change }) => [change, (payload as Issue).report]);
    assert.deepEqual(meeting("worse"), [
      ["failed", 1],
      ["failed", 2],
    ]);
    assert.deepEqual(meeting("below"), [["failed", 1]]);
  });

  it("are not made from a state that is invalid", () => {
    for (const wrong of [null, {}, { checks: [], reports: [] }, { checks: {}, reports: {} }, { reports: {} }])
      assert.equal(checks.isState(wrong), false);
    for (const marks of [null, 7, {}, "passed"])
      assert.equal(checks.isState({ checks: ["title"], reports: { 1: marks } }), false);
  });

  it("are no error, whatever results a report has", () => {
    const property = fc.property(fc.array(fc.jsonValue()), (all) => {
      let state: CheckState | undefined;
      for (const results of all) ({ state } = compare(state, [{ id: 1, results }]));
    });
    fc.assert(property);
  });

  describe("are found with bounded memory", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const REPORTS = 50_000;

    it("about 100 bytes per report of 30 checks", () => {
      const names = Array.from({ length: 30 }, (_, i) => `check_number_${i}`);
      const page = (id: number) => report(id, Object.fromEntries(names.map((name, i) => [name, (id * 7 + i) % 5 > 0])));
      const run = (before?: CheckState) => {
        const comparison = checks.compare(before, 0);
        for (let id = 1; id <= REPORTS; id++) comparison.compare(page(id * 3));
        return comparison.state(true);
      };
      run();
      collect();
      const start = process.memoryUsage().heapUsed;
      const state = run();
      collect();
      const bytes = (process.memoryUsage().heapUsed - start) / REPORTS;
      assert.equal(Object.keys(state.reports).length, REPORTS);
      assert.ok(bytes < 120, `${bytes} bytes`);
    });

    it("also if each report has checks of its own", () => {
      const comparison = checks.compare(undefined, 0);
      for (let id = 1; id <= 5000; id++) comparison.compare(report(id, { [`check of ${id}`]: true }));
      const state = comparison.state(true);
      assert.equal(state.checks.length, 1000);
      assert.ok(Object.values(state.reports).every((marks) => marks.length <= 1000));
    });
  });
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { findingsOf } from "../../src/findings.js";

const issuesOf = (results: unknown) => findingsOf({ id: 7, url: "a.example", results }).map(({ issue }) => issue());
const errorsOf = (errors: unknown) => issuesOf({ title: { passed: false, errors } })[0]?.errors;

describe("The checks of a report", () => {
  it("are the properties of results that say whether they passed", () => {
    const results = {
      note: "text",
      title: { passed: true, importance: "high", value: "A" },
      load_time: { passed: 0, value: 3 },
      robots: { passed: "1" },
      odd: { passed: "maybe" },
      none: null,
    };
    const found = findingsOf({ id: "7", project: "a.example", results });
    const checks = found.map(({ check, passed }) => [check, passed]);
    assert.deepEqual(checks, [
      ["title", true],
      ["load_time", false],
      ["robots", true],
    ]);
    const report = { report: "7", url: null, project: "a.example" };
    const issues = found.slice(0, 2).map(({ issue }) => issue());
    assert.deepEqual(issues, [
      { ...report, check: "title", importance: "high", value: "A", errors: [] },
      { ...report, check: "load_time", importance: null, value: 3, errors: [] },
    ]);
  });

  it("have their errors as a list, whatever the shape of these", () => {
    const image = { url: "/1.jpg" };
    for (const [errors, expected] of [
      [undefined, []],
      [null, []],
      ["", []],
      ["too short", ["too short"]],
      [
        ["a", { b: 1 }],
        ["a", { b: 1 }],
      ],
      [{ missing: null }, ["missing"]],
      [{ missing: [] }, ["missing"]],
      [{ length: { min: 10, max: 60 } }, [{ length: { min: 10, max: 60 } }]],
      [{ missing: [image, image], max: 5 }, [{ missing: image }, { missing: image }, { max: 5 }]],
      [{ big: { css: ["a"], js: ["b", "c"] } }, [{ big: { css: "a" } }, { big: { js: "b" } }, { big: { js: "c" } }]],
    ])
      assert.deepEqual(errorsOf(errors), expected, JSON.stringify(errors));
  });

  it("keep ten errors, and count the others", () => {
    const links = Array.from({ length: 5000 }, (_, i) => `/${i}`);
    for (const errors of [links, { broken: links }, { broken: { images: links } }]) {
      const [issue] = issuesOf({ links: { passed: false, errors } });
      assert.deepEqual([issue?.errors.length, issue?.omitted], [10, 4990]);
    }
    const [issue] = issuesOf({ links: { passed: false, errors: links.slice(0, 10) } });
    assert.deepEqual([issue?.errors, issue && "omitted" in issue], [links.slice(0, 10), false]);
  });

  it("are recognized in any JSON without an exception", () => {
    const shape = fc.record(
      { passed: fc.constantFrom(true, false, 0, "1", null), importance: fc.jsonValue(), errors: fc.jsonValue() },
      { requiredKeys: [] },
    );
    const results = fc.oneof(fc.jsonValue(), fc.dictionary(fc.string(), fc.oneof(shape, fc.jsonValue())));
    const property = fc.property(fc.oneof(fc.jsonValue(), fc.record({ id: fc.integer(), results })), (record) => {
      for (const { check, issue } of findingsOf(record)) {
        const { errors, omitted = 0 } = issue();
        assert.equal(typeof check, "string");
        assert.ok(errors.length <= 10 && omitted >= 0 && (omitted === 0 || errors.length === 10));
      }
    });
    fc.assert(property, { numRuns: 2000 });
  });
});

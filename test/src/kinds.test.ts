import assert from "node:assert/strict";
import { conflictOf, isIdle, kindOf, variableIn } from "../../src/kinds.js";

describe("An environment variable", () => {
  for (const [value, name] of [
    ["${A}", "A"],
    ["$(A)", "A"],
    ["${MY-VAR_1}", "MY-VAR_1"],
    ["$(MY-VAR_1)", "MY-VAR_1"],
    ["${a.b}", "a.b"],
    ["${A)}", "A)"],
    ["${A)", undefined],
    ["$(A}", undefined],
    ["${}", undefined],
    ["${A B}", undefined],
    ["$(A B)", undefined],
    ["x${A}", undefined],
    ["${A}x", undefined],
    ["$(A)x", undefined],
    ["A", undefined],
    ["", undefined],
    [undefined, undefined],
    [7, undefined],
  ] as const)
    it(`is ${name ?? "none"} in ${JSON.stringify(value)}`, () => assert.equal(variableIn(value), name));
});

describe("A node is idle", () => {
  const fields = { privacy: { default: "0" }, update: {} };
  const idle = (effects: string[], values: Record<string, string>) => isIdle(fields, effects, (name) => values[name]);

  it("if all that it could change is blank, not set, or at its default", () => {
    assert.ok(idle(["privacy", "update"], {}));
    assert.ok(idle(["privacy", "update"], { privacy: "0", update: "" }));
    assert.ok(idle(["unlisted"], {}));
  });

  it("not if one of these values is set", () => {
    assert.ok(!idle(["privacy", "update"], { privacy: "0", update: "1" }));
    assert.ok(!idle(["privacy", "update"], { privacy: "1" }));
    assert.ok(!idle(["unlisted"], { unlisted: "1" }));
  });

  it("not if it has nothing to change", () => assert.ok(!idle([], {})));
});

describe("A value", () => {
  const values = { good: "Good", 2: "Password", Mixed: "Mixed case" };
  const choice = kindOf("choice");

  for (const [text, value] of [
    ["good", "good"],
    [" GOOD ", "good"],
    ["Mixed", "Mixed"],
    ["mixed", "Mixed"],
    ["password", "2"],
    [" 2 ", "2"],
    ["mixed CASE", "Mixed"],
    ["best", undefined],
    ["toString", undefined],
  ] as const)
    it(`is chosen by its name or label: ${JSON.stringify(text)}`, () => {
      const clean = choice.clean(text, { values });
      assert.deepEqual([clean, choice.fault(clean, { values })], value ? [value, undefined] : [text, "choice"]);
    });

  it("is not sent if it is too long or has control characters, with the reason", () => {
    for (const kind of ["text", "url", "secret", "segment"] as const) {
      const { fault } = kindOf(kind);
      const longest = kind === "segment" ? 255 : 8192;
      const texts = ["x".repeat(longest), "x".repeat(longest + 1), "a\u0000b", "\ud800", "😀"];
      const faults = texts.map((text) => fault(text, {}));
      assert.deepEqual(faults, [undefined, "long", "control", "control", undefined], kind);
    }
  });

  it("conflicts with the first field that must have another value", () => {
    const fields = { privacy: { default: "0" }, password: { when: { kind: "page", privacy: "2" } } };
    const conflict = (values: Record<string, string>) => conflictOf(fields, "password", true, (name) => values[name]);
    assert.deepEqual(conflict({}), { other: "privacy", needed: "2" });
    assert.deepEqual(conflict({ privacy: "1" }), { other: "privacy", needed: "2" });
    assert.deepEqual(conflict({ kind: "site" }), { other: "kind", needed: "page" });
    assert.equal(conflict({ privacy: "2" }), undefined);
    for (const name of ["privacy", "unknown"]) {
      const found = conflictOf(fields, name, true, () => "1");
      assert.equal(found, undefined, name);
    }
  });

  it("is required if all other fields have certain values, of which the first that is no default is named", () => {
    const fields = {
      existing: { default: "create" },
      privacy: { default: "0" },
      password: { requiredIf: { existing: "create", privacy: "2" } },
    };
    const requirement = (values: Record<string, string>) =>
      conflictOf(fields, "password", false, (name) => values[name]);
    assert.deepEqual(requirement({ privacy: "2" }), { other: "privacy", needed: "2" });
    assert.deepEqual(requirement({ privacy: "2", existing: "create" }), { other: "privacy", needed: "2" });
    for (const values of [{}, { privacy: "1" }, { privacy: "2", existing: "return" }])
      assert.equal(requirement(values), undefined);
    const found = conflictOf(fields, "privacy", false, () => "2");
    assert.equal(found, undefined);
  });
});

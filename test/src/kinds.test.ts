import assert from "node:assert/strict";
import { isIdle, variableIn } from "../../src/kinds.js";

describe("An environment variable", () => {
  for (const [value, name] of [
    ["${A}", "A"],
    ["$(A)", "A"],
    ["${MY-VAR_1}", "MY-VAR_1"],
    ["$(MY-VAR_1)", "MY-VAR_1"],
    ["${A)", undefined],
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

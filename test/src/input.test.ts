import assert from "node:assert/strict";
import { operations } from "../../src/operations.js";
import { secretsOf, validateInput } from "../../src/schema.js";

const show = operations["seo-report-show"];
const from = { reportId: "msg.payload" };

describe("The main parameter of an input", () => {
  for (const [value, id] of [
    [9, "9"],
    ["9", "9"],
    [{ id: 7, url: "example.com" }, "7"],
    [{ reportId: 8 }, "8"],
    [{ data: { id: 4 } }, "4"],
  ])
    it(`is taken out of what contains it: ${JSON.stringify(value)}`, () =>
      assert.deepEqual(validateInput(show, { reportId: value }, from), { reportId: id }));

  for (const [value, place] of [
    [undefined, "msg.payload is blank"],
    [null, "msg.payload is blank"],
    [" ", "msg.payload is blank"],
    [{}, "msg.payload.id is blank"],
    [{ id: null }, "msg.payload.id is blank"],
    [{ data: { id: " " } }, "msg.payload.data.id is blank"],
    [{ report: { id: 3 } }, "msg.payload.id is blank"],
  ])
    it(`is missing where it was looked for: ${JSON.stringify(value)}`, () => {
      const error = { code: "SEO_INPUT", message: `reportId is required; ${place}.` };
      assert.throws(() => validateInput(show, { reportId: value }, from), error);
    });

  it("is named like the others if their places are not known", () => {
    const store = operations["seo-report-store"];
    for (const [places, error] of [
      [{}, /^url is required; url\.url is blank\. privacy must be .*; privacy is "x"\.$/],
      [
        { url: "msg.row", privacy: "msg.p" },
        /^url is required; msg\.row\.url is blank\. privacy must be .*; msg\.p is "x"\.$/,
      ],
    ] as const)
      assert.throws(() => validateInput(store, { url: {}, privacy: "x" }, places), error);
    assert.deepEqual(validateInput(operations["seo-project-list"], { search: "x" }, {}), { search: "x" });
  });
});

describe("The secrets of an input", () => {
  it("are its passwords", () =>
    assert.deepEqual(secretsOf(operations["seo-report-store"], { password: "a", url: "b", unknown: "c" }), ["a"]));
});

describe("The error of an input", () => {
  it("names a conflict beside an invalid value of another parameter", () => {
    const error = /^url is required; .* privacy must be 2 \(Password\) if password is set; privacy is 0\.$/;
    assert.throws(() => validateInput(operations["seo-report-store"], { password: "s", privacy: 0 }, {}), error);
  });
});

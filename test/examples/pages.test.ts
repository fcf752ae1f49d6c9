import assert from "node:assert/strict";
import { readExamples } from "../support/examples.js";

/** Text of a report is written by whoever owns the page. These rules hold for every example, also for those to come. */
describe("The examples", () => {
  for (const [title, nodes] of readExamples("examples")) {
    it(`put text into pages only with escapes: ${title}`, () => {
      for (const { type, name, template } of nodes)
        if (type === "template" && /<html|<!doctype/i.test(String(template)))
          assert.doesNotMatch(String(template), /\{\{\{|\{\{&/, String(name));
    });

    it(`run no code from a message: ${title}`, () => {
      for (const { type, func = "", name } of nodes) {
        assert.ok(type !== "exec", String(name));
        assert.doesNotMatch(String(func), /\beval\(|new Function\(|innerHTML/, String(name));
      }
    });
  }
});

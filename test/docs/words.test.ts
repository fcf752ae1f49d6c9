import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pages } from "../../dev/documents.js";
import { root } from "../../dev/nodered.js";

/** At most so many words, without the generated parts: a new operation does not use them up. */
const ALL = 14_850;
const budgets: [files: RegExp, words: number][] = [
  [/^README\.md$/, 2100],
  [/^docs\/audits\.md$/, 1300],
  [/^docs\/scaling\.md$/, 800],
  [/^docs\/(lost-responses|decisions\/reconcile)\.md$/, 1300],
  [/^docs\/performance\.md$/, 700],
  [/^docs\/testing\.md$/, 600],
  [/^docs\/decisions\/(?!reconcile)/, 250],
];
const CELL = 25;
const LINE = 220;

const read = (path: string) => readFileSync(join(root, path), "utf8");
const GENERATED = /<!-- generated:\w+ -->.*?<!-- \/generated -->/gs;
const words = (text: string) => text.replace(GENERATED, "").split(/\s+/).filter(Boolean).length;
const count = (files: readonly string[]) => files.reduce((sum, file) => sum + words(read(file)), 0);

describe("The documents are short", () => {
  it(`have at most ${ALL} words in all`, () => {
    const all = count(pages);
    assert.ok(all <= ALL, `${all} words`);
  });

  for (const [files, most] of budgets) {
    const matching = pages.filter((page) => files.test(page));
    const groups = files.source.includes("|") ? [matching] : matching.map((page) => [page]);
    for (const group of groups)
      it(`${group.join(" and ")}: at most ${most} words`, () => {
        const all = count(group);
        assert.ok(all > 0 && all <= most, `${all} words`);
      });
  }

  for (const page of pages)
    it(`${page} has tables of words, not of paragraphs`, () => {
      for (const line of read(page).matchAll(/^\|.*\|$/gm)) {
        assert.ok(line[0].length <= LINE, `${line[0].length} characters: ${line[0]}`);
        for (const cell of line[0].split(/(?<!\\)\|/)) assert.ok(words(cell) <= CELL, cell);
      }
    });
});

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../dev/nodered.js";

const read = (path: string) => readFileSync(join(root, path), "utf8");

/** The modules of the product. The library, whose names are public, has its own. */
const modules = ["src", "nodes"]
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)),
  )
  .filter((path) => path.endsWith(".ts") && path !== join("src", "public.ts"));

/** The rows of the glossary in CONTRIBUTING: a word, its meaning, and the type and the module that it names. */
const glossary = [...read("CONTRIBUTING.md").matchAll(/^\| ([a-z][a-z ]*) \| .* \| `(\w+)` in `([\w/.-]+)` \|$/gm)].map(
  ([, word = "", type = "", path = ""]) => ({ word, type, path }),
);

/** Words that identifiers must not contain, each with the words to use. */
const replaced: Record<string, string> = {
  told: "reported, shown",
  tell: "report, show",
  asked: "requested",
  ask: "request",
  answered: "received, reported",
  held: "kept, locked",
  insist: "retry",
  agree: "accept",
  bury: "drop",
};

/** Modules that keep some of them: what they hold is a lock. */
const excepted = new Map([["held", ["src/audit/lock.ts", "src/audit/shared/log.ts"]]]);

const declarations = (path: string, type: string) =>
  [...read(path).matchAll(new RegExp(`^export (?:abstract )?(?:interface|type|class) ${type}\\b`, "gm"))].length;

/** The words in a module's identifiers: `isAnswered` has `is` and `answered`. Comments and texts are left out. */
function wordsIn(path: string): Set<string> {
  const code = read(path)
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/\/\/.*/g, "")
    .replace(/"[^"\n]*"|`[^`]*`/g, '""');
  return new Set((code.match(/[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase()));
}

describe("The identifiers", () => {
  it("of the glossary are about twenty", () => {
    assert.ok(glossary.length >= 18 && glossary.length <= 26, `${glossary.length} words`);
  });

  for (const { word, type, path } of glossary)
    it(`have one meaning: ${word}`, () => {
      assert.equal(declarations(path, type), 1, `${path} does not export ${type}`);
      const others = modules.filter((module) => module !== path && declarations(module, type) > 0);
      assert.deepEqual(others, [], `${type} is also exported by these modules`);
    });

  for (const path of modules)
    it(`keep to the glossary: ${path}`, () => {
      const words = wordsIn(path);
      const found = Object.entries(replaced).filter(
        ([word]) => words.has(word) && !excepted.get(word)?.includes(path.replaceAll("\\", "/")),
      );
      const advice = found.map(([word, instead]) => `${word}: use ${instead}`);
      assert.deepEqual(advice, []);
    });

  for (const path of modules)
    it(`are explained by comments that name their subject: ${path}`, () => {
      const nameless =
        read(path).match(/(?:\/\*\*|\/\/|^ +\*) (?:It|They|Those|These|That|What|Who|Whose)\b.*/gm) ?? [];
      assert.deepEqual(nameless, []);
    });
});

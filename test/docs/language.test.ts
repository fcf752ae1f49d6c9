import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../dev/nodered.js";

/** Words that one term has replaced, each with that term. A whole word or phrase; case does not matter. */
const replaced: [words: RegExp, instead: string][] = [
  [/\btime-outs?\b/gi, "timeout"],
  [/\b(asks?|asked|asking)\b/gi, "request, send a request"],
  [/\banswer(s|ed|ing)?\b/gi, "response, return"],
  [/\bwhat (came|comes out|went wrong)\b/gi, "response, output, error"],
  [/\b(tells?|told|hears?|heard)\b/gi, "report, return, get"],
  [/\bthe service (says?|gives?|takes?|knows?|refuse[sd]?)\b/gi, "the service returns, accepts, rejects"],
  [/\b(sent|sends|sending|tried|tries) again\b/gi, "retry"],
  [/\bgoes on\b/gi, "continues"],
  [/\bslow return\b/gi, "back off"],
  [/\bthrottl(es?|ed|ing)\b/gi, "rate limited (429)"],
  [/\b(make|makes|made|making) (again|anew)\b/gi, "regenerate"],
  [/\b(made|stored|carried out) twice\b|\bdoubled\b/gi, "duplicate"],
  [/\bcarr(y|ies|ied) out\b/gi, "take effect"],
  [/\ball the same\b/gi, "still, anyway"],
  [/\b(under way|on (its|their) way)\b/gi, "in flight"],
  [/\bdrops what waits\b/gi, "drops waiting messages"],
  [/\bfirst (look|time)\b|\bwhat was seen\b/gi, "first run, saved state"],
  [/\bfaults?\b/gi, "error, failed request"],
  [/\bNode-REDs\b|\b(a|one) Node-RED(?= (is|has|and|or|does|dies)\b|[.,;:])/g, "instance"],
  [/\blasting sessions?\b/gi, "persistent session"],
  [/\bblot(s|ted)? out\b/gi, "redact"],
  [/\bmade-up service\b/gi, "sandbox"],
  [/(?<!\bSEO )\bservice nodes?\b|\bservice's node\b/gi, "SEO service node"],
  [/\bcanvas(es)?\b/gi, "workspace"],
  [/\bif not sent\b/gi, "service default"],
  [/\b(catalogue|licence|colour|behaviour)s?\b/gi, "US English: catalog, license, color, behavior"],
  [/\bcancell(ed|ing|able)\b/gi, "US English: canceled, canceling, cancelable"],
  [/\d \d{3}\b|\d %/g, "1,000 and 98.7%"],
];

/** The files in a folder whose names end like this. */
const filesIn = (folder: string, end: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(end))
    .map((path) => join(folder, path));

/** Everything that people read: our documents, the built English catalog and help, the examples' descriptions and the tests' titles. */
const files = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "CHANGELOG.md",
  ...filesIn("docs", ".md"),
  ...filesIn(".github", ".md"),
  ...filesIn(".github/ISSUE_TEMPLATE", ".yml"),
  "examples/README.md",
  ...filesIn("examples", ".json"),
  ...filesIn("test", ".ts"),
  "dist/nodes/locales/en-US/seo-reports.json",
  "dist/nodes/locales/en-US/seo-reports.html",
];

/** The part of a file that is prose, with the line breaks of the rest. */
function readable(file: string): string {
  const text = readFileSync(join(root, file), "utf8");
  if (file.endsWith(".ts")) return text.replace(/^(?!.*\b(it|describe)\(["`]).*|(?<=["`]),.*$|`/gm, "");
  if (!file.startsWith("examples") || file.endsWith(".md")) return text;
  return (JSON.parse(text) as { info?: string }[]).map(({ info = "" }) => info).join("\n");
}

/** Blanks out code, link targets and catalog keys, and keeps the line breaks. */
const prose = (text: string) =>
  text.replace(
    /^```[\s\S]*?^```$|`[^`\n]*`|<code>.*?<\/code>|\]\([^)]*\)|<[^>\n]*>|https?:\S+|^\s*"[^"]*":/gm,
    (code) => code.replace(/[^\n]/g, "_"),
  );

describe("The language", () => {
  for (const file of files)
    it(`${file} keeps to the glossary`, () => {
      const found = prose(readable(file))
        .split("\n")
        .flatMap((line, index) =>
          replaced.flatMap(([words, instead]) =>
            [...line.matchAll(words)].map(([word]) => `${file}:${index + 1}: "${word}": write ${instead}`),
          ),
        );
      assert.deepEqual(found, []);
    });
});

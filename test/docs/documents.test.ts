import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { documents, pages } from "../../dev/documents.js";
import { root } from "../../dev/nodered.js";
import { type Code, codes } from "../../src/errors.js";
import { type Operation, operations } from "../../src/operations.js";

const read = (path: string) => readFileSync(join(root, path), "utf8");
/** The anchors that GitHub makes of a page's headings. */
const anchors = (path: string) =>
  [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );

/** The lines of the table with this head, without notes in parentheses. */
const tableOf = (path: string, head: string) => {
  const [, table = ""] = read(path).split(`\n${head}\n`);
  return (table.split("\n\n", 1)[0] ?? "")
    .replace(/ \(.*?\)/g, "")
    .split("\n")
    .slice(1);
};
const list = (texts: string[], separator = ", ") => texts.map((text) => `\`${text}\``).join(separator);

const rows = Object.values<Operation>(operations).map(({ params, ...row }) => ({
  ...row,
  sent: Object.entries(params)
    .filter(([, { reads }]) => reads === undefined)
    .map(([name, { wire = name, values = {} }]) => ({ wire, values: list(Object.keys(values)) }))
    .filter(({ wire }) => !row.path.includes(`{${wire}}`)),
}));

/** Where the project's files are on the web. */
const OWN =
  /^https:\/\/(?:github\.com\/seo-reports\/node-red\/blob|raw\.githubusercontent\.com\/seo-reports\/node-red)\/main\//;

describe("The documents", () => {
  for (const [path, text] of Object.entries(documents()))
    it(`${path} is what npm run docs makes of the code`, () => assert.equal(read(path), text));

  it("explain every error code in the README", () => {
    assert.ok(anchors("README.md").includes("errors"), "the help links to README.md#errors");
    for (const code of Object.keys(codes)) assert.ok(read("README.md").includes(`| \`${code}\` |`), code);
  });

  it("name the statuses in the README as the editor shows them", () => {
    const named = [...read("README.md").matchAll(/_([^_]+)_ \(`(SEO_\w+)`\)/g)];
    assert.ok(named.length >= 5, "Troubleshooting names statuses");
    for (const [, status = "", code] of named) assert.ok(codes[code as Code].status.startsWith(status), status);
  });

  it("list the outputs in the README", () => {
    const outputs = rows.flatMap(({ options }) => Object.keys(options.output?.values ?? {}));
    const named = tableOf("README.md", "| Output | Result |").map((line) => line.split("`")[1]);
    assert.deepEqual(named.sort(), [...new Set(outputs)].sort());
  });

  it("list the requests in the interface, with the parameters as they are sent", () => {
    const requests = rows.map(({ title, method, options, path, sent }) => {
      const methods = Object.keys(options.method?.values ?? { [method]: "" }).map((one) => `\`${one}`);
      return `| ${title} | ${methods.join("` or ")} ${path}\` | ${list(sent.map(({ wire }) => wire))} |`;
    });
    assert.deepEqual(tableOf("docs/interface.md", "| Operation | Request | Parameters |"), requests);
  });

  it("list the allowed values in the interface, by operation if they differ", () => {
    const choices = rows.flatMap(({ title, sent }) =>
      sent.filter(({ values }) => values).map((param) => ({ title, ...param })),
    );
    const lines = choices.map(({ title, wire, values }) => {
      const differs = choices.some((other) => other.wire === wire && other.values !== values);
      return `| \`${wire}\`${differs ? ` of _${title}_` : ""} | ${values} |`;
    });
    assert.deepEqual(tableOf("docs/interface.md", "| Parameter | Values |").sort(), [...new Set(lines)].sort());
  });

  it("are linked to from the help and the examples by files and headings that exist", () => {
    const examples = readdirSync(join(root, "examples")).filter((file) => file.endsWith(".json"));
    const texts = ["dist/nodes/locales/en-US/seo-reports.html", ...examples.map((file) => join("examples", file))].map(
      read,
    );
    const links = texts
      .join("\n")
      .matchAll(/github\.com\/seo-reports\/node-red(?:\/blob\/main\/([\w./-]+\w))?(?:#([\w-]+))?/g);
    for (const [link, path = "README.md", anchor = "readme"] of links) {
      assert.ok(existsSync(join(root, path)), link);
      assert.ok(["readme", ...anchors(path)].includes(anchor), link);
    }
  });

  for (const path of pages)
    describe(path, () => {
      it("links to files and headings that exist", () => {
        for (const [, link = ""] of read(path).matchAll(/(?:\]\(|src=")([^)"\s]+)[)"]/g)) {
          const target = link.replace(OWN, "/");
          if (/^https?:/.test(target)) continue;
          const [file = "", anchor] = decodeURI(target).split("#");
          const to = file === "" ? path : normalize(file.startsWith("/") ? file.slice(1) : join(dirname(path), file));
          assert.ok(existsSync(join(root, to)), target);
          if (anchor !== undefined) assert.ok(anchors(to).includes(anchor), target);
        }
      });

      it("names files and npm scripts that exist", () => {
        const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
        const text = read(path);
        for (const [, file = ""] of text.matchAll(/`((?:src|nodes|sandbox|dev|test|icons)\/[\w./-]*)`/g))
          assert.ok(existsSync(join(root, file)), file);
        for (const [script, file = ""] of text.matchAll(/\bdist\/([\w./-]+)\.js\b/g))
          assert.ok(existsSync(join(root, `${file}.ts`)), script);
        for (const [, script = ""] of text.matchAll(/`npm run ([\w:-]+)/g)) assert.ok(script in scripts, script);
      });

      it("has samples that are valid JSON", () => {
        for (const [, sample = ""] of read(path).matchAll(/```json\n([\s\S]*?)```/g)) JSON.parse(sample);
      });
    });
});

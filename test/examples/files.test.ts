import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../dev/nodered.js";
import { type ConfigNode, configNodes, nodeTypes } from "../../src/operations.js";
import { readExamples } from "../support/examples.js";

const examples = readExamples("examples");
const SERVICE = "seo-examples-service";
const GRID = 20;
const own = nodeTypes;
const configs: Record<string, ConfigNode> = configNodes;

/** The core nodes that the examples may use. */
const core = new Set(
  [
    "tab group comment inject debug catch function switch change template delay trigger csv xml split join file",
    "http-in http-response http-request file-in link-in link-out",
  ].flatMap((line) => line.split(" ").map((type) => type.replace("-", " "))),
);

/** The palette packages that an example may need, and their node types. */
const palette: [name: string, types: RegExp][] = [
  ["@flowfuse/node-red-dashboard", /^ui-/],
  ["node-red-node-email", /^e-mail$/],
];

/** Properties that every node has. */
const common = ["id", "type", "z", "g", "name", "x", "y", "wires", "info"];

/** The properties that the editor gives one of this package's nodes. */
function properties(type: string): string[] {
  const { params, options } = own[type as keyof typeof own] ?? { params: {}, options: {} };
  return ["service", ...Object.keys(params).flatMap((param) => [param, `${param}Type`]), ...Object.keys(options)];
}

describe("the files of the examples", () => {
  it("are numbered, without a gap", () => {
    const numbers = examples.map(([title]) => Number.parseInt(title, 10));
    for (const [index, number] of numbers.entries()) assert.equal(number, index + 1);
  });

  it("share one SEO service node and no other ID", () => {
    const all = examples.flatMap(([, nodes]) => nodes);
    const ids = all.filter(({ id }) => id !== SERVICE).map(({ id }) => id);
    const repeated = ids.filter((id, index) => ids.indexOf(id) !== index);
    assert.deepEqual(repeated, []);
    const services = all.filter(({ type }) => type === "seo-service");
    assert.equal(services.length, examples.length);
    for (const one of services) assert.deepEqual(one, services[0]);
  });

  it("use every node type of the package", () => {
    const used = new Set(examples.flatMap(([, nodes]) => nodes.map(({ type }) => type)));
    const unused = Object.keys(own).filter((type) => !used.has(type));
    assert.deepEqual(unused, [], "A type of node is in no flow in examples/: see CONTRIBUTING.md.");
  });

  it("create no second report of a page that their audits work through", () => {
    const audits = examples.flatMap(([, nodes]) => nodes.filter(({ type }) => type === "seo-report-audit"));
    for (const { existing, existingType } of audits) {
      assert.equal(existingType, "str");
      assert.match(String(existing), /^(return|regenerate)$/);
    }
  });

  it("are each in the gallery: a picture, a sentence, and every property of its flow", () => {
    const gallery = readFileSync(join(root, "examples/README.md"), "utf8");
    const rows = [...gallery.matchAll(/^\*\*(.+?)\.\*\* (.+)\n\n<img src="\.\.\/(.+?)" width="480" alt="[^"]+">$/gm)];
    const shown = rows.map(([, title]) => title).sort();
    const titles = examples.map(([title]) => title);
    assert.deepEqual(shown, titles);
    for (const [title, [tab]] of examples) {
      const [, , sentences = "", picture = ""] = rows.find(([, name]) => name === title) ?? [];
      assert.equal(picture, `docs/pictures/${title.slice(0, 2)}.png`);
      assert.equal(readFileSync(join(root, picture)).toString("latin1", 1, 4), "PNG");
      for (const { name } of (tab?.env ?? []) as { name: string }[])
        assert.ok(sentences.includes(`\`${name}\``), `${title}: ${name}`);
    }
  });

  it("repeat no paragraph in more than two of them", () => {
    const counts = new Map<string, number>();
    for (const [, [tab]] of examples) {
      for (const paragraph of new Set(String(tab?.info).split("\n")))
        counts.set(paragraph, (counts.get(paragraph) ?? 0) + 1);
    }
    const repeated = [...counts].filter(([paragraph, count]) => paragraph.length > 100 && count > 2);
    assert.deepEqual(repeated, []);
  });

  for (const [title, nodes] of examples) {
    describe(title, () => {
      const [tab, comment] = nodes;
      const placed = nodes.filter(({ x, type }) => x !== undefined && type !== "group");

      it("explains itself in the flow's description and in a comment, setup first", () => {
        assert.equal(tab?.type, "tab");
        assert.equal(tab?.label, title.replace(/^\d+ - /, "SEO: "));
        assert.equal(comment?.type, "comment");
        assert.ok((comment?.name ?? "").length > 0);
        const info = String(comment?.info);
        assert.match(info, /^\*\*Setup\.\*\*\n\n- [\s\S]*SEO_BASE_URL[\s\S]*\n\n\*\*What it does\.\*\* /);
        assert.equal(tab?.info, info);
        assert.ok(placed.every(({ y }) => Number(y) >= Number(comment?.y)));
      });

      it("uses only core nodes, unless its comment names the package", () => {
        const foreign = nodes.filter(({ type }) => !core.has(type) && !type.startsWith("seo-")).map(({ type }) => type);
        for (const type of foreign) {
          const [name = `no package has ${type}`] = palette.find(([, types]) => types.test(type)) ?? [];
          assert.ok(comment?.name?.includes(name) && String(comment.info).includes(name), name);
        }
      });

      it("gives this package's nodes the properties that the table has", () => {
        for (const { id, ...node } of nodes) {
          const config = configs[node.type];
          if (config) {
            const { settings } = config;
            const known = [...Object.keys(settings), "type", "name", "credentials"];
            const unknown = Object.keys(node).filter((name) => !known.includes(name));
            const missing = Object.keys(settings).filter((name) => settings[name]?.initial && !(name in node));
            assert.deepEqual({ unknown, missing }, { unknown: [], missing: [] });
          } else if (Object.hasOwn(own, node.type)) {
            const given = Object.keys(node).filter((name) => !common.includes(name));
            assert.deepEqual(new Set(given), new Set(properties(node.type)), node.name);
            assert.equal(node.service, SERVICE);
          }
        }
      });

      it("holds no secret", () => {
        for (const { type, credentials } of nodes) {
          for (const value of Object.values(Object(credentials)))
            assert.match(String(value), configs[type] ? /^\$\{SEO_[A-Z_]+\}$/ : /^\$\{[A-Z_]+\}$/);
        }
        assert.equal(nodes.find(({ type }) => type === "seo-service")?.baseUrl, "${SEO_BASE_URL}");
        assert.doesNotMatch(JSON.stringify(nodes), /hooks\.slack\.com|Bearer |(redis|rediss|postgres):\/\/[^"\s]*@/);
      });

      it("wires and links only nodes that exist", () => {
        const ids = new Set(nodes.map(({ id }) => id));
        for (const { wires, links, scope, g, z } of nodes) {
          for (const id of [wires, links, scope, g, z].flat(2).filter(Boolean))
            assert.ok(ids.has(id as string), String(id));
        }
      });

      it("is laid out on the grid", () => {
        for (const { name, x, y } of placed) {
          assert.equal(Number(y) % GRID, 0, `y of ${name}`);
          assert.equal(Number(x) % (GRID / 2), 0, `x of ${name}`);
        }
      });

      it("names every node, and comments every function that is not trivial", () => {
        for (const { name, type } of placed) assert.ok(name, `a ${type} without a name`);
        for (const { type, func = "", name } of nodes) {
          if (type !== "function") continue;
          const lines = String(func).split("\n");
          assert.ok(lines.length <= 34, `${name} has ${lines.length} lines`);
          assert.ok(lines.length <= 3 || lines.some((line) => line.trim().startsWith("//")), `${name} has no comment`);
        }
      });

      // Text of a report is written by whoever owns the page.
      it("puts text into pages only with escapes, and runs no code from a message", () => {
        for (const { type, name, template, func = "" } of nodes) {
          if (type === "template" && /<html|<!doctype/i.test(String(template)))
            assert.doesNotMatch(String(template), /\{\{\{|\{\{&/, name);
          assert.ok(type !== "exec", name);
          assert.doesNotMatch(String(func), /\beval\(|new Function\(|innerHTML/, name);
        }
      });

      it("catches every error", () => {
        const catches = nodes.filter(({ type, scope }) => type === "catch" && !scope);
        assert.ok(catches.length > 0);
        for (const { wires } of nodes.filter(({ type }) => type === "catch"))
          assert.ok((wires as string[][])[0]?.length);
      });
    });
  }
});

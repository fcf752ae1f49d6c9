import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CallExpression, type Node, parse } from "acorn";
import { nodeRedModule, packInto, root } from "../../dev/nodered.js";
import { configNodes } from "../../src/operations.js";

interface Manifest {
  name: string;
  license?: string;
  bugs?: string;
  repository?: object;
  keywords: string[];
  engines: { node: string };
  dependencies: Record<string, string>;
  "node-red": { version: string; nodes: Record<string, string> };
}

/** The pattern by which node-red-dev 0.1.6 finds the scripts of a page. */
const SCRIPT = /<script.+?type=['"]text\/javascript['"].*?>([\s\S]*?)<\/script>/g;
/** The only dependency that can be behind its latest version: see docs/decisions/undici-7.md. */
const BEHIND = ["undici"];

const semver = nodeRedModule<{
  satisfies(version: string, range: string): boolean;
  minVersion(range: string): { version: string };
}>("semver");
const json = <T>(path: string): T => JSON.parse(readFileSync(path, "utf8")) as T;

/** The calls `RED.nodes.registerType("literal", { … })` in a script, with the properties of their definitions. */
function registered(script: string): { type: string; properties: Record<string, Node> }[] {
  const calls: CallExpression[] = [];
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ((value as Node).type === "CallExpression") calls.push(value as CallExpression);
    Object.values(value).forEach(walk);
  };
  walk(parse(script, { ecmaVersion: "latest" }));
  return calls.flatMap(({ callee, arguments: [type, definition] }) => {
    if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return [];
    if (callee.property.name !== "registerType") return [];
    const why = "the flow library finds only literal types and definitions";
    assert.ok(type?.type === "Literal" && definition?.type === "ObjectExpression", why);
    const properties = definition.properties.map((property) => {
      assert.ok(property.type === "Property" && property.key.type === "Identifier", "no spread, no computed name");
      return [property.key.name, property.value] as const;
    });
    return [{ type: String(type.value), properties: Object.fromEntries(properties) }];
  });
}

describe("The flow library's scorecard", () => {
  const folder = mkdtempSync(join(tmpdir(), "seo-reports-"));
  const packed = join(folder, "package");
  let manifest: Manifest;
  let types: ReturnType<typeof registered>;
  let bytes: Buffer;

  before(async () => {
    const { archive } = await packInto(folder);
    bytes = readFileSync(archive);
    execFileSync("tar", ["-xzf", archive, "-C", folder]);
    manifest = json(join(packed, "package.json"));
    const pages = Object.values(manifest["node-red"].nodes).map((path) => path.replace(".js", ".html"));
    types = pages.flatMap((page) =>
      [...readFileSync(join(packed, page), "utf8").matchAll(SCRIPT)].flatMap(([, script = ""]) => registered(script)),
    );
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  it("P01, P03, P04, P05: the package has a license, an issue tracker, a scoped name and the keyword node-red", () => {
    assert.equal(manifest.license, "MIT");
    assert.ok(manifest.repository && manifest.bugs);
    assert.ok(readdirSync(packed).includes("LICENSE"));
    assert.match(manifest.name, /^@[a-z\d][\w-.]+\/[a-z\d][\w-.]*$/);
    assert.ok(manifest.keywords.includes("node-red"));
  });

  it("P06, P07: the package supports the tested Node-RED versions and their Node.js version", () => {
    const all = ["node-red", "node-red-4"].map((alias) =>
      json<Manifest & { version: string }>(join(root, "node_modules", alias, "package.json")),
    );
    for (const { version } of all) assert.ok(semver.satisfies(version, manifest["node-red"].version), version);
    const latest = all[0] as Manifest;
    assert.ok(semver.satisfies(semver.minVersion(latest.engines.node).version, manifest.engines.node));
  });

  it("N01: every node type is unique, prefixed and readable from the page", () => {
    assert.deepEqual(new Set(types.map(({ type }) => type.split("-")[0])), new Set(["seo"]));
    assert.equal(types.length, new Set(types.map(({ type }) => type)).size);
    for (const { type, properties } of types) {
      const literals = Object.hasOwn(configNodes, type)
        ? ["category"]
        : ["category", "color", "icon", "inputs", "outputs"];
      for (const name of literals) assert.equal(properties[name]?.type, "Literal", `${type}: ${name}`);
      assert.equal(properties.defaults?.type, "ObjectExpression", `${type}: defaults`);
    }
  });

  it("D01, D02: the package has at most six dependencies and installs no others", () => {
    assert.ok(Object.keys(manifest.dependencies).length <= 6);
    const { packages } = json<{ packages: Record<string, { dev?: boolean; devOptional?: boolean }> }>(
      join(root, "package-lock.json"),
    );
    const shipped = Object.entries(packages).filter(
      ([path, { dev, devOptional }]) => path !== "" && !dev && !devOptional,
    );
    const names = shipped.map(([path]) => path.replace("node_modules/", ""));
    assert.deepEqual(names.sort(), Object.keys(manifest.dependencies).sort());
  });

  it("D03: compatible updates are accepted, and the reason for an older undici is documented", () => {
    assert.match(readFileSync(join(root, "docs/decisions/undici-7.md"), "utf8"), /D03/);
    for (const [name, range] of Object.entries(manifest.dependencies)) {
      assert.match(range, /^\^\d/, `${name}: a caret range accepts compatible updates`);
      const { version } = json<{ version: string }>(join(root, "node_modules", name, "package.json"));
      assert.ok(semver.satisfies(version, range), `${name} ${version}`);
    }
    const unknown = BEHIND.filter((name) => !manifest.dependencies[name]);
    assert.deepEqual(unknown, []);
  });

  it("the license of every dependency is documented", () => {
    const text = readFileSync(join(root, "docs/decisions/dependencies.md"), "utf8");
    for (const name of Object.keys(manifest.dependencies)) {
      const { license } = json<Manifest>(join(root, "node_modules", name, "package.json"));
      assert.match(text, new RegExp(`^\\| \`${name}\` +\\| ${license} +\\|`, "m"));
    }
  });

  it("the package has the same bytes each time it is packed", async () => {
    const { archive } = await packInto(folder);
    assert.ok(readFileSync(archive).equals(bytes));
  });
});

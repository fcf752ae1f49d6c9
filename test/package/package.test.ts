import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackage, type Running, root, startNodeRed } from "../../dev/nodered.js";
import { type Sandbox, startSandbox } from "../../sandbox/server.js";
import { configNodes, nodeTypes, operations } from "../../src/operations.js";

const SET = "@seo-reports/node-red/seo-reports";
const KEY = "canary-key-5f0c1e";
const PASSWORD = "canary-password";
const types = [...Object.keys(configNodes), ...Object.keys(nodeTypes)];

/** All files of the package, by folder and extension. */
const allowed = [
  /^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
  /^dist\/(src|sandbox)\/([a-z]+\/)*[a-z]+\.js$/,
  /^dist\/nodes\/[a-z-]+\.(js|html)$/,
  /^dist\/nodes\/icons\/seo-[a-z-]+\.svg$/,
  /^dist\/nodes\/locales\/[a-zA-Z-]+\/seo-reports\.(json|html)$/,
  /^examples\/[^/]+\.json$/,
  /^examples\/urls\.csv$/,
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

describe("The packed package", function () {
  this.timeout(300_000);
  /** A user directory with the package already installed, so that tests with several Node.js versions install it once. */
  const installed = process.env.INSTALLED;
  const userDir = installed ?? mkdtempSync(join(tmpdir(), "seo-reports-"));
  let sandbox: Sandbox;
  let nodeRed: Running;

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
    const [packed] = JSON.parse(
      execFileSync("npm", ["pack", "--dry-run", "--ignore-scripts", "--json"], { cwd: root, encoding: "utf8" }),
    ) as [{ files: { path: string }[] }];
    const files = packed.files.map(({ path }) => path);
    assert.deepEqual(
      files.filter((path) => !allowed.some((one) => one.test(path))),
      [],
    );
    for (const one of allowed)
      assert.ok(
        files.some((path) => one.test(path)),
        String(one),
      );
  });

  it("registers every node type without an error", async () => {
    const sets = (await (await get("nodes")).json()) as { id: string; types: string[]; err?: unknown }[];
    const ours = sets.find(({ id }) => id === SET);
    assert.equal(ours?.err, undefined);
    assert.deepEqual([...(ours?.types ?? [])].sort(), [...types].sort());
    assert.deepEqual(
      nodeRed.log.filter((line) => /\[(error|warn)\].*seo/i.test(line)),
      [],
    );
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
    const stored = await post("seo-report-store", {
      url: "https://example.com/packed",
      privacy: "password",
      password: PASSWORD,
    });
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
    const asked = new Set(sandbox.requests.map(({ method, path }) => `${method} ${path}`));
    for (const { method, path } of Object.values(operations)) {
      const request = new RegExp(`^${method} ${path.replace(/\{\w+\}/, "[^/]+")}$`);
      assert.ok(
        [...asked].some((one) => request.test(one)),
        `${method} ${path}`,
      );
    }
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
      assert.deepEqual(
        [status, stage, values],
        [200, "package", { status: "", command: `npm install bullmq ${driver}` }],
      );
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
});

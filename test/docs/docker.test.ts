import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { freePort, packInto, type Running, root, startNodeRed } from "../../dev/nodered.js";
import { until } from "../support/time.js";

interface Service {
  image: string;
  entrypoint: string[];
  environment: Record<string, string>;
  network_mode?: string;
  volumes: string[];
}

/** Runs the commands of the Compose file without Docker: a fresh folder is its volume. */
describe("The Compose file", () => {
  const data = mkdtempSync(join(tmpdir(), "seo-compose-"));
  const { services } = parse(readFileSync(join(root, "docs/compose/single.yaml"), "utf8"), { merge: true }) as {
    services: Record<"install" | "node-red" | "sandbox", Service>;
  };
  const set: Record<string, string> = {};
  /** A value as Compose fills it in, and with the folder and the ports of this test. */
  const filled = (text: string) =>
    text
      .replace(/\$\{(\w+):-([^}]*)\}/g, (_, name, preset) => set[name] ?? preset)
      .replace(/^\/data/, data)
      .replace("8787", String(set.port));
  let sandbox: ChildProcess;
  let nodeRed: Running;

  before(async () => {
    set.SEO_PACKAGE = (await packInto(data)).archive;
    set.port = String(await freePort());
  });
  after(async () => {
    await nodeRed?.stop();
    sandbox?.kill();
    rmSync(data, { recursive: true, force: true });
  });

  it("uses one image and one volume, and reaches the sandbox on the address where it listens", () => {
    for (const { image, volumes } of Object.values(services))
      assert.deepEqual([image, volumes], [services.install.image, ["data:/data"]]);
    assert.equal(services.sandbox.network_mode, "service:node-red");
    assert.match(services["node-red"].environment.SEO_BASE_URL ?? "", /http:\/\/127\.0\.0\.1:8787/);
  });

  it("installs the package into an empty volume", () => {
    const [command = "", ...args] = services.install.entrypoint.map(filled);
    execFileSync(command, [...args, "--prefer-offline"], { stdio: "pipe" });
    assert.ok(existsSync(join(data, "node_modules/@seo-reports/node-red/package.json")));
  });

  it("starts the sandbox", async () => {
    const [command = "", ...args] = services.sandbox.entrypoint.map(filled);
    sandbox = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
    await once(sandbox.stdout ?? assert.fail(), "data");
  });

  it("starts Node-RED with the nodes, which use the sandbox", async () => {
    const env = Object.fromEntries(
      Object.entries(services["node-red"].environment).map(([name, value]) => [name, filled(value)]),
    );
    nodeRed = await startNodeRed(data, { env });
    const flow = [
      { id: "service", type: "seo-service", baseUrl: "${SEO_BASE_URL}" },
      { id: "tab", type: "tab" },
      { id: "in", type: "http in", z: "tab", x: 1, y: 1, url: "/list", method: "get", wires: [["list"]] },
      { id: "list", type: "seo-project-list", z: "tab", x: 1, y: 1, service: "service", wires: [["out"]] },
      { id: "out", type: "http response", z: "tab", x: 1, y: 1, wires: [] },
    ];
    const deployed = await fetch(`${nodeRed.url}/flows`, {
      method: "POST",
      headers: { "content-type": "application/json", "Node-RED-API-Version": "v2" },
      body: JSON.stringify({ flows: flow, credentials: { service: { apiKey: "${SEO_API_KEY}" } } }),
    });
    assert.equal(deployed.status, 200);
    const list = () => fetch(`${nodeRed.url}/list`);
    await until(async () => (await list()).status === 200, { patience: 10_000, between: 100 });
    assert.ok(((await (await list()).json()) as { data: unknown[] }).data.length > 0);
  });
});

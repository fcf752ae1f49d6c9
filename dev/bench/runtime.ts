import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { linkPackage, nodeRed, nodeRedModule, settings as usual } from "../nodered.js";
import type { Counts } from "./counts.js";
import { driversFor } from "./driver.js";
import type { Options } from "./service.js";

/** The versions that a measurement ran with. */
export const versions = () => `Node-RED ${nodeRed().version}, Node ${process.versions.node}`;

/** The memory after garbage collection; the second one frees what was weakly held or had a finalizer. */
export async function memory(): Promise<NodeJS.MemoryUsage> {
  for (let i = 0; i < 2; i++) {
    globalThis.gc?.();
    await setTimeout(100);
  }
  return process.memoryUsage();
}

interface NodeRed {
  init(server: unknown, settings: object): void;
  start(): Promise<void>;
  stop(): Promise<void>;
  events: { once(event: string, listener: () => void): void };
}

export interface FlowNode {
  id: string;
  type: string;
  wires?: string[][];
  credentials?: object;
  [property: string]: unknown;
}

/**
 * Starts Node-RED in this process with its editor, a flow with drivers, and the package if it is `linked`. Returns its
 * user directory, which is removed when the process ends.
 */
export async function boot(
  flow: FlowNode[],
  { linked = true, ...settings }: { linked?: boolean; [setting: string]: unknown } = {},
): Promise<string> {
  const userDir = mkdtempSync(join(tmpdir(), "seo-bench-"));
  process.on("exit", () => rmSync(userDir, { recursive: true, force: true }));
  const nodes = [...flow, ...driversFor(flow)].map(({ credentials: _, ...node }: Partial<FlowNode>) =>
    // A node without a position would be taken for a config node.
    node.wires ? { x: 0, y: 0, z: "flow", service: "service", ...node } : node,
  );
  const credentials = Object.fromEntries(flow.map(({ id, credentials = {} }) => [id, credentials]));
  const driver = fileURLToPath(new URL("driver.js", import.meta.url));
  const files = {
    "nodes/driver.js": `module.exports = require(${JSON.stringify(driver)}).default;`,
    "nodes/driver.html": ["bench-driver", "bench-floor"]
      .map((type) => `<script type="text/html" data-template-name="${type}"></script>`)
      .join("\n"),
    "flows.json": JSON.stringify([{ id: "flow", type: "tab", label: "bench" }, ...nodes]),
    "flows_cred.json": JSON.stringify(credentials),
  };
  mkdirSync(join(userDir, "nodes"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(userDir, name), content);
  if (linked) linkPackage(userDir);
  const app = nodeRedModule<NodeRed>();
  // Nothing requests a page of the editor.
  const server = createServer();
  app.init(server, {
    ...usual,
    userDir,
    httpAdminRoot: "/",
    httpNodeRoot: "/",
    ...settings,
    logging: { console: { level: "error" } },
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const started = new Promise<void>((resolve) => app.events.once("flows:started", resolve));
  await app.start();
  await started;
  return userDir;
}

/** Stops the flows and the context stores of Node-RED, and starts them again from their files, as a restart does. */
export async function restart(): Promise<void> {
  const { stop } = nodeRedModule<NodeRed>();
  const nodes = nodeRedModule<Record<string, (all?: boolean) => Promise<void>>>("@node-red/runtime/lib/nodes");
  await stop();
  for (const step of ["loadContextsPlugin", "loadFlows", "startFlows"]) await nodes[step]?.(true);
}

/** Starts service.ts. If it fails at random, the back-off in this process is a fiftieth. */
export async function startService(options: Options) {
  const child = fork(new URL("service.js", import.meta.url), [JSON.stringify(options)]);
  const { random } = Math;
  if (options.fail) Math.random = () => random() / 50;
  const receive = async () => (await once(child, "message"))[0];
  const { url, apiKey } = (await receive()) as { url: string; apiKey: string };
  const effects = (): Promise<Counts> => {
    child.send("effects");
    return receive();
  };
  return { url, apiKey, effects };
}

/** The SEO service node for all nodes of a flow. */
export const serviceNode = (service: { url: string; apiKey: string }, settings: object = {}): FlowNode => ({
  id: "service",
  type: "seo-service",
  baseUrl: service.url,
  credentials: { apiKey: service.apiKey },
  ...settings,
});

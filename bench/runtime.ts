import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { nodeRed as which } from "../dev/nodered.js";

const require = createRequire(import.meta.url);

/** What is used of Node-RED's main module and its registry. */
interface NodeRed {
  init(server: unknown, settings: object): void;
  start(): Promise<void>;
  httpAdmin: unknown;
  events: { once(event: string, listener: () => void): void };
}

/** The package name of the Node-RED that the running Node is for. */
export const { name: nodeRed, version: nodeRedVersion } = which();

/** Has the running Node-RED load the package, page and catalogues and all, as its start does. */
export function load(): Promise<unknown> {
  const registry = createRequire(require.resolve(nodeRed))("@node-red/registry") as {
    addModule(name: string): Promise<unknown>;
  };
  return registry.addModule("@seo-reports/node-red");
}

interface FlowNode {
  id?: string;
  wires?: unknown;
  credentials?: object;
}

/** As Node-RED keeps them: a node without a place in the editor would be a config node. */
const split = (flow: FlowNode[]) => ({
  nodes: flow.map(({ credentials: _, ...node }) => (node.wires ? { x: 0, y: 0, z: "flow", ...node } : node)),
  credentials: Object.fromEntries(flow.flatMap(({ id, credentials }) => (credentials ? [[id, credentials]] : []))),
});
/** The libraries of Node-RED's own `http request` node. */
export async function loadCore(): Promise<void> {
  const nodes = createRequire(createRequire(require.resolve(nodeRed)).resolve("@node-red/nodes"));
  for (const name of ["got", "tough-cookie", "hpagent", "form-data", "mustache", "cookie", "hash-sum"]) {
    await import(nodes.resolve(name));
  }
}

/** Starts Node-RED with its editor, the driver node and a flow; resolves when the flow runs. */
export async function boot(userDir: string, flow: object[], nodesExcludes: string[] = []): Promise<void> {
  const { nodes, credentials } = split(flow);
  mkdirSync(join(userDir, "nodes"));
  const driver = fileURLToPath(new URL("driver.js", import.meta.url));
  writeFileSync(join(userDir, "nodes/driver.js"), `module.exports = require(${JSON.stringify(driver)}).default;`);
  writeFileSync(
    join(userDir, "nodes/driver.html"),
    '<script type="text/html" data-template-name="bench-driver"></script>',
  );
  writeFileSync(join(userDir, "flows.json"), JSON.stringify([{ id: "flow", type: "tab", label: "bench" }, ...nodes]));
  writeFileSync(join(userDir, "flows_cred.json"), JSON.stringify(credentials));
  const app = require(nodeRed) as NodeRed;
  // express is Node-RED's own, and mounts the editor as an embedding application would.
  const express = createRequire(require.resolve(nodeRed))("express") as () => Parameters<typeof createServer>[1] & {
    use(path: string, handler: unknown): void;
  };
  const host = express();
  const server = createServer(host);
  app.init(server, {
    userDir,
    flowFile: "flows.json",
    httpAdminRoot: "/",
    httpNodeRoot: "/",
    credentialSecret: false,
    nodesExcludes,
    telemetry: { enabled: false },
    logging: { console: { level: "error" } },
  });
  host.use("/", app.httpAdmin);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const started = new Promise<void>((resolve) => app.events.once("flows:started", resolve));
  await app.start();
  await started;
}

import type { NodeAPI } from "node-red";
import { type Operation, operations } from "../src/operations.js";
import { registerAdmin } from "./admin.js";
import { registerAudit } from "./audit.js";
import { registerChanges } from "./changes.js";
import { handleInput, type NodeSettings } from "./handler.js";
import { registerQueue } from "./queue.js";
import { registerService } from "./service.js";
import type { Config } from "./sources.js";

/** Registers the node of one row. */
function registerOperation(RED: NodeAPI, type: string, row: Operation): void {
  RED.nodes.registerType(type, function (config: Config) {
    RED.nodes.createNode(this, config);
    const load = async (settings: NodeSettings) => (await import("./output.js")).createOutput(RED, type, row, settings);
    handleInput(RED, this, { row, config, load });
  });
}

/** The entry of the node set: Node-RED calls it once, with its API. */
export default function register(RED: NodeAPI): void {
  registerService(RED);
  registerQueue(RED);
  registerAdmin(RED);
  registerChanges(RED);
  registerAudit(RED);
  for (const [type, row] of Object.entries(operations)) registerOperation(RED, type, row);
}

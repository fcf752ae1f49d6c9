import type { NodeAPI } from "node-red";
import { operations } from "../src/operations.js";
import { registerAdmin } from "./admin.js";
import { registerAudit } from "./audit.js";
import { registerChanges } from "./changes.js";
import { registerOperation } from "./operation.js";
import { registerQueue } from "./queue.js";
import { registerService } from "./service.js";

/** The entry of the node set: Node-RED calls it once, with its API. */
export default function register(RED: NodeAPI): void {
  registerService(RED);
  registerQueue(RED);
  registerAdmin(RED);
  registerChanges(RED);
  registerAudit(RED);
  for (const [type, row] of Object.entries(operations)) registerOperation(RED, type, row);
}

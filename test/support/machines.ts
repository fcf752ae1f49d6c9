import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type Running, startNodeRed } from "../../dev/nodered.js";
import { drive, type Instance } from "./examples.js";
import { installStandIns } from "./standins.js";

export interface Machine extends Instance {
  nodeRed: Running;
}

/**
 * Starts another Node-RED instance with the package installed in `folder`. An instance that was stopped starts again
 * with its flow.
 */
export async function startMachine(folder: string, name: string): Promise<Machine> {
  const own = join(folder, name);
  mkdirSync(own, { recursive: true });
  if (!existsSync(join(own, "node_modules"))) symlinkSync(join(folder, "node_modules"), join(own, "node_modules"));
  installStandIns(own);
  // Reconnect to the broker quickly.
  const nodeRed = await startNodeRed(own, { more: { mqttReconnectTime: 200 } });
  return { ...drive(nodeRed), nodeRed };
}

import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type Running, startNodeRed } from "../../dev/nodered.js";
import { drive, type Instance } from "./examples.js";
import { installStandIns } from "./standins.js";

export interface Machine extends Instance {
  nodeRed: Running;
}

/**
 * Starts another Node-RED with the package that is installed in `folder`, as a second machine would. If it has run
 * before, it starts with the flow that it had.
 */
export async function startMachine(folder: string, name: string): Promise<Machine> {
  const own = join(folder, name);
  mkdirSync(own, { recursive: true });
  if (!existsSync(join(own, "node_modules"))) symlinkSync(join(folder, "node_modules"), join(own, "node_modules"));
  installStandIns(own);
  // Reconnects to the broker soon.
  const nodeRed = await startNodeRed(own, { more: { mqttReconnectTime: 200 } });
  return { ...drive(nodeRed), nodeRed };
}

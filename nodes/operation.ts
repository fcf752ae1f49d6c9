import type { NodeAPI } from "node-red";
import type { Operation } from "../src/operations.js";
import { type Config, handleInput, type Settings } from "./handler.js";

/** Registers the node of one row. */
export function registerOperation(RED: NodeAPI, type: string, row: Operation): void {
  RED.nodes.registerType(type, function (config: Config) {
    RED.nodes.createNode(this, config);
    const load = async (settings: Settings) => (await import("./output.js")).createOutput(RED, type, row, settings);
    handleInput(RED, this, { row, config, load });
  });
}

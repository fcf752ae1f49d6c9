import type { Node, NodeAPI } from "node-red";
import { changes } from "../src/operations.js";
import type { Saved } from "./comparison.js";
import { closeIfGone } from "./flows.js";
import { handleInput } from "./handler.js";
import { createInterval } from "./interval.js";
import type { Config } from "./sources.js";
import { openState } from "./state.js";

const TYPE = "seo-report-changes";

export function registerChanges(RED: NodeAPI): void {
  RED.nodes.registerType(TYPE, function (this: Node, config: Config) {
    RED.nodes.createNode(this, config);
    const state = openState(RED, this, String(config.store ?? "").trim() || undefined);
    const { busy, resume } = createInterval(this, config.interval);
    const load = async () => (await import("./comparison.js")).createComparison(RED, this, state, config.service);
    handleInput(RED, this, { row: changes, config, load, busy });
    closeIfGone(RED, this);
    void resume(async () => (Object(await state.read()) as Partial<Saved>).at);
  });
}

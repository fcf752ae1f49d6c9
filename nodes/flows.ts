import type { Node, NodeAPI } from "node-red";
import { parseUrl } from "../src/url.js";
import type { Config } from "./sources.js";

/** All nodes in the flows, by ID: also those that are disabled, and subflows. */
function nodesIn(RED: NodeAPI): Map<string, Config> {
  const nodes = new Map<string, Config>();
  RED.nodes.eachNode((node) => nodes.set(node.id, node as Config));
  return nodes;
}

/**
 * Whether the flows have a node, which can be disabled. In a subflow its ID is that of the instance, a hyphen, and its own; a node
 * that was moved into a subflow, or out of one, has another.
 */
function isInFlows(RED: NodeAPI, id: string): boolean {
  const nodes = nodesIn(RED);
  /** `subflow`: the one that has the first node of the path, if any. */
  const holds = (path: string, subflow?: string): boolean =>
    [...nodes.values()].some(({ id, type, z }) => {
      const around = nodes.get(z)?.type === "subflow" ? z : undefined;
      if (around !== subflow) return false;
      if (path === id) return true;
      const [, inner] = type.split("subflow:");
      return inner !== undefined && path.startsWith(`${id}-`) && holds(path.slice(id.length + 1), inner);
    });
  return holds(id);
}

/** Called whenever flows have started. */
const acts = new Set<() => void>();
const started = () => {
  for (const act of acts)
    try {
      act();
    } catch {} // An error would end Node-RED.
};

/** Has a node do something whenever flows have started, until it is closed. */
function whenStarted(RED: NodeAPI, node: Node, act: () => void): void {
  acts.add(act);
  node.on("close", () => acts.delete(act));
  RED.events.off("flows:started", started).on("flows:started", started);
}

/**
 * Closes a node when it is gone from the flows: Node-RED itself does not stop one that _Modified Nodes_ moves into a subflow, or
 * out of one. Returns whether it is gone.
 */
export function closeIfGone(RED: NodeAPI, node: Node): () => boolean {
  // The flows do not list the nodes in a subflow of a package, which are never gone.
  const isListed = isInFlows(RED, node.id);
  const isGone = () => isListed && !isInFlows(RED, node.id);
  whenStarted(RED, node, () => isGone() && void node.close(true));
  return isGone;
}

/**
 * Calls `act` when other nodes have the IDs of config nodes that a node uses: Node-RED restarts a config node, but not a node that
 * refers to it by a property of its subflow.
 */
export function whenRestarted(RED: NodeAPI, node: Node, ids: unknown[], act: () => void): void {
  const find = () => ids.map((id) => RED.nodes.getNode(String(id ?? "")));
  let used = find();
  whenStarted(RED, node, () => {
    const before = used;
    used = find();
    if (used.some((one, i) => one !== before[i])) act();
  });
}

/**
 * The place of a node's batches, as the flows say: its folder, or its queue's prefix and server. In a subflow, all instances have
 * the same settings.
 */
export function placeOf(RED: NodeAPI, id: string): string {
  const nodes = nodesIn(RED);
  const { folder, queue }: Partial<Config> = nodes.get(id) ?? {};
  if (!queue) return JSON.stringify(folder);
  const { url = "" } = (RED.nodes.getCredentials(String(queue)) ?? {}) as { url?: string };
  // A changed user or password is no other place.
  const { host, pathname } = parseUrl(url) ?? { host: url, pathname: "" };
  return JSON.stringify([nodes.get(String(queue))?.prefix, host, pathname]);
}

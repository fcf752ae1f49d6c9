import type { NodeAPI } from "node-red";
import { parseUrl } from "../src/url.js";
import type { Config } from "./handler.js";

/** Whether the flows have a node, which can be disabled. In a subflow its ID is that of the instance, a hyphen, and its own. */
export function isInFlows(RED: NodeAPI, id: string): boolean {
  const ids = new Set<string>();
  RED.nodes.eachNode((node) => ids.add(node.id));
  const holds = (path: string): boolean =>
    ids.has(path) ||
    path
      .split("-")
      .some((_, i, parts) => i > 0 && ids.has(parts.slice(i).join("-")) && holds(parts.slice(0, i).join("-")));
  return holds(id);
}

/**
 * Where the flows say that a node keeps its jobs: its folder, or its queue's prefix and server. In a subflow, all instances have
 * the same settings.
 */
export function placeOf(RED: NodeAPI, id: string): string {
  const nodes = new Map<string, Config>();
  RED.nodes.eachNode((one) => nodes.set(one.id, one as Config));
  const { folder, queue }: Partial<Config> = nodes.get(id) ?? {};
  if (!queue) return JSON.stringify(folder);
  const { url = "" } = (RED.nodes.getCredentials(String(queue)) ?? {}) as { url?: string };
  // A changed user or password is no other place.
  const { host, pathname } = parseUrl(url) ?? { host: url, pathname: "" };
  return JSON.stringify([nodes.get(String(queue))?.prefix, host, pathname]);
}

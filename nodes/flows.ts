import type { NodeAPI, NodeDef } from "node-red";
import { parseUrl } from "../src/url.js";
import type { Config } from "./handler.js";

/**
 * Whether the flows have a node, which can be disabled. In a subflow its ID is that of the instance, a hyphen, and its own; a node
 * that was moved into a subflow, or out of one, has another.
 */
export function isInFlows(RED: NodeAPI, id: string): boolean {
  const nodes = new Map<string, NodeDef & { z?: string }>();
  RED.nodes.eachNode((node) => nodes.set(node.id, node));
  const subflowOf = ({ z = "" }: { z?: string }) => (nodes.get(z)?.type === "subflow" ? z : undefined);
  function holds(path: string, subflow?: string): boolean {
    const node = nodes.get(path);
    if (node && subflowOf(node) === undefined && (subflow === undefined || node.type === `subflow:${subflow}`))
      return true;
    return path.split("-").some((_, i, parts) => {
      const own = i > 0 && nodes.get(parts.slice(i).join("-"));
      if (!own || (subflow !== undefined && own.type !== `subflow:${subflow}`)) return false;
      const around = subflowOf(own);
      return around !== undefined && holds(parts.slice(0, i).join("-"), around);
    });
  }
  return holds(id);
}

/**
 * The place where a node keeps its jobs, as the flows say: its folder, or its queue's prefix and server. In a subflow, all instances have
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

import type { Node, NodeAPI } from "node-red";
import type { Client } from "../src/client.js";
import type { ClientOptions } from "../src/config.js";
import { registerConfig } from "./config.js";

/** The config node, as the nodes that use it see it: a client, and never the key. */
export interface ServiceNode extends Node {
  /** Rejects with SEO_CONFIG if the node is incomplete. */
  client(): Promise<Client>;
}

/** Creates a client. Its modules are loaded here, with the first message. Throws SEO_CONFIG. */
export async function openClient(settings: Record<string, unknown>): Promise<Client> {
  const { createClient } = await import("../src/client.js");
  return createClient(settings as unknown as ClientOptions);
}

export const registerService = (RED: NodeAPI) =>
  registerConfig<Client>(RED, "seo-service", { member: "client", open: openClient, close: (client) => client.close() });

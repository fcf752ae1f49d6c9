import type { Node, NodeAPI } from "node-red";
import type { Client } from "../src/client.js";
import type { ClientOptions } from "../src/config.js";
import { opening, registerConfig } from "./config.js";

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

export function registerService(RED: NodeAPI): void {
  registerConfig<ServiceNode>(RED, "seo-service", (node, reads) => {
    let client: Promise<Client> | undefined;
    const open = () => opening("seo-service", async () => openClient(reads()));
    node.client = () => {
      client ??= open();
      return client;
    };
    node.on("close", (done: () => void) => {
      Promise.resolve(client)
        .then((opened) => opened?.close())
        .then(done, () => done());
    });
  });
}

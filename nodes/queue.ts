import type { Node, NodeAPI } from "node-red";
import type { QueueOptions, QueueUser } from "../src/audit/shared/queue.js";
import type { Store } from "../src/audit/store.js";
import type { Trouble } from "../src/audit/trouble.js";
import { configNodes } from "../src/operations.js";
import { registerConfig } from "./config.js";

/** The config node, as the nodes that use it see it: where jobs are kept, and never the URL. */
export interface QueueNode extends Node {
  /** Opens the jobs of an audit node. Rejects with SEO_CONFIG if the node is incomplete. */
  open(user: QueueUser, lost: (error: Trouble) => void): Promise<Store>;
}

/** Validates what a queue node says. Throws SEO_CONFIG. */
export async function readQueue({ tls, ...given }: Record<string, unknown>): Promise<QueueOptions> {
  const { settings, credential } = configNodes["seo-queue"];
  const { readSettings } = await import("../src/schema.js");
  return { ...readSettings({ ...settings, ...credential }, given, "SEO_CONFIG"), tls } as QueueOptions;
}

export function registerQueue(RED: NodeAPI): void {
  registerConfig<QueueNode>(RED, "seo-queue", (node, reads) => {
    node.open = async (user, lost) => {
      const [options, { openQueue }] = await Promise.all([readQueue(reads()), import("../src/audit/shared/queue.js")]);
      return openQueue(options, user, lost);
    };
  });
}

import type { Node, NodeAPI } from "node-red";
import type { Place, Shared } from "../src/audit/shared/shared.js";
import { SeoError } from "../src/errors.js";
import { configNodes } from "../src/operations.js";
import { registerConfig } from "./config.js";

/** The config node, as the nodes that use it see it: where batches are, and never the URL. */
export interface QueueNode extends Node {
  /** The queue. Rejects with SEO_CONFIG if this node is incomplete. */
  shared(): Promise<Shared>;
}

/** Validates what a queue node says. Throws SEO_CONFIG. */
export async function readPlace({ tls, ...given }: Record<string, unknown>): Promise<Place> {
  if (!String(given.url ?? "").trim()) throw new SeoError("SEO_CONFIG", "The queue's URL is missing.");
  const { settings, credential } = configNodes["seo-queue"];
  const { readSettings } = await import("../src/schema.js");
  const { url = "", prefix } = readSettings({ ...settings, ...credential }, given, "SEO_CONFIG");
  return { url, prefix, tls: tls as Place["tls"] };
}

export const registerQueue = (RED: NodeAPI) =>
  registerConfig<Shared>(RED, "seo-queue", {
    member: "shared",
    async open(settings) {
      const { createShared } = await import("../src/audit/shared/shared.js");
      return createShared(await readPlace(settings));
    },
  });

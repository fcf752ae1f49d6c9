import type { Node, NodeAPI } from "node-red";
import { SeoError } from "../src/errors.js";
import { promised, thrownText } from "./sources.js";

const KEY = "reports";

/** The values of nodes that are being redeployed, by node ID. */
const carried = new Map<string, unknown>();

/**
 * A value in the node's context, in the store that the node names. Node-RED itself falls back to its default store if there is none
 * of that name. If its settings have no stores, it deletes a node's context with the node: a redeploy carries the value over.
 */
export function openState(RED: NodeAPI, node: Node, store: string | undefined) {
  const configured = () => (RED.settings as { contextStorage?: object }).contextStorage;

  if (carried.has(node.id)) node.context().set(KEY, carried.get(node.id));
  carried.delete(node.id);
  node.on("close", (removed: boolean, done: () => void) => {
    const value = removed || configured() ? undefined : node.context().get(KEY);
    if (value !== undefined) carried.set(node.id, value);
    done();
  });

  async function use(how: Parameters<typeof promised>[0]): Promise<unknown> {
    const stores = Object.keys(configured() ?? { memory: {} });
    if (store !== undefined && store !== "default" && !stores.includes(store)) {
      throw new SeoError(
        "SEO_CONFIG",
        `${node.name || node.type}: the context store "${store}" is not in Node-RED's settings, which have: ${stores.join(", ")}.`,
      );
    }
    return promised(how).catch((cause) => {
      throw new SeoError("SEO_INPUT", `The context store could not be accessed: ${thrownText(cause)}`);
    });
  }

  return {
    read: () => use((done) => node.context().get(KEY, store, done)),
    write: (value: unknown) => use((done) => node.context().set(KEY, value, store, done)),
  };
}

export type StateStore = ReturnType<typeof openState>;

import { createRequire } from "node:module";
import type { Node, NodeAPI, NodeDef } from "node-red";

/** `received` is called with the message that comes back. */
export type Message = { payload?: unknown; received?(msg: Message): void; [property: string]: unknown };

/** By node ID: sends a message to the node that is wired to the driver. */
export const drivers = new Map<string, (msg: Message) => void>();

/** By node ID: gets what the driver receives, in place of the message's own `received`. */
export const receivers = new Map<string, (msg: Message) => void>();

/** The driver `id` in a flow, wired to `target`. */
export const driver = (id: string, target?: string) => ({ id, type: "bench-driver", wires: target ? [[target]] : [] });

type FloorConfig = NodeDef & { url: string; connections: number; headers: Record<string, string> };
const require = createRequire(import.meta.url);

/** `bench-driver` stands before and behind the measured node. `bench-floor`, the cost of any node, only requests a page. */
export default function register(RED: NodeAPI): void {
  RED.nodes.registerType("bench-driver", function (this: Node, config: NodeDef) {
    RED.nodes.createNode(this, config);
    drivers.set(config.id, (msg) => this.send(msg as never));
    this.on("input", (msg, _send, done) => {
      const message = msg as unknown as Message;
      (receivers.get(config.id) ?? message.received)?.(message);
      done();
    });
  });

  RED.nodes.registerType("bench-floor", function (this: Node, config: FloorConfig) {
    RED.nodes.createNode(this, config);
    // Loaded only if a flow has the node: the time to load undici is measured, too.
    const { Pool } = require("undici") as typeof import("undici");
    const { connections, headers } = config;
    const { origin, pathname, search } = new URL(config.url);
    const pool = new Pool(origin, { connections });
    this.on("input", (msg, send, done) => {
      const chunks: Buffer[] = [];
      pool.dispatch(
        { path: pathname + search, method: "GET", headers },
        {
          onRequestStart() {},
          onResponseData: (_, chunk) => void chunks.push(chunk),
          onResponseEnd() {
            msg.payload = JSON.parse(chunks.length === 1 ? String(chunks[0]) : String(Buffer.concat(chunks)));
            send(msg);
            done();
          },
          onResponseError: (_, error) => done(error),
        },
      );
    });
    this.on("close", (done: () => void) => void pool.destroy().then(done));
  });
}

import type { Node, NodeAPI, NodeDef } from "node-red";
import { registerFloor } from "./floor.js";

/** `received` is called with the message that comes back. */
export type Message = { payload?: unknown; received(msg: Message): void; [property: string]: unknown };

/** By node ID: sends a message to the node that is wired to the driver. */
export const drivers = new Map<string, (msg: Message) => void>();

/** By node ID: gets what the driver receives, in place of the message's own `received`. */
export const receivers = new Map<string, (msg: Message) => void>();

/** The driver `id` in a flow, wired to `target`. */
export const driver = (id: string, target?: string) => ({ id, type: "bench-driver", wires: target ? [[target]] : [] });

/** Stands before and behind the measured node, in place of Inject and Debug nodes. */
export default function register(RED: NodeAPI): void {
  registerFloor(RED);
  RED.nodes.registerType("bench-driver", function (this: Node, config: NodeDef) {
    RED.nodes.createNode(this, config);
    drivers.set(config.id, (msg) => this.send(msg as never));
    this.on("input", (msg, _send, done) => {
      const message = msg as unknown as Message;
      (receivers.get(config.id) ?? message.received)(message);
      done();
    });
  });
}

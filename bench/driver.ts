import type { Node, NodeAPI, NodeDef } from "node-red";

export type Message = { payload?: unknown; answered(msg: Message): void; [property: string]: unknown };

/** By node id: sends a message to the node that is wired to it. */
export const drivers = new Map<string, (msg: Message) => void>();

/**
 * The node that stands before and behind the measured one, in place of inject and debug: it sends what it is given,
 * and tells whoever sent a message that it has come back.
 */
export default function register(RED: NodeAPI): void {
  RED.nodes.registerType("bench-driver", function (this: Node, config: NodeDef) {
    RED.nodes.createNode(this, config);
    drivers.set(config.id, (msg) => this.send(msg as never));
    this.on("input", (msg, _send, done) => {
      const message = msg as unknown as Message;
      message.answered(message);
      done();
    });
  });
}

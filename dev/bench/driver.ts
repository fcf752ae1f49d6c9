import { createRequire } from "node:module";
import type { Node, NodeAPI, NodeDef } from "node-red";

export type Message = { payload?: unknown; [property: string]: unknown };

/** By the ID of a driver: sends a message to the node behind it. */
const senders = new Map<string, (msg: Message) => void>();

/** By the ID of a driver: gets what it receives. */
export const receivers = new Map<string, (msg: Message) => void>();

/** Sends a message to a node of the flow. */
export const send = (id: string, msg: Message) => senders.get(`to ${id}`)?.(msg);

type Wired = { id: string; wires?: string[][] };

/** A driver before each node that is wired, and one behind it in place of each node that does not exist. */
export function driversFor(flow: Wired[]): { id: string; type: string; wires: string[][] }[] {
  const wired = new Set(flow.flatMap(({ wires = [] }) => wires.flat()));
  for (const { id } of flow) wired.delete(id);
  const before = flow.flatMap(({ id, wires }) => (wires ? [{ id: `to ${id}`, wires: [[id]] }] : []));
  return [...before, ...[...wired].map((id) => ({ id, wires: [] }))].map((node) => ({ type: "bench-driver", ...node }));
}

type FloorConfig = NodeDef & { url: string; connections: number; headers: Record<string, string> };
const require = createRequire(import.meta.url);

/** `bench-driver` stands before and behind the measured nodes. `bench-floor`, the cost of any node, only requests a page. */
export default function register(RED: NodeAPI): void {
  RED.nodes.registerType("bench-driver", function (this: Node, config: NodeDef) {
    RED.nodes.createNode(this, config);
    senders.set(config.id, (msg) => this.send(msg as never));
    this.on("input", (msg, _send, done) => {
      receivers.get(config.id)?.(msg as unknown as Message);
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

import { createRequire } from "node:module";
import type { Node, NodeAPI, NodeDef } from "node-red";

type Config = NodeDef & { url: string; connections: number; headers: Record<string, string> };

const require = createRequire(import.meta.url);

/** The cost of any node: `bench-pass` only sends the message and ends it, `bench-floor` requests a page besides. */
export function registerFloor(RED: NodeAPI): void {
  RED.nodes.registerType("bench-pass", function (this: Node, config: NodeDef) {
    RED.nodes.createNode(this, config);
    this.on("input", (msg, send, done) => {
      send(msg);
      done();
    });
  });

  RED.nodes.registerType("bench-floor", function (this: Node, config: Config) {
    RED.nodes.createNode(this, config);
    // Loaded only if a flow has the node: the time to load undici is measured, too.
    const { Pool } = require("undici") as typeof import("undici");
    const { connections, headers } = config;
    const { origin, pathname, search } = new URL(config.url);
    const path = pathname + search;
    const pool = new Pool(origin, { connections });
    this.on("input", (msg, send, done) => {
      const chunks: Buffer[] = [];
      pool.dispatch(
        { path, method: "GET", headers },
        {
          onRequestStart() {},
          onResponseStart() {},
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

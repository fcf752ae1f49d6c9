import type { Node, NodeAPI, NodeDef } from "node-red";
import type { Client } from "../src/client.js";
import { SeoError } from "../src/errors.js";
import type { NodeType } from "../src/operations.js";
import { createLane, type Lane } from "../src/queue.js";
import type { ServiceNode } from "./service.js";
import { createSources, type Input, type Message } from "./sources.js";
import { createStatus } from "./status.js";

/** What a node does with one message. */
export interface Job extends Input {
  client: Client;
  lane: Lane;
  msg: Message;
  /** The node's own properties: its method, its output and so on. */
  settings: Record<string, string>;
  /** Sends the message, or a message made of it; after the node was closed it does nothing. */
  send(msg: Message): void;
  /** Shows how far a list is read. */
  progress(page: number, pages: number | undefined, records: number): void;
}

export type Config = NodeDef & Record<string, unknown>;

/**
 * Makes a node handle its input: reads the parameters, has `work` ask the service, and tells how it ended, exactly once:
 * `work`'s text as the status of a success, or `done(error)` with `msg.seo.error`. A closed node tells nothing.
 */
export function handleInput(
  RED: NodeAPI,
  node: Node,
  type: string,
  row: NodeType,
  config: Config,
  work: (job: Job) => Promise<string>,
): void {
  const service = RED.nodes.getNode(String(config.service ?? "")) as ServiceNode | null;
  const read = createSources(RED, node, row, config);
  const status = createStatus(RED, node);
  const lane = createLane();
  let client: Client | undefined;
  let settings: Record<string, string> | undefined;
  let open = 0;
  let closed = false;

  async function handle(msg: Message, send: (msg: Message) => void): Promise<string> {
    if (!service?.client) throw new SeoError("SEO_CONFIG", "The node has no service, or its service is disabled.");
    const asked = await read(msg);
    if (!client) {
      client = await service.client();
      status.follow(lane, client);
    }
    settings ??= (await import("../src/schema.js")).readSettings(row.options, config);
    return work({ ...asked, client, lane, msg, settings, send, progress: status.progress });
  }

  /** Tells how a message ended. Node-RED clones the message for it, which a message nested too deep does not survive. */
  function tell(how: () => void): void {
    open--;
    if (closed) return;
    try {
      how();
    } catch (cause) {
      node.error(`${type} could not pass the message on: ${String(cause)}`);
    }
  }

  node.on("input", (msg: Message, send, done) => {
    open++;
    handle(msg, (out) => {
      if (!closed) send(out as never);
    }).then(
      (text) =>
        tell(() => {
          status.succeeded(text);
          done();
        }),
      (cause) => {
        const error =
          cause instanceof SeoError
            ? cause
            : new SeoError("SEO_INPUT", `The message cannot be handled: ${String(cause)}`);
        if (lane.closed && error.details.attempts === 0) return;
        tell(() => {
          status.failed(error.code);
          msg.seo = { operation: type, error: error.toJSON() };
          done(error);
        });
      },
    );
  });

  node.on("close", (done: () => void) => {
    lane.closed = true;
    client?.cancel(lane);
    // What ran has been aborted, and is told of before this comes; what is left was never sent.
    setImmediate(() => {
      if (open > 0) node.warn(RED._("seo-reports.status.dropped", { count: open }));
      closed = true;
      status.close();
      done();
    });
  });
}

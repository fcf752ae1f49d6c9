import type { Node, NodeAPI, NodeDef } from "node-red";
import type { Client, Place } from "../src/client.js";
import { SeoError } from "../src/errors.js";
import type { NodeType, Operation } from "../src/operations.js";
import { createLane, type Lane, type Turn } from "../src/queue.js";
import type { ServiceNode } from "./service.js";
import { createSources, type Message, reasonOf } from "./sources.js";
import { createStatus } from "./status.js";

/** What the messages of one node have in common. */
interface Tools {
  client: Client;
  /** The node's own properties: its method, its output and so on. */
  settings: Record<string, string>;
  /** Shows how far a list is read. */
  progress(page: number, pages: number | undefined, records: number): void;
}

/** What a node does with one message. */
export interface Job extends Tools {
  lane: Lane;
  /** The message's turn, which its first request takes. */
  place: Place;
  msg: Message;
  /** Its parameters, checked. */
  input: Record<string, string>;
  /** Sends the message, or a message made of it; after the node was closed it does nothing. */
  send(msg: Message): void;
}

type Pass = (msg: Message) => void;
type Done = (error?: Error) => void;

/** The status of a success; made when it is shown, which is not for each of many messages. */
export type Ending = () => string;

export type Config = NodeDef & Record<string, unknown>;

/**
 * Makes a node handle its input: reads and checks the parameters, waits for the message's turn, has `work` ask the service,
 * and tells how it ended, exactly once: `work`'s text as the status of a success, or `done(error)` with `msg.seo.error`.
 * A closed node tells nothing. `most`: how many messages it works on at a time, where that is limited.
 */
export function handleInput(
  RED: NodeAPI,
  node: Node,
  type: string,
  row: NodeType,
  config: Config,
  work: (job: Job) => Promise<Ending>,
  most?: number,
): void {
  const service = RED.nodes.getNode(String(config.service ?? "")) as ServiceNode | null;
  const read = createSources(RED, node, row, config);
  const status = createStatus(RED, node);
  const lane = createLane(most);
  let client: Client | undefined;
  let tools: Promise<Tools> | undefined;
  let open = 0;
  let closed = false;

  async function load(from: ServiceNode): Promise<Tools> {
    client = await from.client();
    status.follow(lane, client);
    const { readSettings } = await import("../src/schema.js");
    return { client, settings: readSettings(row.options, config), progress: status.progress };
  }

  /** A message that waits for its turn. There may be thousands, so this is all that is kept of each. */
  class Waiting implements Turn, Place {
    readonly lane = lane;
    readonly begins = true;
    readonly since = performance.now();
    used = false;
    constructor(
      readonly tools: Tools,
      readonly input: Record<string, string>,
      readonly msg: Message,
      readonly pass: Pass,
      readonly done: Done,
    ) {}
    start(): void {
      run(this);
    }
    refuse(error: SeoError): void {
      if (!lane.closed) fail(this.msg, this.done, error);
    }
  }

  async function enter(msg: Message, pass: Pass, done: Done): Promise<void> {
    if (!service?.client) throw new SeoError("SEO_CONFIG", "No SEO service is selected, or it is disabled.");
    const { input, from } = await read(msg);
    tools ??= load(service);
    const found = await tools;
    found.client.enter(new Waiting(found, found.client.check(row, input, from), msg, pass, done));
  }

  async function run(place: Waiting): Promise<void> {
    const { tools, input, msg, pass, done } = place;
    const { client, settings, progress } = tools;
    const send = (out: Message) => {
      try {
        if (!closed) pass(out);
      } catch (cause) {
        const { attempts } = Object(out.seo) as { attempts?: number };
        const sentence = `The service responded, but the message could not be sent: ${reasonOf(cause)}`;
        const { method = "GET" } = row as Partial<Operation>;
        throw new SeoError("SEO_INPUT", sentence, { attempts, uncertain: method !== "GET" });
      }
    };
    try {
      const ending = await work({ client, settings, progress, input, lane, place, msg, send });
      tell({ _msgid: msg._msgid, seo: msg.seo }, () => {
        status.succeeded(ending);
        done();
      });
    } catch (cause) {
      fail(msg, done, cause);
    } finally {
      client.end(place);
    }
  }

  function fail(msg: Message, done: Done, cause: unknown): void {
    const error =
      cause instanceof SeoError
        ? cause
        : new SeoError("SEO_INPUT", `The message could not be processed: ${reasonOf(cause)}`);
    if (lane.closed && error.details.attempts === 0) return;
    const seo = { operation: type, error: error.toJSON() };
    tell({ _msgid: msg._msgid, seo }, () => {
      status.failed(error.code);
      msg.seo = seo;
      done(error);
    });
  }

  /**
   * Tells how a message ended. Node-RED clones the message for it, which one that is nested too deep does not survive:
   * Catch nodes then get what is left of it.
   */
  function tell(left: Message, how: () => void): void {
    open--;
    if (closed) return;
    try {
      how();
    } catch (cause) {
      node.error(`The message could not be sent: ${reasonOf(cause)}`, left as never);
    }
  }

  node.on("input", (msg: Message, send, done) => {
    open++;
    enter(msg, send as Pass, done).catch((cause) => fail(msg, done, cause));
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

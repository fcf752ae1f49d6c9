import { performance } from "node:perf_hooks";
import type { Node, NodeAPI, NodeDef } from "node-red";
import type { Client } from "../src/client.js";
import { SeoError } from "../src/errors.js";
import { type QueuedMessage as Admitted, createLane, type Task } from "../src/lane.js";
import type { NodeType, Operation } from "../src/operations.js";
import { createSequence } from "../src/turns.js";
import type { ServiceNode } from "./service.js";
import { createSources, type Input, type Message, reasonOf } from "./sources.js";
import { createStatus } from "./status.js";

interface Tools {
  readonly client: Client;
  /** The node's own properties: its method, its output and so on. */
  readonly settings: Record<string, string>;
}

/** What a node does with one message; its requests are sent for it. */
export interface Job extends Task, Tools {
  readonly msg: Message;
  /** Its parameters, validated. */
  readonly input: Record<string, string>;
  /** Milliseconds that it waited for admission, and those since it was received. */
  readonly queued: number;
  elapsed(): number;
  /** Shows how many pages of a list were read. */
  progress(page: number, pages: number | undefined, records: number): void;
  /** Sends the message, or a message made of it; does nothing once the node is closed. */
  send(msg: Message): void;
}

type Send = (msg: Message) => void;
type Done = (error?: Error) => void;

/** The status of a success. It is made when it is shown, which of many messages is only the last. */
export type StatusText = () => string;

/** What a node does with a message. */
export type Work = (job: Job) => Promise<StatusText>;

export type Config = NodeDef & Record<string, unknown>;

/**
 * Catch nodes get the same from this as from an Error: its text and its `code`. The debug sidebar shortens errors and texts
 * to 80 characters, but not what Node-RED has encoded as a regular expression.
 */
export const forNodeRed = ({ code, message }: SeoError) =>
  ({ code, toString: () => message, __enc__: true, type: "regexp", data: message }) as unknown as Error;

/** Requests that a warning names. */
const MOST_NAMED = 10;

/** A node has no service. */
export const noService = new SeoError("SEO_CONFIG", "No SEO service is selected, or it is disabled.");

/**
 * Reports how a message ended, by `how`. Node-RED clones the message for it, which fails if it is nested too deeply:
 * Catch nodes then get `rest`, without the payload, or only the error. An exception here would end Node-RED.
 */
export function reportOn(node: Node, rest: Message, how: () => void): void {
  try {
    how();
  } catch (cause) {
    const sentence = `Complete or Catch nodes could not get the message: ${reasonOf(cause)}`;
    try {
      node.error(sentence, rest);
    } catch {
      node.error(sentence, {});
    }
  }
}

/**
 * Handles a node's input: reads and validates the parameters, waits for admission, does the node's work, and reports
 * how it ended, exactly once: its text as the status of a success, or `done(error)` with `msg.seo.error`.
 * A closed node reports nothing. `loadWork` is called with the first message. `maxActive`: how many messages it works on
 * at a time, if that is limited; `received` and `ended` are called with the ID of each message that was received, and that
 * was reported.
 */
export function handleInput(
  RED: NodeAPI,
  node: Node,
  type: string,
  row: NodeType,
  config: Config,
  loadWork: () => Promise<Work>,
  { maxActive, received, ended }: { maxActive?: number; received?(id: unknown): void; ended?(id: unknown): void } = {},
): void {
  const service = RED.nodes.getNode(String(config.service ?? "")) as ServiceNode | null;
  const readInput = createSources(RED, node, row, config);
  const status = createStatus(RED, node);
  const lane = createLane({ maxActive });
  const { method = "GET" } = row as Partial<Operation>;
  let loading: Promise<Tools> | undefined;
  let tools: Tools | undefined;
  let work: Work;
  /** Messages whose values take time to read are admitted in the order in which they were received. */
  const inOrder = createSequence();
  let unanswered = 0;
  /** What the canceled requests were about that may have taken effect, and how many others would have changed something. */
  const uncertain: string[] = [];
  let unsent = 0;
  let closed = false;

  async function load(from: ServiceNode): Promise<Tools> {
    const client = await from.client();
    status.follow(lane, client);
    const { readSettings } = await import("../src/schema.js");
    work = await loadWork();
    tools = { client, settings: readSettings(row.options, config) };
    return tools;
  }

  /** A message and what is done with it. Thousands can wait for admission, so it holds little, and its methods are shared. */
  class Received implements Job, Admitted {
    readonly since = performance.now();
    queued = 0;
    pending = 0;
    closed = false;
    constructor(
      readonly client: Client,
      readonly settings: Record<string, string>,
      readonly input: Record<string, string>,
      readonly msg: Message,
      readonly pass: Send,
      readonly done: Done,
    ) {}
    get lane() {
      return lane;
    }
    get progress() {
      return status.progress;
    }
    elapsed(): number {
      return Math.round(performance.now() - this.since);
    }
    send(out: Message): void {
      try {
        if (!closed) this.pass(out);
      } catch (cause) {
        const { attempts } = Object(out.seo) as { attempts?: number };
        const sentence = `The service responded, but the message could not be sent: ${reasonOf(cause)}`;
        throw new SeoError("SEO_INPUT", sentence, { attempts, uncertain: method !== "GET" });
      }
    }
    async start(): Promise<void> {
      const { client, msg, done } = this;
      this.queued = this.elapsed();
      try {
        const text = await work(this);
        report({ _msgid: msg._msgid, seo: msg.seo }, () => {
          status.succeeded(text);
          done();
        });
      } catch (cause) {
        if (lane.closed && cause instanceof SeoError) note(cause, this);
        fail(msg, done, cause);
      } finally {
        client.end(this);
      }
    }
    refuse(error: SeoError): void {
      if (!lane.closed) fail(this.msg, this.done, error);
    }
  }

  /** Keeps for the log what a redeploy ended. Messages that were never sent are counted as unanswered. */
  function note({ code, details: { uncertain: isUncertain, attempts } }: SeoError, { client, input }: Received): void {
    if (isUncertain) uncertain.push(client.nameOf(row, input));
    else if (code === "SEO_CANCELLED" && attempts && method !== "GET") unsent++;
  }

  function admit({ client, settings }: Tools, { input, from }: Input, msg: Message, pass: Send, done: Done): void {
    client.admit(new Received(client, settings, client.validate(row, input, from), msg, pass, done));
  }

  /** Without a promise if none is needed: each takes time, and most messages need none. */
  function receive(msg: Message, pass: Send, done: Done): void | Promise<void> {
    if (!service?.client) throw noService;
    const read = readInput(msg);
    if (tools && !(read instanceof Promise)) return admit(tools, read, msg, pass, done);
    loading ??= load(service);
    const ready = Promise.all([loading, read]);
    // A rejection waits for its turn, too.
    ready.catch(() => {});
    return inOrder(async () => admit(...(await ready), msg, pass, done));
  }

  function fail(msg: Message, done: Done, cause: unknown): void {
    const error =
      cause instanceof SeoError
        ? cause
        : new SeoError("SEO_INPUT", `The message could not be processed: ${reasonOf(cause)}`);
    if (lane.closed && !error.details.attempts) return;
    const seo = { operation: type, error: error.toJSON() };
    report({ _msgid: msg._msgid, seo }, () => {
      status.failed(error);
      // Of a frozen message it is not set; an assignment would throw.
      Reflect.set(msg, "seo", seo);
      done(forNodeRed(error));
    });
  }

  function report(rest: Message, how: () => void): void {
    unanswered--;
    if (closed) return;
    reportOn(node, rest, how);
    ended?.(rest._msgid);
  }

  node.on("input", (msg: Message, send, done) => {
    unanswered++;
    received?.(msg._msgid);
    status.received();
    try {
      receive(msg, send as Send, done)?.catch((cause) => fail(msg, done, cause));
    } catch (cause) {
      fail(msg, done, cause);
    }
  });

  node.on("close", (done: () => void) => {
    lane.closed = true;
    tools?.client.cancel(lane);
    // What was in flight is reported before this runs; the rest was never sent.
    setImmediate(() => {
      const dropped = unanswered + unsent;
      const { length: count } = uncertain;
      const names = [...uncertain.slice(0, MOST_NAMED), ...(count > MOST_NAMED ? [`… (+${count - MOST_NAMED})`] : [])];
      const warnings = [
        ...(dropped > 0 ? [RED._("seo-reports.status.dropped", { count: dropped })] : []),
        // A Catch node may be closed as well, whatever its scope: only the log is certain.
        ...(count > 0 ? [RED._("seo-reports.status.uncertain", { count, names: names.join(", ") })] : []),
      ];
      if (warnings.length > 0) node.warn(warnings.join(" · "));
      closed = true;
      status.close();
      done();
    });
  });
}

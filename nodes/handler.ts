import { performance } from "node:perf_hooks";
import type { Node, NodeAPI } from "node-red";
import type { Client } from "../src/client.js";
import { SeoError, sentenceOf } from "../src/errors.js";
import type { NodeType, Operation } from "../src/operations.js";
import { createLane, type Queued, type Task } from "../src/scheduler.js";
import { createSequence } from "../src/turns.js";
import { whenRestarted } from "./flows.js";
import type { ServiceNode } from "./service.js";
import { type Config, createSources, type Input, type Message, thrownText } from "./sources.js";
import { Status } from "./status.js";

type Send = (msg: Message) => void;
type Done = (error?: Error) => void;

/** The status of a success. It is made when it is shown, which of many messages is only the last. */
export type StatusText = () => string;

/** Handles one message. */
export type Process = (task: MessageTask) => Promise<StatusText>;

/** The node's own properties, validated: its method, its output and so on. */
export type NodeSettings = Record<string, string>;

interface HandlerOptions {
  row: NodeType;
  config: Config;
  /** Called with the first message, also after a restart of the service. */
  load(settings: NodeSettings): Promise<Process>;
  /** Called with the number of messages that are not complete, whenever it changes. */
  busy?(count: number): void;
}

/**
 * The form of an error that Node-RED shows best. Catch nodes get the sentence, the `code` and the stack, as of an Error. The debug
 * sidebar shows only 30 characters of a real Error's sentence, and 80 of a text, but the whole of a text in this encoding.
 */
export function forNodeRed(error: SeoError): Error {
  // Without a Catch node, nobody reads `msg.seo.error.uncertain`, and the message is sent again.
  const data = error.uncertain ? `${sentenceOf(error.message)} The request may have taken effect.` : error.message;
  const shown = {
    code: error.code,
    toString: () => data,
    get stack() {
      return error.stack;
    },
    ...{ __enc__: true, type: "regexp", data },
  };
  return shown as unknown as Error;
}

/** Requests that a warning names. */
const MOST_NAMED = 10;

/** The service of a node. Throws SEO_CONFIG if it has none. */
export function serviceOf(RED: NodeAPI, { service }: Config): ServiceNode {
  const node = RED.nodes.getNode(String(service ?? "")) as ServiceNode | null;
  if (!node?.client) throw new SeoError("SEO_CONFIG", "No SEO service is selected, or it is disabled.");
  return node;
}

/** The error of a message that could not be handled. */
export const toError = (cause: unknown): SeoError =>
  cause instanceof SeoError
    ? cause
    : new SeoError("SEO_INPUT", `The message could not be processed: ${thrownText(cause)}`);

/**
 * Completes a message: with `error`, which is also in `msg.seo`, or as a success. Node-RED clones the message for it,
 * which fails if it is nested too deeply: Catch nodes then get the rest of it, without the payload, or only the error. An exception
 * here would end Node-RED.
 */
export function complete(node: Node, msg: Message, done: Done, error?: SeoError): void {
  let rest: Message = {};
  try {
    // A property of a message can throw.
    rest = { _msgid: msg._msgid, seo: error ? { operation: node.type, error: error.toJSON() } : msg.seo };
    // A frozen message does not get it; an assignment would throw.
    if (error) Reflect.set(msg, "seo", rest.seo);
    done(error && forNodeRed(error));
  } catch (cause) {
    const sentence = `Complete or Catch nodes could not get the message: ${thrownText(cause)}`;
    try {
      node.error(sentence, rest);
    } catch {
      node.error(sentence, {});
    }
  }
}

/** The tools to handle messages; they are loaded with the first one. */
interface Tools {
  client: Client;
  settings: NodeSettings;
  process: Process;
}

/** A message that a node handles, and the task of its requests. Thousands can wait for admission, so it has few fields. */
export class MessageTask implements Task, Queued {
  readonly since = performance.now();
  pending = 0;
  closed = false;
  /** Set before it is admitted. */
  tools!: Tools;
  /** Its parameters, validated. */
  input!: Record<string, string>;
  constructor(
    readonly handler: Handler,
    readonly msg: Message,
    readonly nodeSend: Send,
    readonly done: Done,
  ) {}
  get client() {
    return this.tools.client;
  }
  get settings() {
    return this.tools.settings;
  }
  get lane() {
    return this.handler.lane;
  }
  get task() {
    return this;
  }
  /** Shows how many pages of a list were read. */
  progress(page: number, pages: number | undefined, records: number): void {
    this.handler.status.progress(page, pages, records);
  }
  /** Milliseconds since it was received. */
  elapsed(): number {
    return Math.round(performance.now() - this.since);
  }
  /** Sends the message that `make` returns; does nothing once the node is closed. `attempts`: the requests that were sent for it. */
  send(attempts: number | undefined, make: () => Message): void {
    const { status, method } = this.handler;
    try {
      if (!status.closed) this.nodeSend(make());
    } catch (cause) {
      const sentence = `The service responded, but the message could not be sent: ${thrownText(cause)}`;
      throw new SeoError("SEO_INPUT", sentence, { attempts, uncertain: method !== "GET" });
    }
  }
  /** Processes it: it was admitted. */
  async start(): Promise<void> {
    const { handler, tools } = this;
    try {
      handler.status.succeeded(await tools.process(this));
      handler.complete(this);
    } catch (cause) {
      if (this.lane.closed && cause instanceof SeoError) handler.note(cause, this);
      this.refuse(cause);
    } finally {
      tools.client.end(this);
    }
  }
  /** Completes it with an error. While the node closes, a message whose request was never sent stays incomplete. */
  refuse(cause: unknown): void {
    const error = toError(cause);
    if (this.lane.closed && !error.details.attempts) return;
    this.handler.status.failed(error);
    this.handler.complete(this, error);
  }
}

/**
 * Handles a node's messages: reads and validates the parameters, waits for admission, has the message processed, and completes
 * it, exactly once: with a status, or by `done(error)` with `msg.seo.error`. A closed node completes nothing.
 */
class Handler {
  readonly lane = createLane();
  readonly status: Status;
  readonly method: string;
  readonly #RED: NodeAPI;
  readonly #node: Node;
  readonly #options: HandlerOptions;
  readonly #readInput: ReturnType<typeof createSources>;
  #loading: Promise<Tools> | undefined;
  #tools: Tools | undefined;
  /** How often the service was restarted. */
  #restarts = 0;
  /** Messages whose values take time to read are admitted in the order in which they were received. */
  readonly #inOrder = createSequence();
  /** The subjects of canceled requests that may have taken effect, and how many others were sent, but had none. */
  readonly #uncertain: string[] = [];
  #ineffective = 0;

  constructor(RED: NodeAPI, node: Node, options: HandlerOptions) {
    const { row, config } = options;
    this.#RED = RED;
    this.#node = node;
    this.#options = options;
    whenRestarted(RED, node, [config.service], () => {
      this.#restarts++;
      this.#loading = this.#tools = undefined;
    });
    this.#readInput = createSources(RED, node, row, config);
    this.method = (row as Partial<Operation>).method ?? "GET";
    this.status = new Status(RED, node);
  }

  /** Handles a message. */
  receive(msg: Message, send: Send, done: Done): void {
    const message = new MessageTask(this, msg, send, done);
    this.status.began();
    this.#options.busy?.(this.status.incomplete);
    try {
      this.#read(message)?.catch((cause) => message.refuse(cause));
    } catch (cause) {
      message.refuse(cause);
    }
  }

  /** Without a promise if none is needed: each takes time, and most messages need none. */
  #read(message: MessageTask): void | Promise<void> {
    const read = this.#readInput(message.msg);
    if (this.#tools && !(read instanceof Promise)) return this.#admit(message, this.#tools, read);
    this.#loading ??= this.#load();
    const ready = Promise.all([this.#loading, read]);
    // A rejection waits for its turn, too.
    ready.catch(() => {});
    return this.#inOrder(async () => this.#admit(message, ...(await ready)));
  }

  #admit(message: MessageTask, tools: Tools, { input, from }: Input): void {
    message.tools = tools;
    message.input = tools.client.validate(this.#options.row, input, from);
    tools.client.admit(message);
  }

  async #load(): Promise<Tools> {
    const { row, config, load } = this.#options;
    const restarts = this.#restarts;
    const client = await serviceOf(this.#RED, config).client();
    this.status.follow(this.lane, client);
    const { readSettings } = await import("../src/schema.js");
    const settings = readSettings(row.options, config);
    const tools = { client, settings, process: await load(settings) };
    if (restarts !== this.#restarts) return this.#load();
    this.#tools = tools;
    return tools;
  }

  complete({ msg, done }: MessageTask, error?: SeoError): void {
    if (this.status.closed) return;
    complete(this.#node, msg, done, error);
    this.#options.busy?.(this.status.incomplete);
  }

  /** Keeps for the log what a redeploy ended. Messages whose requests were never sent stay incomplete. */
  note({ code, details: { uncertain, attempts } }: SeoError, { client, input }: MessageTask): void {
    if (uncertain) this.#uncertain.push(client.nameOf(this.#options.row, input));
    else if (code === "SEO_CANCELLED" && attempts && this.method !== "GET") this.#ineffective++;
  }

  /** Cancels what is in flight, and warns of it. */
  close(done: () => void): void {
    this.lane.closed = true;
    this.#tools?.client.cancel(this.lane);
    // Messages with requests in flight are complete before this runs; the rest was never sent.
    setImmediate(() => {
      const warnings = this.#warnings();
      if (warnings.length > 0) this.#node.warn(warnings.join(" · "));
      this.status.close();
      done();
    });
  }

  #warnings(): string[] {
    const dropped = this.status.incomplete + this.#ineffective;
    const { length: count } = this.#uncertain;
    const more = count > MOST_NAMED ? [`… (+${count - MOST_NAMED})`] : [];
    const names = [...this.#uncertain.slice(0, MOST_NAMED), ...more].join(", ");
    return [
      ...(dropped > 0 ? [this.#RED._("seo-reports.status.dropped", { count: dropped })] : []),
      // A Catch node may be closed as well, whatever its scope: only the log is certain.
      ...(count > 0 ? [this.#RED._("seo-reports.status.uncertain", { count, names })] : []),
    ];
  }
}

/** Has a node handle its messages. */
export function handleInput(RED: NodeAPI, node: Node, options: HandlerOptions): void {
  const handler = new Handler(RED, node, options);
  node.on("input", (msg: Message, send, done) => handler.receive(msg, send as Send, done));
  node.on("close", (done: () => void) => handler.close(done));
}

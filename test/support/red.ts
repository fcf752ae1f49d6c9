import { type EventEmitter, once } from "node:events";
import { createRequire } from "node:module";
import type { Node, NodeAPI } from "node-red";
import { nodeRed, nodeRedModule } from "../../dev/nodered.js";

const require = createRequire(import.meta.url);

/** A node of a flow file. */
export interface FlowNode {
  id: string;
  type: string;
  name?: string;
  [property: string]: unknown;
}

export type Credentials = Record<string, Record<string, string>>;

export type Register = (RED: NodeAPI) => void;

/** A line of Node-RED's log, at any level. */
export interface LogLine {
  level: number;
  id?: string;
  msg: unknown;
}

/** A request to the admin API, as JSON if it has no other type. */
interface Post {
  type(name: string): Post;
  send(body: unknown): Promise<{ status: number; body: unknown; text: string }>;
}

/** The part of node-red-node-test-helper that the tests use; the package has no types. */
interface Helper {
  init(nodeRed: string): void;
  load(types: Register[], flow: FlowNode[], credentials?: Credentials): Promise<void>;
  setFlows(flow: FlowNode[], type: "full" | "flows" | "nodes", credentials?: Credentials): Promise<void>;
  unload(): Promise<void>;
  clearFlows(): Promise<void>;
  getNode(id: string): Node | null;
  /** The runtime's settings, as its nodes see them. */
  settings(): object;
  /** Sends a request to the admin API, without authentication. */
  request(): { post(path: string): Post; get(path: string): Promise<{ status: number; body: unknown; text: string }> };
  /** The spies that `load` puts on the log and on every method of a node. */
  _sandbox: { restore(): void };
}

export const helper = require("node-red-node-test-helper") as Helper;
helper.init(require.resolve(nodeRed().name));

/** Loads a flow without the helper's spies, which keep every call with its stack: seconds and gigabytes in large suites. */
export async function load(types: Register[], flow: FlowNode[], credentials: Credentials): Promise<void> {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    await helper.load(types, flow, credentials);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    helper._sandbox.restore();
  }
}

/** Deploys a changed flow and resolves when the new nodes have started; the helper alone would wait only 300 ms. */
export async function redeploy(flow: FlowNode[], type: "full" | "flows" | "nodes", keys: Credentials): Promise<void> {
  const { events } = nodeRedModule<{ events: EventEmitter }>("@node-red/util");
  const started = once(events, "flows:started");
  await helper.setFlows(flow, type, keys).catch(() => {});
  await started;
}

/** Node-RED's hooks; one that returns false drops the message. */
export interface Hooks<Event> {
  add(name: string, hook: (event: Event) => unknown): void;
  remove(name: string): void;
}

interface Log {
  addHandler(handler: LogHandler): void;
  removeHandler(handler: LogHandler): void;
}
interface LogHandler {
  emit(event: "log", line: LogLine): void;
}

/** Records every line of Node-RED's log, including trace, until `stop`. */
export function readLog(): { lines: LogLine[]; stop(): void } {
  const { log } = nodeRedModule<{ log: Log }>("@node-red/util");
  const lines: LogLine[] = [];
  const handler: LogHandler = { emit: (_event, line) => lines.push(line) };
  log.addHandler(handler);
  return { lines, stop: () => log.removeHandler(handler) };
}

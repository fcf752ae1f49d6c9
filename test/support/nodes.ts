import type { Node, NodeStatus } from "node-red";
import register from "../../nodes/seo-reports.js";
import {
  type Credentials,
  type FlowNode,
  helper,
  load,
  nodeRedModule,
  type Register,
  readLog,
  redeploy,
} from "./red.js";

export type Message = Record<string, unknown> & { _msgid?: string };

/** How one message ended. */
export interface Outcome {
  outputs: Message[];
  /** What the Catch node received. */
  caught?: Message;
  /** How often Node-RED was told that the message is done with: once, or the node is broken. */
  ends: number;
}

/** What a Catch node receives of a failure. */
export interface Failure extends Message {
  error: { message: string; code?: string; source: { id: string } };
  seo: {
    operation: string;
    error: {
      code: string;
      message: string;
      statusCode?: number;
      fields?: Record<string, string[]>;
      retryAfter?: number;
      attempts: number;
      uncertain: boolean;
      body?: unknown;
    };
  };
}

/** The catalogue is not loaded here: a text is shown as its key and what is put into it. */
const translate = (key: string, values?: object) => (values ? `${key} ${JSON.stringify(values)}` : key);

const types: Register[] = [
  (RED) => register(Object.assign(RED, { _: translate })),
  nodeRedModule<Register>("@node-red/nodes/core/network/05-tls.js"),
  nodeRedModule<Register>("@node-red/nodes/core/network/06-httpproxy.js"),
];

/** Node-RED takes what has no place on the canvas for a config node. */
const place = { z: "tab", x: 0, y: 0 };

/** A service node, asking `baseUrl`, and its key. */
export function service(id: string, baseUrl: string, settings: object = {}): FlowNode {
  return { id, type: "seo-service", name: "", baseUrl, ...settings };
}

/** A node of an operation, wired to where `send` looks for its output. */
export function operation(id: string, type: string, settings: object = {}): FlowNode {
  return { id, type, ...place, service: "service", wires: [["out"]], ...settings };
}

/** A report that is chosen in the dialog. */
export const fixedReport = { reportId: "7", reportIdType: "str" };

/** A configuration of TLS, as the editor stores it: the CA comes with the credentials, or as `ca`, a file. */
export function tlsConfig(id: string, settings: object = {}): FlowNode {
  const blank = { name: "", cert: "", key: "", ca: "", servername: "", alpnprotocol: "" };
  return { id, type: "tls-config", ...blank, verifyservercert: true, ...settings };
}

/** The flow around them: a Catch, a Complete and a Status node for all, each wired to a node that the test listens to. */
function around(nodes: FlowNode[]): FlowNode[] {
  const inside = { ...place, wires: [] };
  const scope = nodes.filter(({ z }) => z === "tab").map(({ id }) => id);
  return [
    { id: "tab", type: "tab", label: "" },
    { id: "catching", type: "catch", scope: null, ...inside, wires: [["caught"]] },
    { id: "completing", type: "complete", scope, ...inside, wires: [["completed"]] },
    { id: "showing", type: "status", scope: null, ...inside, wires: [["shown"]] },
    ...["out", "caught", "completed", "shown"].map((id) => ({ id, type: "helper", ...inside })),
    ...nodes,
  ];
}

const defaultKey = (nodes: FlowNode[]): Credentials =>
  Object.fromEntries(
    nodes.filter(({ type }) => type === "seo-service").map(({ id }) => [id, { apiKey: "key-of-tests" }]),
  );

let messages = 0;

/** Runs `nodes` in Node-RED, and sends them messages. `stop` ends it. */
export async function deploy(nodes: FlowNode[], credentials: Credentials = {}) {
  const open = new Map<string, { outcome: Outcome; ended(outcome: Outcome): void }>();
  const statuses: { id: string; status: NodeStatus }[] = [];
  const waiters = new Set<{ wanted(status: NodeStatus): boolean; resolve(): void }>();
  /** Everything that came, also of messages that had ended. */
  const heard: { by: "out" | "caught" | "completed"; msg: Message }[] = [];

  const note = (by: "out" | "caught" | "completed", msg: Message) => {
    heard.push({ by, msg });
    const waiting = open.get(String(msg._msgid));
    if (!waiting) return;
    const { outcome, ended } = waiting;
    if (by === "out") {
      outcome.outputs.push(msg);
      return;
    }
    outcome.ends++;
    if (by === "caught") outcome.caught = msg;
    ended(outcome);
  };

  const heardOf = new WeakSet<Node>();

  /** Listens to the ends of the flow, once to each: a deploy leaves some nodes and makes others anew. */
  function listen() {
    const hear = (id: string, heed: (msg: Message) => void) => {
      const node = helper.getNode(id);
      if (!node || heardOf.has(node)) return;
      heardOf.add(node);
      node.on("input", (msg, _send, done) => {
        heed(msg as Message);
        done();
      });
    };
    for (const by of ["out", "caught", "completed"] as const) hear(by, (msg) => note(by, msg));
    hear("shown", (msg) => {
      const { status } = msg as { status: NodeStatus & { source: { id: string } } };
      statuses.push({ id: status.source.id, status });
      for (const waiter of waiters) if (waiter.wanted(status)) waiter.resolve();
    });
  }

  const log = readLog();
  await load(types, around(nodes), { ...defaultKey(nodes), ...credentials });
  listen();

  return {
    statuses,
    heard,
    log: log.lines,

    /** Gives a message to a node. Resolves when the node is done with it. */
    send(id: string, msg: Message = {}): Promise<Outcome> {
      const _msgid = `message-${++messages}`;
      const outcome: Outcome = { outputs: [], ends: 0 };
      return new Promise((ended) => {
        open.set(_msgid, { outcome, ended });
        (helper.getNode(id) as Node).receive(Object.assign(msg, { _msgid }) as never);
      });
    },

    /** Resolves when a node shows a status of that kind. */
    shown: (wanted: (status: NodeStatus) => boolean) =>
      new Promise<void>((resolve) => waiters.add({ wanted, resolve })),

    /** Stops the flow, and waits until its nodes are closed. */
    async stop(): Promise<void> {
      await helper.unload();
      log.stop();
    },

    /** Deploys `changed` in place of what runs. Resolves when the old nodes are closed and the new ones run. */
    async redeploy(changed: FlowNode[], type: "full" | "flows" | "nodes"): Promise<void> {
      await redeploy(around(changed), type, defaultKey(changed));
      listen();
    },
  };
}

/** The failure that a message ended with. */
export function failure({ caught }: { caught?: Message }): Failure {
  if (!caught) throw new Error("The message did not fail.");
  return caught as Failure;
}

import { EventEmitter, on } from "node:events";
import type { Node, NodeStatus } from "node-red";
import { nodeRedModule } from "../../dev/nodered.js";
import register from "../../nodes/seo-reports.js";
import { type Credentials, type FlowNode, helper, load, type Register, readLog, redeploy } from "./red.js";

export type Message = Record<string, unknown> & { _msgid?: string };

/** How one message ended. */
export interface Outcome {
  outputs: Message[];
  /** The messages to the Catch node. */
  caught?: Message;
  /** How often the node called done, which must be once. */
  ends: number;
}

/** The message that a Catch node receives. */
export interface Failure extends Message {
  error: { message: string; code?: string; stack?: string; source: { id: string } };
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
      candidates?: unknown[];
      body?: unknown;
    };
  };
}

/** The error of a message that must have failed. */
export function failure({ caught }: { caught?: Message }): Failure {
  if (!caught) throw new Error("The message did not fail.");
  return caught as Failure;
}

/** The catalog is not loaded, so a text appears as its key and values. */
const translate = (key: string, values?: object) => (values ? `${key} ${JSON.stringify(values)}` : key);

const types: Register[] = [
  (RED) => register(Object.assign(RED, { _: translate })),
  ...["network/05-tls", "network/06-httpproxy", "sequence/17-split", "sequence/19-batch"].map((name) =>
    nodeRedModule<Register>(`@node-red/nodes/core/${name}.js`),
  ),
];

/** Node-RED treats a node without a position as a config node. */
const place = { z: "tab", x: 0, y: 0 };

/** A service node for `baseUrl`. */
export const service = (id: string, baseUrl: string, settings: object = {}): FlowNode => ({
  id,
  type: "seo-service",
  name: "",
  baseUrl,
  ...settings,
});

/** A node, wired to "out", where `send` collects its output. Other IDs in `wires` become listeners unless the flow has them. */
export const node = (id: string, type: string, settings: object = {}): FlowNode => ({
  id,
  type,
  ...place,
  ...(type.startsWith("seo-") && { service: "service" }),
  wires: [["out"]],
  ...settings,
});

/** A report selected as a fixed value. */
export const fixedReport = { reportId: "7", reportIdType: "str" };

/** A TLS configuration node as the editor saves it; the CA is in its credentials, or `ca` names a file. */
export function tlsConfig(id: string, settings: object = {}): FlowNode {
  const blank = { name: "", cert: "", key: "", ca: "", servername: "", alpnprotocol: "" };
  return { id, type: "tls-config", ...blank, verifyservercert: true, ...settings };
}

/** Adds a Catch, a Complete and a Status node for all nodes, and a listener for each wired ID that does not exist. */
function complete(nodes: FlowNode[]): FlowNode[] {
  const seo = nodes.filter(({ type, z }) => z && type.startsWith("seo-"));
  const all = [
    { id: "tab", type: "tab", label: "" },
    ...nodes,
    node("catch", "catch", { scope: null, wires: [["caught"]] }),
    node("status", "status", { scope: null, wires: [["shown"]] }),
    node("complete", "complete", { scope: seo.map(({ id }) => id), wires: [["completed"]] }),
  ];
  const ids = new Set(all.map(({ id }) => id));
  const wired = new Set(all.flatMap(({ wires }) => (wires as string[][] | undefined)?.flat() ?? []));
  return [...all, ...[...wired].filter((id) => !ids.has(id)).map((id) => node(id, "helper", { wires: [] }))];
}

const defaultKeys = (nodes: FlowNode[]): Credentials =>
  Object.fromEntries(
    nodes.filter(({ type }) => type === "seo-service").map(({ id }) => [id, { apiKey: "key-of-tests" }]),
  );

/** The level of a warning in Node-RED's log. */
const WARN = 30;

let messages = 0;

/** Runs `nodes` in Node-RED. */
export async function startFlow(nodes: FlowNode[], credentials: Credentials = {}) {
  const heard = new Map<string, Message[]>();
  const open = new Map<string, { outcome: Outcome; ended(outcome: Outcome): void }>();
  const news = new EventEmitter().setMaxListeners(0);
  const listening = new WeakSet<Node>();
  const of = (id: string) => heard.get(id) ?? [];

  function hear(id: string, msg: Message): void {
    if (!heard.has(id)) heard.set(id, []);
    heard.get(id)?.push(msg);
    news.emit("heard");
    const sent = open.get(String(msg._msgid));
    if (!sent) return;
    const { outcome, ended } = sent;
    if (id === "out") outcome.outputs.push(msg);
    if (id === "caught") outcome.caught = msg;
    if (id !== "caught" && id !== "completed") return;
    outcome.ends++;
    ended(outcome);
  }

  /** Listens to each listener node once, because a deploy replaces only some of them. */
  function listen(flow: FlowNode[]): void {
    for (const { id, type } of flow) {
      const listener = type === "helper" ? helper.getNode(id) : null;
      if (!listener || listening.has(listener)) continue;
      listening.add(listener);
      listener.on("input", (msg, _send, done) => {
        hear(id, msg as Message);
        done();
      });
    }
  }

  /** Resolves when `found` returns a value, which is tried again after each message. */
  async function until<T>(found: () => T | undefined | false): Promise<T> {
    const event = on(news, "heard");
    for (let it = found(); ; it = found()) {
      if (it) {
        await event.return?.();
        return it;
      }
      await event.next();
    }
  }

  const log = readLog();
  const flow = complete(nodes);
  await load(types, flow, { ...defaultKeys(nodes), ...credentials });
  listen(flow);

  return {
    log: log.lines,
    /** The warnings of its nodes. */
    warnings: () => log.lines.filter(({ level, id }) => level === WARN && id),
    until,
    /** The messages that a listener has received. */
    of,
    /** Resolves with a listener's messages when there are `count`. */
    take: (id: string, count: number) => until(() => of(id).length >= count && of(id)),
    /** Clears all received messages. */
    forget: () => heard.clear(),

    /** The statuses of one node or of all. */
    statuses: (only?: string) =>
      of("shown")
        .map(({ status }) => status as NodeStatus & { source: { id: string } })
        .filter(({ source }) => only === undefined || source.id === only),

    /** Sends a message to a node and resolves when the node is done. */
    send(id: string, msg: Message = {}): Promise<Outcome> {
      const _msgid = `message-${++messages}`;
      return new Promise((ended) => {
        open.set(_msgid, { outcome: { outputs: [], ends: 0 }, ended });
        (helper.getNode(id) as Node).receive(Object.assign(msg, { _msgid }) as never);
      });
    },

    /** Deploys `changed` and resolves when the old nodes are closed and the new ones have started. */
    async deploy(changed: FlowNode[], type: "full" | "flows" | "nodes" = "nodes"): Promise<void> {
      const all = complete(changed);
      await redeploy(all, type, { ...defaultKeys(changed), ...credentials });
      listen(all);
    },

    /** Stops the flow and waits until its nodes are closed. */
    async stop(): Promise<void> {
      await helper.unload();
      log.stop();
    },
  };
}

export type Flow = Awaited<ReturnType<typeof startFlow>>;

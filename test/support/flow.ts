import { EventEmitter, on } from "node:events";
import type { Node, NodeAPI, NodeStatus } from "node-red";
import register from "../../nodes/seo-reports.js";
import { type Credentials, type FlowNode, helper, nodeRedModule, redeploy } from "./red.js";

export type Message = Record<string, unknown>;

/** How a message ended, and what the Catch or the Complete node made of it. */
export interface Ended {
  by: "caught" | "completed";
  msg: Message;
}

type Register = (RED: NodeAPI) => void;

const types: Register[] = [
  // The helper's own stand-in for the catalogue drops the figures.
  (RED) =>
    register(Object.assign(RED, { _: (key: string, figures?: object) => [key, JSON.stringify(figures)].join(" ") })),
  nodeRedModule<Register>("@node-red/nodes/core/sequence/17-split.js"),
  nodeRedModule<Register>("@node-red/nodes/core/sequence/19-batch.js"),
];

let messages = 0;

/** On the one tab; without a place in it a node is taken for a config node. */
const place = { z: "tab", x: 1, y: 1 };

/** The service, asking `baseUrl`. */
export const service = (baseUrl: string, settings: object = {}): FlowNode => ({
  id: "service",
  type: "seo-service",
  name: "",
  baseUrl,
  retries: "0",
  ...settings,
});

/** A node that is wired to the nodes of these ids; an id that the flow does not have is listened to. */
export const node = (id: string, type: string, wires: string[], settings: object = {}): FlowNode => ({
  id,
  type,
  ...place,
  ...(type.startsWith("seo-") && { service: "service" }),
  wires: [wires],
  ...settings,
});

/** Adds a Catch, a Complete and a Status node, and a listener for each id that is wired to and not there. */
function complete(nodes: FlowNode[]): FlowNode[] {
  const all: FlowNode[] = [
    { id: "tab", type: "tab", label: "" },
    ...nodes,
    { id: "catch", type: "catch", ...place, scope: null, wires: [["caught"]] },
    { id: "status", type: "status", ...place, scope: null, wires: [["shown"]] },
    {
      id: "complete",
      type: "complete",
      ...place,
      scope: nodes.filter(({ type, z }) => z && type.startsWith("seo-")).map(({ id }) => id),
      wires: [["completed"]],
    },
  ];
  const ids = new Set(all.map(({ id }) => id));
  const wired = new Set(all.flatMap(({ wires }) => (wires as string[][] | undefined)?.flat() ?? []));
  return [
    ...all,
    ...[...wired].filter((id) => !ids.has(id)).map((id) => ({ id, type: "helper", ...place, wires: [] })),
  ];
}

/** Runs a flow in Node-RED, which knows `more` types. `helper.unload()` ends it. */
export async function run(nodes: FlowNode[], more: Register[] = []) {
  const heard = new Map<string, Message[]>();
  const news = new EventEmitter().setMaxListeners(0);
  const listening = new WeakSet<Node>();
  const credentials = { service: { apiKey: "key-of-tests" } };
  const of = (id: string) => heard.get(id) ?? [];

  function listen(flow: FlowNode[]) {
    for (const { id, type } of flow) {
      const listener = type === "helper" ? helper.getNode(id) : null;
      if (!listener || listening.has(listener)) continue;
      listening.add(listener);
      listener.on("input", (msg, _send, done) => {
        if (!heard.has(id)) heard.set(id, []);
        heard.get(id)?.push(msg as Message);
        news.emit("heard");
        done();
      });
    }
  }

  /** Resolves when `found` finds something in what was heard. */
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

  const flow = complete(nodes);
  await helper.load([...types, ...more], flow, credentials);
  listen(flow);

  return {
    until,
    /** What a listener has heard so far. */
    of,
    /** Forgets what was heard. */
    forget: () => heard.clear(),
    /** The texts of a node's status so far. */
    statuses: (id: string) =>
      of("shown")
        .map(({ status }) => status as NodeStatus & { source: { id: string } })
        .filter(({ source }) => source.id === id)
        .map(({ text }) => String(text)),
    /** What a listener heard, as soon as it is `count` messages. */
    async take(id: string, count: number): Promise<Message[]> {
      return until(() => of(id).length >= count && of(id));
    },
    /** Gives a message to a node. Resolves when a seo node is done with it. */
    async send(id: string, msg: Message = {}): Promise<Ended> {
      const _msgid = `message-${++messages}`;
      (helper.getNode(id) as Node).receive(Object.assign(msg, { _msgid }) as never);
      const end = (by: Ended["by"]) => {
        const found = of(by).find((one) => one._msgid === _msgid);
        return found && { by, msg: found };
      };
      return until(() => end("caught") ?? end("completed"));
    },
    /** Deploys these nodes; only those that differ are made anew. */
    async deploy(changed: FlowNode[], keys: Credentials = credentials): Promise<void> {
      await redeploy(complete(changed), "nodes", keys);
      listen(complete(changed));
    },
  };
}

export type Flow = Awaited<ReturnType<typeof run>>;

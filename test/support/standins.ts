import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Node, NodeAPI, NodeDef } from "node-red";

/** A message to a Debug node or a widget: the property that it shows. */
interface Shown {
  name: string;
  value: unknown;
}

/** The probe's records since it was last reset. */
export interface Seen {
  shown: Shown[];
  /** The number of unfinished messages by node name, without zeros. */
  open: Record<string, number>;
  received: number;
  /** The number of messages sent but not yet received. */
  sent: number;
}

/** The types of @flowfuse/node-red-dashboard that an example uses. The package itself is installed by widgets.test.ts only. */
const widgets = {
  "ui-chart": { icon: "font-awesome/fa-line-chart", outputs: 1 },
  "ui-table": { icon: "font-awesome/fa-table", outputs: 1 },
  "ui-progress": { icon: "font-awesome/fa-percent", outputs: 0 },
  "ui-text": { icon: "font-awesome/fa-i-cursor", outputs: 0 },
  "ui-notification": { icon: "font-awesome/fa-envelope-o", outputs: 1 },
};
/** Those that show nothing of what they receive. */
const others = {
  "ui-button": { icon: "font-awesome/fa-hand-pointer-o", outputs: 1 },
  "ui-template": { icon: "font-awesome/fa-code", outputs: 1 },
};
const configs = ["ui-base", "ui-page", "ui-group", "ui-theme"];

type AnyNode = Node & { complete?: string | null; targetType?: string; _expectedDoneCount: number };
type Message = Record<string, unknown>;

/** `destination` is set when a message is received, `node` when it is done. */
interface Event {
  msg: Message;
  destination: { node: AnyNode };
  node: { node: AnyNode };
}

interface Hooks {
  add(name: string, hook: (event: Event) => void): void;
}

/** A Node-RED module with substitutes for dashboard nodes, and a probe at /probe that reports what the flows did. */
export default function register(RED: NodeAPI & { hooks: Hooks }): void {
  let seen: Seen = { shown: [], open: {}, received: 0, sent: 0 };
  const count = (node: AnyNode, by: number) => {
    // Some core nodes, such as Switch, never call done.
    if (node._expectedDoneCount === 0) return;
    const name = node.name || node.type;
    const open = (seen.open[name] ?? 0) + by;
    if (open === 0) delete seen.open[name];
    else seen.open[name] = open;
  };
  const show = ({ id, type, name = "", complete }: AnyNode, msg: Message) => {
    if (type !== "debug" && !Object.hasOwn(widgets, type)) return;
    const { req: _, res: __, ...whole } = msg;
    const one: Shown = { name, value: undefined };
    seen.shown.push(one);
    const set = (value: unknown) => {
      one.value = RED.util.cloneMessage({ value } as never);
    };
    // A Debug node hides its expression, so it is read from the flow.
    RED.nodes.eachNode((node) => {
      const { complete: expression = "", targetType } = node as { complete?: string; targetType?: string };
      if (node.id !== id || targetType !== "jsonata") return;
      seen.sent++;
      const prepared = RED.util.prepareJSONataExpression(expression, RED.nodes.getNode(id));
      RED.util.evaluateJSONataExpression(prepared, whole, (_, value) => {
        seen.sent--;
        set(value);
      });
    });
    if (complete !== null) set(complete === "true" ? whole : RED.util.getMessageProperty(msg, complete ?? "payload"));
  };

  const onTheWay: Record<string, number> = {};
  RED.hooks.add("preDeliver.probe", ({ destination: { node } }) => {
    seen.sent++;
    onTheWay[node.id] = (onTheWay[node.id] ?? 0) + 1;
  });
  RED.hooks.add("onReceive.probe", ({ msg, destination: { node } }) => {
    seen.received++;
    // An Inject node receives messages that no node sent.
    const sent = onTheWay[node.id] ?? 0;
    if (sent > 0) {
      seen.sent--;
      onTheWay[node.id] = sent - 1;
    }
    count(node, 1);
    show(node, msg);
  });
  RED.hooks.add("onComplete.probe", ({ node: { node } }) => count(node, -1));
  RED.httpAdmin.get("/probe", (_, response) => {
    response.json({ ...seen, shown: seen.shown.map(({ name, value }) => ({ name, ...Object(value) })) });
  });
  RED.httpAdmin.delete("/probe", (_, response) => {
    seen = { ...seen, shown: [], received: 0 };
    response.end();
  });

  for (const type of [...Object.keys({ ...widgets, ...others }), ...configs]) {
    RED.nodes.registerType(type, function (this: Node, config: NodeDef & { payload?: string; topic?: string }) {
      RED.nodes.createNode(this, config);
      this.on("input", (_msg, send, done) => {
        if (type === "ui-button") send({ payload: JSON.parse(config.payload ?? "null"), topic: config.topic ?? "" });
        done();
      });
    });
  }
}

const page = () => {
  const defaults =
    "name: { value: '' }, group: { type: 'ui-group', required: false }, payload: { value: '' }, topic: { value: '' }";
  const flow = Object.entries({ ...widgets, ...others }).map(
    ([type, { icon, outputs }]) =>
      `RED.nodes.registerType("${type}", { category: "dashboard", color: "#a0e6ec", defaults: { ${defaults} }, inputs: 1, outputs: ${outputs}, icon: "${icon}", align: "${type === "ui-notification" ? "right" : "left"}", label() { return this.name; } });`,
  );
  const config = configs.map(
    (type) =>
      `RED.nodes.registerType("${type}", { category: "config", defaults: { name: { value: "" } }, label() { return this.name; } });`,
  );
  const templates = [...Object.keys({ ...widgets, ...others }), ...configs].map(
    (type) => `<script type="text/html" data-template-name="${type}"></script>`,
  );
  return `<script type="text/javascript">${[...flow, ...config].join("\n")}</script>\n${templates.join("\n")}\n`;
};

/** Installs the module in a user directory, from which Node-RED loads it. */
export function installStandIns(userDir: string): void {
  const folder = join(userDir, "nodes");
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "standins.js"),
    `module.exports = require(${JSON.stringify(import.meta.filename)}).default;\n`,
  );
  writeFileSync(join(folder, "standins.html"), page());
}

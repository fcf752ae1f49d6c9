import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Running, root } from "../../dev/nodered.js";
import type { FlowNode } from "./red.js";
import type { Seen } from "./standins.js";

const PATIENCE = 60_000;
const PAUSE = 40;
const folder = join(root, "examples");

/** The examples in the order of their numbers: title and nodes. */
export const examples: [title: string, nodes: FlowNode[]][] = readdirSync(folder)
  .filter((file) => file.endsWith(".json"))
  .sort()
  .map((file): [string, FlowNode[]] => [
    file.replace(/\.json$/, ""),
    JSON.parse(readFileSync(join(folder, file), "utf8")),
  ]);

type Env = Record<string, string | number>;

const envOf = (env: Env) =>
  Object.entries(env).map(([name, value]) => ({
    name,
    value: String(value),
    type: typeof value === "number" ? "num" : "str",
  }));

export interface Deployment {
  /** The environment of the process, as far as the flow is concerned. */
  env: Env;
  /** What is written into the properties of the flow in place of what the example has. */
  tab?: Env;
  /** The service node's properties that differ. */
  service?: Record<string, string>;
  change?: (node: FlowNode) => void;
  /** Which nodes are deployed; all without it. */
  only?: (node: FlowNode) => boolean;
}

/** What debug nodes and widgets were given, by their names. */
export type Outputs = Record<string, unknown[]>;

export type Instance = ReturnType<typeof drive>;

/** A running Node-RED with the probe, one example at a time. */
export function drive(nodeRed: Running) {
  let nodes: FlowNode[] = [];
  let logged = 0;

  async function ask(method: string, path: string, body?: object): Promise<Response> {
    // A connection that is kept may be closed by the server just when the next request is on its way.
    const headers = { connection: "close", "content-type": "application/json", "Node-RED-API-Version": "v2" };
    const answer = await fetch(nodeRed.url + path, { method, headers, body: body ? JSON.stringify(body) : null });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }

  const probe = async () => (await (await ask("GET", "/probe")).json()) as Seen;

  const driver = {
    url: nodeRed.url,

    async deploy(
      number: number,
      { env, tab = {}, service = {}, change = () => {}, only = () => true }: Deployment,
    ): Promise<void> {
      const [, example = []] = examples[number - 1] ?? [];
      nodes = structuredClone(example.filter(only));
      for (const node of nodes) {
        change(node);
        if (node.type === "seo-service") Object.assign(node, service);
        if (node.type === "tab") {
          const kept = (node.env as { name: string }[]).filter(({ name }) => tab[name] === undefined);
          node.env = [...kept, ...envOf(tab)];
        }
        // Nothing runs but what a test starts.
        if (node.type === "inject") Object.assign(node, { once: false, repeat: "", crontab: "" });
      }
      logged = nodeRed.log.length;
      await ask("DELETE", "/probe");
      const globals = { id: "global-env", type: "global-config", env: envOf(env) };
      await ask("POST", "/flows", { flows: [...nodes, globals] });
      // The answer comes before the flows have started.
      await driver.logged("Started flows");
    },

    /** Presses the button of an inject node. */
    async inject(name: string): Promise<void> {
      const node = nodes.find((node) => node.type === "inject" && node.name === name);
      if (!node) throw new Error(`There is no button ${name}.`);
      await ask("POST", `/inject/${node.id}`, {});
    },

    probe,

    /** Waits until every message has come to its end, and tells what was shown since the last time. */
    async outputs(
      ready: (seen: Seen) => boolean = ({ received }) => received > 0,
      { except = [] }: { except?: string[] } = {},
    ): Promise<Outputs> {
      const deadline = Date.now() + PATIENCE;
      let before = -1;
      for (;;) {
        const seen = await probe();
        const open = Object.keys(seen.open).filter((name) => !except.includes(name));
        if (ready(seen) && seen.received === before && seen.sent === 0 && open.length === 0) {
          await ask("DELETE", "/probe");
          const names = new Set(seen.shown.map(({ name }) => name));
          return Object.fromEntries(
            [...names].map((name) => [name, seen.shown.filter((one) => one.name === name).map(({ value }) => value)]),
          );
        }
        if (Date.now() > deadline) throw new Error(`The flow does not come to its end: ${JSON.stringify(seen)}`);
        before = seen.received;
        await sleep(PAUSE);
      }
    },

    /** Waits until a line with this text is logged, by what was deployed last. */
    async logged(text: string): Promise<void> {
      while (!nodeRed.log.slice(logged).some((line) => line.includes(text))) await sleep(PAUSE);
    },

    /** What was logged as an error or a warning since the deploy. */
    complaints: () => nodeRed.log.slice(logged).filter((line) => /\[(error|warn)\]|Uncaught/.test(line)),
  };
  return driver;
}

/** What a stand-in was asked. */
export interface Asked {
  method: string;
  path: string;
  body: string;
}

/** A web server of this machine: a chat's webhook, a static site, a service that refuses. */
export async function startStandIn(
  answer: (asked: Asked) => { status?: number; headers?: Record<string, string>; body?: string },
) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const one = { method: request.method ?? "", path: request.url ?? "", body: await text(request) };
    asked.push(one);
    const { status = 200, headers = {}, body = "" } = answer(one);
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

import type { Node, NodeAPI, NodeDef } from "node-red";
import type { Client } from "../src/client.js";
import type { ClientOptions, ProxyOptions, TlsOptions } from "../src/config.js";
import { type Details, SeoError } from "../src/errors.js";
import { variableIn } from "../src/kinds.js";

/**
 * The config node, as the nodes that use it see it: a client, and never the key. Any node can reach these members, so none
 * of them accepts where the key is sent.
 */
export interface ServiceNode extends Node<{ apiKey?: unknown }> {
  /** Rejects with SEO_CONFIG where the node is incomplete. */
  client(): Promise<Client>;
  /** Another client for the same service, for the edit dialog: it fails soon. Rejects where the draft is another place. */
  probe(draft: Place): Promise<Client>;
}

/** What the editor knows of a service, deployed or not. */
export interface ServiceConfig extends Omit<ClientOptions, "apiKey" | "tls" | "proxy"> {
  tls?: string;
  proxy?: string;
}

/** Where a key is sent. */
type Place = Pick<ServiceConfig, "baseUrl" | "tls" | "proxy">;

/** How long somebody waits at a dialog: seconds, and no retry. */
export const impatient = { timeout: "10", retries: "0" };

interface TlsNode extends Node {
  valid: boolean;
  addTLSOptions(options: TlsOptions): TlsOptions;
}

interface ProxyNode extends Node<{ username?: string; password?: string }> {
  url: string;
  noproxy?: string[];
}

const incomplete = (sentence: string, details: Details) => new SeoError("SEO_CONFIG", sentence, details);

/** Node-RED leaves the name of a variable that is not set as it stands. */
export function resolved(value: unknown, what: string): unknown {
  const name = variableIn(String(value).trim());
  if (name)
    throw incomplete(`The environment variable ${name} (${what}) is not set.`, { stage: "variable", values: { name } });
  return value;
}

function chosen<T extends Node>(RED: NodeAPI, id: string | undefined, what: string): T | undefined {
  if (!id) return undefined;
  const node = RED.nodes.getNode(id) as T | null | undefined;
  if (!node) throw incomplete(`The ${what} configuration node is missing or disabled.`, { stage: "node" });
  return node;
}

function proxyOptions(node: ProxyNode | undefined): ProxyOptions | undefined {
  if (!node) return undefined;
  const { username = "", password = "" } = node.credentials ?? {};
  const url = String(node.url);
  const except = node.noproxy ?? [];
  if (!username || !URL.canParse(url)) return { url, except };
  const whole = Object.assign(new URL(url), {
    username: encodeURIComponent(username),
    password: encodeURIComponent(password),
  });
  return { url: whole.href, except };
}

/** Makes the client that a config node describes. Its modules are loaded here, with the first message. */
export async function openClient(RED: NodeAPI, config: ServiceConfig, apiKey: unknown): Promise<Client> {
  const baseUrl = resolved(config.baseUrl, "base URL");
  const key = resolved(apiKey, "API key");
  const tlsNode = chosen<TlsNode>(RED, config.tls, "TLS");
  if (tlsNode && !tlsNode.valid)
    throw incomplete("The TLS configuration is not valid. See the Node-RED log.", { stage: "node" });
  const tls = tlsNode?.addTLSOptions({});
  const proxy = proxyOptions(chosen<ProxyNode>(RED, config.proxy, "proxy"));
  const { createClient } = await import("../src/client.js");
  return createClient({ ...config, baseUrl, apiKey: key, tls, proxy });
}

const isSamePlace = (one: Place, other: Place) =>
  String(one.baseUrl).trim() === String(other.baseUrl).trim() &&
  (one.tls ?? "") === (other.tls ?? "") &&
  (one.proxy ?? "") === (other.proxy ?? "");

export function registerService(RED: NodeAPI): void {
  function Service(this: ServiceNode, config: NodeDef & ServiceConfig) {
    RED.nodes.createNode(this, config);
    const { apiKey } = this.credentials ?? {};
    // Only the client keeps the key: a node's object can be reached, and printed, by any other node.
    this.credentials = {};
    const own = { ...config };
    let client: Promise<Client> | undefined;
    this.client = () => {
      client ??= openClient(RED, own, apiKey);
      return client;
    };
    this.probe = async (draft) => {
      if (!isSamePlace(own, draft))
        throw incomplete(
          "The base URL, TLS configuration or proxy has changed since the API key was deployed. Enter the key again, or deploy first.",
          { stage: "stored" },
        );
      return openClient(RED, { ...own, ...impatient }, apiKey);
    };
    this.on("close", (done: () => void) => {
      Promise.resolve(client)
        .then((open) => open?.close())
        .then(done, () => done());
    });
  }
  RED.nodes.registerType<ServiceNode, NodeDef & ServiceConfig, object, { apiKey?: unknown }>("seo-service", Service, {
    credentials: { apiKey: { type: "password" } },
  });
}

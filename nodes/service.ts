import type { Node, NodeAPI, NodeDef } from "node-red";
import type { Client } from "../src/client.js";
import { SeoError } from "../src/errors.js";
import type { TlsOptions } from "../src/http/dispatcher.js";
import type { ProxyOptions } from "../src/http/proxy.js";
import { variableIn } from "../src/kinds.js";

/** The config node, as the nodes that use it see it: the client, and never the key. */
export interface ServiceNode extends Node<{ apiKey?: unknown }> {
  /** What is deployed. */
  settings: ServiceConfig;
  /** Rejects with SEO_CONFIG where the node is incomplete. */
  client(): Promise<Client>;
  /** Another client for the same place with the same key, of which some settings differ. */
  open(settings: Record<string, unknown>): Promise<Client>;
}

/** What the editor knows of a service, deployed or not. */
export interface ServiceConfig {
  baseUrl?: unknown;
  tls?: string;
  proxy?: string;
  [setting: string]: unknown;
}

interface TlsNode extends Node {
  valid: boolean;
  addTLSOptions(options: TlsOptions): TlsOptions;
}

interface ProxyNode extends Node<{ username?: string; password?: string }> {
  url: string;
  noproxy?: string[];
}

const incomplete = (sentence: string) => new SeoError("SEO_CONFIG", sentence, { stage: "config" });

/** Node-RED leaves the name of a variable that is not set as it stands. */
function resolved(value: unknown, what: string): unknown {
  const name = variableIn(String(value ?? "").trim());
  if (name) throw incomplete(`The environment variable ${name} (${what}) is not set.`);
  return value;
}

function chosen<T extends Node>(RED: NodeAPI, id: string | undefined, what: string): T | undefined {
  if (!id) return undefined;
  const node = RED.nodes.getNode(id) as T | null | undefined;
  if (!node) throw incomplete(`The ${what} configuration node is missing or disabled.`);
  return node;
}

function proxyOptions(node: ProxyNode | undefined): ProxyOptions | undefined {
  if (!node) return undefined;
  if (!URL.canParse(node.url)) throw incomplete("The proxy URL is not valid.");
  const url = new URL(node.url);
  const { username = "", password = "" } = node.credentials ?? {};
  if (username) Object.assign(url, { username: encodeURIComponent(username), password: encodeURIComponent(password) });
  return { url: url.href, except: node.noproxy ?? [] };
}

/** Makes the client that a config node describes. What it needs is loaded here, with the first message and not before. */
export async function openClient(RED: NodeAPI, config: ServiceConfig, apiKey: unknown): Promise<Client> {
  const baseUrl = resolved(config.baseUrl, "base URL");
  const key = resolved(apiKey, "API key");
  const tlsNode = chosen<TlsNode>(RED, config.tls, "TLS");
  if (tlsNode && !tlsNode.valid) throw incomplete("The TLS configuration is not valid. See the Node-RED log.");
  const tls = tlsNode?.addTLSOptions({});
  const proxy = proxyOptions(chosen<ProxyNode>(RED, config.proxy, "proxy"));
  const { createClient } = await import("../src/client.js");
  return createClient({ ...config, baseUrl, apiKey: key, tls, proxy });
}

export function registerService(RED: NodeAPI): void {
  function Service(this: ServiceNode, config: NodeDef & ServiceConfig) {
    RED.nodes.createNode(this, config);
    const { apiKey } = this.credentials ?? {};
    // Only the client keeps the key: a node's object can be reached, and printed, by any other node.
    this.credentials = {};
    this.settings = config;
    this.open = (settings) => openClient(RED, { ...config, ...settings }, apiKey);
    let client: Promise<Client> | undefined;
    this.client = () => {
      client ??= this.open({});
      return client;
    };
    this.on("close", (done: () => void) => {
      (client ?? Promise.resolve(undefined)).then((open) => open?.close()).then(done, () => done());
    });
  }
  // The typings know no members that a constructor adds to its node.
  RED.nodes.registerType("seo-service", Service as never, { credentials: { apiKey: { type: "password" } } });
}

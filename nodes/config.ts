import type { Node, NodeAPI, NodeDef } from "node-red";
import type { ProxyOptions, TlsOptions } from "../src/config.js";
import { type Details, SeoError } from "../src/errors.js";
import type { Json } from "../src/json.js";
import { variableIn } from "../src/kinds.js";
import { type ConfigType, configNodes, type Field } from "../src/operations.js";
import { parseUrl } from "../src/url.js";

/** The editor shows and sends this instead of a stored credential. */
const PLACEHOLDER = "__PWRD__";

/**
 * The deployed settings, by config node. They are kept here because any other node can reach a node's object, and print it.
 * For the same reason, no member of a config node accepts where its credential is sent.
 */
const deployed = new WeakMap<Node, { type: ConfigType; config: Json; secret: unknown }>();

interface TlsNode extends Node {
  valid: boolean;
  addTLSOptions(options: TlsOptions): TlsOptions;
}

interface ProxyNode extends Node<{ username?: string; password?: string }> {
  url: string;
  noproxy?: string[];
}

const configError = (sentence: string, details?: Details) => new SeoError("SEO_CONFIG", sentence, details);

/** Node-RED leaves the name of a variable that is not set as it stands. */
export function resolved(value: unknown, what: string): unknown {
  const name = variableIn(String(value ?? "").trim());
  if (name)
    throw configError(`The environment variable ${name} (${what}) is not set.`, {
      stage: "variable",
      values: { name },
    });
  return value;
}

/** A config node that a property refers to; undefined if the property is blank. `what` is its label. */
export function chosen<T extends Node>(RED: NodeAPI, id: unknown, what: string): T | undefined {
  if (!id) return undefined;
  const node = RED.nodes.getNode(String(id)) as T | null | undefined;
  if (!node) throw configError(`The ${what} configuration node is missing or disabled.`, { stage: "node" });
  return node;
}

function tlsOptions(node: TlsNode): TlsOptions {
  if (!node.valid) throw configError("The TLS configuration is not valid. See the Node-RED log.", { stage: "node" });
  return node.addTLSOptions({});
}

function proxyOptions(node: ProxyNode): ProxyOptions {
  const { username = "", password = "" } = node.credentials ?? {};
  const url = String(node.url);
  const except = node.noproxy ?? [];
  const whole = parseUrl(url);
  if (!username || !whole) return { url, except };
  Object.assign(whole, { username: encodeURIComponent(username), password: encodeURIComponent(password) });
  return { url: whole.href, except };
}

/** The options that a config node of another type stands for. */
const options: Record<string, (node: never) => unknown> = { "tls-config": tlsOptions, "http proxy": proxyOptions };

/** A label inside a sentence: "base URL", but "API key". */
const inSentence = (label: string) => label.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());

function valueFor(RED: NodeAPI, { node, label }: Field, value: unknown): unknown {
  const what = inSentence(label);
  if (node === undefined) return resolved(value, what);
  const found = chosen(RED, value, what);
  return found && options[node]?.(found as never);
}

const secretOf = (type: ConfigType) => Object.keys(configNodes[type].credential)[0] ?? "";

/** The settings and the credential of a config node, without variables and references. Throws SEO_CONFIG. */
function read(RED: NodeAPI, type: ConfigType, config: Json, secret: unknown): Json {
  const { settings, credential } = configNodes[type];
  const given: Json = { ...config, [secretOf(type)]: secret };
  const fields = Object.entries({ ...settings, ...credential });
  return Object.fromEntries(fields.map(([name, field]) => [name, valueFor(RED, field, given[name])]));
}

/** The function of a config node, and how it works. */
interface Opening<Opened> {
  /** The name of the node's function that opens it, once. */
  member: string;
  /** The settings must not become members of the node. */
  open(settings: Json): Promise<Opened>;
  close?(opened: Opened): Promise<void>;
}

/** Registers a config node. An error of its configuration names its type. */
export function registerConfig<Opened>(
  RED: NodeAPI,
  type: ConfigType,
  { member, open, close = async () => {} }: Opening<Opened>,
): void {
  const name = secretOf(type);
  function Config(this: Node<Json>, config: NodeDef & Json) {
    RED.nodes.createNode(this, config);
    const own = { type, config: { ...config }, secret: this.credentials?.[name] };
    this.credentials = {};
    deployed.set(this, own);
    let opened: Promise<Opened> | undefined;
    const start = async () => open(read(RED, type, own.config, own.secret));
    const once = () => {
      opened ??= start().catch((error) => {
        throw error instanceof SeoError && error.code === "SEO_CONFIG" ? error.with({ place: type }) : error;
      });
      return opened;
    };
    Object.assign(this, { [member]: once });
    this.on("close", (done: () => void) => {
      const closed = opened?.then(close) ?? Promise.resolve();
      closed.then(done, () => done());
    });
  }
  RED.nodes.registerType<Node<Json>, NodeDef & Json, object, Json>(type, Config, {
    credentials: { [name]: { type: "password" } },
  });
}

/**
 * Reads the settings in an edit dialog, deployed or not. The deployed credential is used only with the settings that say
 * where it is sent as they were deployed. Throws SEO_CONFIG.
 */
export function readDraft(RED: NodeAPI, type: ConfigType, draft: Json): Json {
  const node = RED.nodes.getNode(String(draft.id ?? "")) as Node | null;
  /** Resolves an environment variable as a deploy would. */
  const expand = (value: unknown): string => {
    const text = String(value ?? "");
    const name = variableIn(text);
    return (name && RED.util.evaluateNodeProperty(name, "env", node ?? ({} as never), {})) || text;
  };
  const { place, settings } = configNodes[type];
  const config: Json = Object.fromEntries(Object.keys(settings).map((name) => [name, expand(draft[name])]));
  const secret = draft[secretOf(type)];
  if (secret !== undefined && secret !== PLACEHOLDER) return read(RED, type, config, expand(secret));
  const own = node ? deployed.get(node) : undefined;
  const same = (name: string) => String(own?.config[name] ?? "").trim() === String(config[name]).trim();
  if (own?.type !== type || !place.every(same))
    throw configError("The credential was not deployed with these settings.", { stage: "stored" });
  return read(RED, type, config, own.secret);
}

import type { Node, NodeAPI, NodeDef } from "node-red";
import { invalidParams, sentenceOf } from "../src/errors.js";
import { type NodeType, presetOf } from "../src/operations.js";

export type Message = Record<string, unknown>;

export type Config = NodeDef & Record<string, unknown>;

/** The parameters of one message, and where each came from. */
export interface Input {
  input: Record<string, unknown>;
  from: Record<string, string>;
}

/** The message of a thrown value, which can be anything: JSONata throws objects that are not errors. */
export function thrownText(cause: unknown): string {
  try {
    const { message } = Object(cause) as { message?: unknown };
    if (typeof message === "string") return message;
  } catch {}
  return typeof cause;
}

type Read = (msg: Message) => unknown;

/** How the sources other than a fixed value are named in a sentence. */
const names: Record<string, (value: string) => string> = {
  msg: (value) => `msg.${value}`,
  flow: (value) => `flow.${value}`,
  global: (value) => `global.${value}`,
  env: (value) => `the environment variable ${value}`,
  jsonata: () => "the JSONata expression",
};

/** Reads `msg.a.b`, undefined where `a` is missing. The methods of a text or an array (`"x".search`) are no values. */
function readMessage(RED: NodeAPI, expression: string): Read {
  const path = RED.util.normalisePropertyExpression(expression.replace(/^msg\./, "")) as string[];
  const computed = path.some(Array.isArray);
  return (msg) => {
    let value: unknown = computed ? RED.util.getMessageProperty(msg, expression) : msg;
    if (!computed) for (const key of path) value = (value as Message | null | undefined)?.[key];
    return typeof value === "function" ? undefined : value;
  };
}

/** Calls a function of Node-RED's that has a callback, and can also throw. */
export const promised = (call: (done: (error: unknown, value?: unknown) => void) => void): Promise<unknown> =>
  new Promise((resolve, reject) => call((error, value) => (error ? reject(error) : resolve(value))));

function reader(RED: NodeAPI, node: Node, type: string, value: string): Read {
  if (type === "str" || value === "") return () => value;
  if (type === "msg") return readMessage(RED, value);
  if (type === "jsonata") {
    // Parsing takes ten times as long as evaluating, so it is done once.
    const expression = RED.util.prepareJSONataExpression(value, node);
    return (msg) => promised((done) => RED.util.evaluateJSONataExpression(expression, msg, done));
  }
  return (msg) => promised((done) => RED.util.evaluateNodeProperty(value, type, node, msg, done));
}

/** Makes the function that reads a message's parameters as the edit dialog says. It throws SEO_INPUT for all that cannot be read. */
export function createSources(RED: NodeAPI, node: Node, row: NodeType, config: Record<string, unknown>) {
  const from: Record<string, string> = {};
  const reads = Object.keys(row.params).map((param) => {
    const value = String(config[param] ?? presetOf(row, param));
    const type = String(config[`${param}Type`] ?? (config[param] === undefined ? "msg" : "str"));
    from[param] = names[type]?.(value) ?? `the node's ${param}`;
    // The reason can quote the value.
    const reason = (cause: unknown) => (row.params[param]?.kind === "secret" ? "." : `: ${thrownText(cause)}`);
    const refuse = (cause: unknown) => sentenceOf(`Could not read ${param} from ${from[param]}${reason(cause)}`);
    let found: Read | undefined;
    // With the first message, of which it is an error if the value cannot be parsed.
    const read: Read = (msg) => {
      found ??= reader(RED, node, type, value);
      return found(msg);
    };
    return { param, read, refuse };
  });

  return (msg: Message): Input | Promise<Input> => {
    const input: Record<string, unknown> = {};
    const unreadable: Record<string, string> = {};
    const pending: Promise<void>[] = [];
    const end = () => {
      if (Object.keys(unreadable).length > 0) throw invalidParams(unreadable);
      return { input, from };
    };
    const set = (param: string, value: unknown) => {
      if (value !== undefined) input[param] = value;
    };
    const fail = ({ param, refuse }: (typeof reads)[number], cause: unknown) => {
      unreadable[param] = refuse(cause);
    };
    for (const one of reads) {
      try {
        const value = one.read(msg);
        if (!(value instanceof Promise)) set(one.param, value);
        else pending.push(value.then((it) => set(one.param, it)).catch((cause) => fail(one, cause)));
      } catch (cause) {
        fail(one, cause);
      }
    }
    return pending.length > 0 ? Promise.all(pending).then(end) : end();
  };
}

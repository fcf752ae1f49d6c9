import type { Node, NodeAPI } from "node-red";
import { SeoError } from "../src/errors.js";
import type { NodeType } from "../src/operations.js";

export type Message = Record<string, unknown>;

/** The parameters of one message, and where each came from. */
export interface Input {
  input: Record<string, unknown>;
  from: Record<string, string>;
}

/** What a thrown value says; it may be anything. JSONata throws objects that are no errors. */
export function reasonOf(cause: unknown): string {
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

/** What a new node has for a parameter: the payload for the main one, and its property of that name for the others. */
const preset = ({ main, params }: NodeType, param: string) =>
  param === main ? "payload" : `payload.${params[param]?.wire ?? param}`;

/** Reads `msg.a.b`, undefined where `a` is missing. Of a text's and an array's own functions (`"x".search`) none is a value. */
function readMessage(RED: NodeAPI, expression: string): Read {
  const path: unknown[] = RED.util.normalisePropertyExpression(expression.replace(/^msg\./, ""));
  const read: Read = path.some(Array.isArray)
    ? (msg) => RED.util.getMessageProperty(msg, expression)
    : (msg) =>
        path.reduce(
          (value: unknown, key) => (value as Record<PropertyKey, unknown> | null | undefined)?.[key as string],
          msg,
        );
  return (msg) => {
    const value = read(msg);
    return typeof value === "function" ? undefined : value;
  };
}

function reader(RED: NodeAPI, node: Node, type: string, value: string): Read {
  if (type === "str" || value === "") return () => value;
  if (type === "msg") return readMessage(RED, value);
  return (msg) =>
    new Promise((resolve, reject) => {
      RED.util.evaluateNodeProperty(value, type as "flow", node, msg as never, (error, result) =>
        error ? reject(error) : resolve(result),
      );
    });
}

/** Makes the function that reads a message's parameters as the node's dialog says. Throws SEO_INPUT for one that cannot be read. */
export function createSources(RED: NodeAPI, node: Node, row: NodeType, config: Record<string, unknown>) {
  const from: Record<string, string> = {};
  const reads = Object.keys(row.params).map((param) => {
    const value = String(config[param] ?? preset(row, param));
    const type = String(config[`${param}Type`] ?? (config[param] === undefined ? "msg" : "str"));
    from[param] = names[type]?.(value) ?? `the node's ${param}`;
    // The reason may quote the value.
    const reason = (cause: unknown) => (row.params[param]?.kind === "secret" ? "" : `: ${reasonOf(cause)}`);
    const refuse = (cause: unknown) =>
      new SeoError("SEO_INPUT", `Could not read ${param} from ${from[param]}${reason(cause)}`);
    try {
      const read = reader(RED, node, type, value);
      return { param, read, refuse };
    } catch (cause) {
      const read: Read = () => {
        throw cause;
      };
      return { param, read, refuse };
    }
  });
  return async (msg: Message): Promise<Input> => {
    const input: Record<string, unknown> = {};
    for (const { param, read, refuse } of reads) {
      try {
        const value = read(msg);
        input[param] = value instanceof Promise ? await value : value;
      } catch (cause) {
        throw refuse(cause);
      }
    }
    return { input, from };
  };
}

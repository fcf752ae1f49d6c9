import { type Kind, kindOf } from "../../../src/kinds.js";
import type { Param } from "../../../src/operations.js";

type Facts = "required" | "values" | "default" | "min" | "pattern" | "shown" | "example" | "when" | "suggest" | "fold";

/** One field of a dialog, as the browser knows it: its texts are in the catalogue. */
export interface Row extends Partial<Pick<Param, Facts>> {
  kind: Kind;
  /** Where the catalogue has its texts. */
  key: string;
  /** What a new node has. */
  value: string;
  /** It comes from where the user says (a TypedInput). */
  source?: true;
  credential?: true;
}

/** A node type, as the browser knows it. */
export interface FormData {
  main?: string | undefined;
  effects?: string[] | undefined;
  rows: Record<string, Row>;
}

// biome-ignore lint/suspicious/noExplicitAny: the editor's globals and nodes have no types that fit Node-RED 4 and 5
export type Any = any;
export type Text = (key: string, values?: Record<string, string | number>) => string;

/** What the fields of a node hold: in its dialog while that is open, else in the node. */
export function createState($: Any, forms: Record<string, FormData>) {
  const opened = new WeakMap<object, Any>();
  const rows = (node: Any): Record<string, Row> => forms[node.type]?.rows ?? {};
  const id = (node: Any, name: string) => `#node-${node._def.category === "config" ? "config-" : ""}input-${name}`;
  const current = (node: Any, name: string): string | undefined =>
    (opened.get(node)?.isConnected ? $(id(node, name)).val() : undefined) ?? node[name];
  /** The value of a config node's select that stands for none. */
  const chosen = (node: Any, name: string) => String(current(node, name) ?? "").replace("_ADD_", "");
  const source = (node: Any, name: string): string =>
    (rows(node)[name]?.source && current(node, `${name}Type`)) || "str";
  /** A fixed value as it is sent, or nothing. */
  const fixed = (node: Any, name: string): string | undefined => {
    const row = rows(node)[name];
    const value = current(node, name);
    return row && value && source(node, name) === "str" ? kindOf(row.kind).clean(value, row) : undefined;
  };
  /** It is as in a new node. */
  const fresh = (node: Any, name: string) =>
    [name, `${name}Type`].every((key) => {
      const { value } = node._def.defaults[key] ?? {};
      return value === undefined || current(node, key) === undefined || chosen(node, key) === value;
    });

  return { forms, opened, rows, id, current, chosen, source, fixed, fresh };
}

export type State = ReturnType<typeof createState>;

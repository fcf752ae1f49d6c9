import { kindOf } from "../../../src/kinds.js";
import type { Param } from "../../../src/operations.js";

/** One field of an edit dialog, without its texts. */
export interface Row extends Omit<Param, "label" | "help"> {
  /** The key of its texts in the catalog. */
  key: string;
  /** The value in a new node. */
  value: string;
  /** The user chooses the source of the value (TypedInput); the source in a new node. */
  source?: "msg" | "str";
  /** The property of msg that a node without this one reads; blank for none. */
  reads?: string;
  credential?: true;
}

/** The facts about a node type that the browser needs. */
export interface Form {
  main?: string | undefined;
  effects?: string[] | undefined;
  rows: Record<string, Row>;
}

// biome-ignore lint/suspicious/noExplicitAny: the editor's globals and nodes have no types that fit Node-RED 4 and 5
export type Any = any;
export type Text = (key: string, values?: Record<string, string | number>) => string;

/** The editor's placeholder for a stored credential. */
export const STORED = "__PWRD__";

/** Reads the fields of a node: from its edit dialog if that is open, else from the node. */
export function createState($: Any, forms: Record<string, Form>) {
  const opened = new WeakMap<object, Any>();
  const rows = (node: Any): Record<string, Row> => forms[node.type]?.rows ?? {};
  const id = (node: Any, name: string) => `#node-${node._def.category === "config" ? "config-" : ""}input-${name}`;
  const current = (node: Any, name: string): string | undefined =>
    (opened.get(node)?.isConnected ? $(id(node, name)).val() : undefined) ?? node[name];
  /** A field's value, without the editor's placeholder for no config node. */
  const chosen = (node: Any, name: string) => String(current(node, name) ?? "").replace("_ADD_", "");
  /** The source of a value. A node without the property, because it is of an older version, can read it from the message. */
  const source = (node: Any, name: string): string => {
    const row = rows(node)[name];
    if (!row?.source) return "str";
    return current(node, `${name}Type`) || (current(node, name) === undefined && row.reads ? "msg" : "str");
  };
  /** A fixed value as it is sent. */
  const fixed = (node: Any, name: string): string | undefined => {
    const row = rows(node)[name];
    const value = current(node, name);
    return row && value && source(node, name) === "str" ? kindOf(row.kind).clean(value, row) : undefined;
  };
  /** True if a field has the value of a new node. */
  const isNew = (node: Any, name: string) =>
    [name, `${name}Type`].every((key) => {
      const { value } = node._def.defaults[key] ?? {};
      return value === undefined || current(node, key) === undefined || chosen(node, key) === value;
    });

  /** True if the edit dialog shows a field. What an option reads from elsewhere may be any value. */
  const visible = (node: Any, name: string) =>
    Object.entries(rows(node)[name]?.shown ?? {}).every(
      ([option, values]) => source(node, option) !== "str" || values.includes(chosen(node, option)),
    );

  return { forms, opened, rows, id, current, chosen, source, fixed, isNew, visible };
}

export type State = ReturnType<typeof createState>;

/** Node-RED's editor, jQuery, the texts of these nodes, and the state of their dialogs. */
export interface Editor {
  RED: Any;
  $: Any;
  text: Text;
  state: State;
}

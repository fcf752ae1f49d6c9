import { codes } from "../../src/errors.js";
import {
  type ConfigNode,
  type ConfigType,
  configNodes,
  type Field,
  type NodeType,
  nodeTypes,
  type Operation,
  presetOf,
} from "../../src/operations.js";
import type { Row } from "./browser/state.js";
import { phrases, stages } from "./phrases.js";

export const PACKAGE = "@seo-reports/node-red";
export const SET = "seo-reports";
export const CATEGORY = "SEO reports";

/** A node type and every field of its edit dialog, in order. */
export type Form = Partial<Operation> &
  Partial<Pick<ConfigNode, "details">> &
  Pick<NodeType, "title" | "help"> & { rows: Record<string, Field & Row> };
export interface Texts {
  [key: string]: string | Texts;
}

const name: Field = { kind: "text", label: "Name", help: "The label in the workspace. Blank: a default label." };
const account: Field = {
  kind: "node",
  node: "seo-service",
  label: "Service",
  required: true,
  help: "The SEO service to use.",
};
/** Builds the form of every node type and the English catalog from the table. */
export function build(table: Record<string, NodeType> = nodeTypes) {
  const node: Record<string, Texts> = {};
  const shared: Record<string, Texts> = {};
  const status: Texts = { ...phrases.status };

  /** Adds a field's texts to the catalog and returns their key. Fields of the same name share texts if these are equal. */
  const keyFor = (type: string, name: string, { label, help, values = {} }: Field): string => {
    const known = (shared[name]?.values ?? {}) as Texts;
    const alike = Object.entries(values).every(([value, text]) => (known[value] ?? text) === text);
    if (shared[name] && !(shared[name].label === label && shared[name].help === help && alike)) {
      node[type] = { ...node[type], field: { ...(node[type]?.field as Texts), [name]: { label, help, values } } };
      return `node.${type}.field.${name}`;
    }
    shared[name] = { label, help, values: { ...known, ...values } };
    return `field.${name}`;
  };
  const form = (
    type: string,
    row: Omit<Form, "rows">,
    ...parts: Record<string, Field & Partial<Row>>[]
  ): [string, Form] => {
    const outputs = Object.fromEntries((row.outputs ?? []).map(({ label }, index) => [index, label]));
    node[type] = {
      title: row.title,
      help: row.help,
      ...(row.returns && { returns: row.returns }),
      ...(row.outputs && { outputs }),
      ...(row.details && { details: row.details, stage: stages[type as ConfigType] }),
    };
    const { done = "" } = row;
    if (done && (status[done] ?? done) !== done) throw new Error(`There is another status “${done}” already.`);
    if (done) status[done] = done;
    const rows = Object.entries(Object.assign({}, ...parts) as (typeof parts)[number]).map(([name, field]) => [
      name,
      { value: field.initial ?? field.default ?? "", ...field, key: keyFor(type, name, field) },
    ]);
    return [type, { ...row, rows: Object.fromEntries(rows) }];
  };
  const mark = <F extends Field>(fields: Record<string, F>, more: (field: F, name: string) => Partial<Row>) =>
    Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, { ...field, ...more(field, name) }]));

  const types = Object.fromEntries([
    ...Object.entries<ConfigNode>(configNodes).map(([type, { settings, credential, ...row }]) =>
      form(
        type,
        row,
        { name },
        settings,
        mark(credential, () => ({ credential: true })),
      ),
    ),
    ...Object.entries(table).map(([type, row]) =>
      form(
        type,
        row,
        { name, service: account },
        mark(row.params, ({ initial }, name) => {
          const reads = presetOf(row, name);
          return initial === undefined
            ? { source: "msg", value: reads, reads }
            : { source: "str", value: initial, reads };
        }),
        row.options,
      ),
    ),
  ]);
  const palette = { label: { [CATEGORY.replace(" ", "_")]: CATEGORY } };
  const error = Object.fromEntries(Object.entries(codes).map(([code, { status }]) => [code, { status }]));
  const english: Texts = { [SET]: { ...phrases, node, field: shared, status, error }, palette };
  return { types, english };
}

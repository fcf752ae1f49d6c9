import { build } from "../../nodes/editor/forms.js";
import type { Held } from "./driver.js";

/** Everything that the dialogs know, by node type. */
export const { types, english } = build();
export type Fields = (typeof types)[string]["rows"];
export const nodeTypes = Object.keys(types).filter((type) => type !== "seo-service");
export const fieldsOf = (type: string): Fields => types[type]?.rows ?? {};
export type Row = Fields[string];

const countOf = ({ min = 0 }: Row, round: number) => String(min + round);

/** Where a parameter may come from, each with what to write for it. */
const sources: Record<string, (name: string, row: Row, round: number) => string> = {
  str: (name, row, round) => {
    if (row.kind === "count") return countOf(row, round);
    const choices = Object.keys(row.values ?? {});
    return choices[round % choices.length] ?? `${row.example ?? name}-${round}`.replaceAll("/", "");
  },
  msg: (name, _, round) => `payload.${name}_${round}`,
  flow: (name) => `seo.${name}`,
  global: (name) => `seo["${name}"]`,
  env: (name) => `SEO_${name.toUpperCase()}`,
  jsonata: (name, _, round) => `payload.${name} & "<${round}>"`,
};
export const ROUNDS = Object.keys(sources).length;

const plain: Partial<Record<Row["kind"], (row: Row, round: number) => string>> = {
  choice: ({ values = {} }, round) => Object.keys(values)[round % Object.keys(values).length] ?? "",
  count: countOf,
  store: () => "file",
  text: ({ label, example }, round) => example ?? `${label} ${round}`,
};

/** What is written into a dialog's fields in a round: over all rounds, a parameter gets every source. */
export function fillingOf(type: string, round: number): Record<string, Held> {
  const one = ([name, row]: [string, Row]): [string, Held][] => {
    const [source, write] = Object.entries(sources)[(name.length + round) % ROUNDS] ?? [];
    if (row.source && source && write) return [[name, { value: write(name, row, round), source }]];
    const value = plain[row.kind]?.(row, round);
    return value === undefined ? [] : [[name, { value }]];
  };
  return Object.fromEntries(Object.entries(fieldsOf(type)).flatMap(one));
}

/** How a dialog shows it: a closed list by name. */
export function shownAs({ values = {}, source }: Row, held: Held): Held {
  const label = values[held.value];
  if (!source || held.source !== "str" || label === undefined) return held;
  return { ...held, value: label.toLowerCase() === held.value.toLowerCase() ? label : `${label} (${held.value})` };
}

/** The value of a new node, and of a node of an older version that lacks it. */
export const preset = ({ value, source }: Row): Held => (source ? { value, source: "msg" } : { value });

/** A fixed value that its kind refuses. A closed list leaves no room for one. */
export const bad: Partial<Record<Row["kind"], string>> = {
  text: "a\u0007b",
  secret: "a\u0007b",
  segment: "a/b",
  count: "-1",
};
/** What other sources refuse. */
export const unreadable: Held[] = [
  { source: "msg", value: "payload[" },
  { source: "flow", value: "a b" },
  { source: "global", value: "a.[" },
  { source: "jsonata", value: "$sum((" },
];

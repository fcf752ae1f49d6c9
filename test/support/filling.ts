import { build, SET, type Texts } from "../../nodes/editor/forms.js";
import { phrases } from "../../nodes/editor/phrases.js";
import { configNodes } from "../../src/operations.js";
import type { Held } from "./driver.js";

/** The edit dialogs by node type, and their English texts. */
const { types, english } = build();

export { types };
export type Fields = (typeof types)[string]["rows"];
export const nodeTypes = Object.keys(types).filter((type) => !Object.hasOwn(configNodes, type));
export const fieldsOf = (type: string): Fields => types[type]?.rows ?? {};
export type Row = Fields[string];

const countOf = ({ min = 0 }: Row, round: number) => String(min + round);

/** A text of a catalog, or the English one if it is missing there. */
export function tell(path: string, texts: Texts = english): string {
  const found = path.split(".").reduce<string | Texts | undefined>((part, key) => Object(part)[key], texts[SET]);
  return found === undefined ? tell(path) : String(found);
}

/** The sources of a parameter, each with a value to fill in. */
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
  property: () => "row.report",
  text: ({ label, example }, round) => example ?? `${label} ${round}`,
};

/** The values for an edit dialog's fields in a round; over all rounds, each parameter uses every source. */
export function fillingOf(type: string, round: number): Record<string, Held> {
  const one = ([name, row]: [string, Row]): [string, Held][] => {
    const [source, write] = Object.entries(sources)[(name.length + round) % ROUNDS] ?? [];
    if (row.source && source && write) return [[name, { value: write(name, row, round), source }]];
    const value = plain[row.kind]?.(row, round);
    return value === undefined ? [] : [[name, { value }]];
  };
  return Object.fromEntries(Object.entries(fieldsOf(type)).flatMap(one));
}

/** A value as the edit dialog shows it: a choice by its label. */
export function shownAs({ values, source }: Row, held: Held): Held {
  if (source && values && held.value === "") return { ...held, value: phrases.dialog.unsent };
  const label = values?.[held.value];
  if (!source || held.source !== "str" || label === undefined) return held;
  return { ...held, value: label.toLowerCase() === held.value.toLowerCase() ? label : `${label} (${held.value})` };
}

/** The values that apply to a node of an older version that lacks a property. */
export const preset = ({ value, source, reads }: Row): Held =>
  reads ? { value: reads, source: "msg" } : source ? { value, source } : { value };

/** A fixed value that is invalid for its kind; a choice allows no such value. */
export const bad: Partial<Record<Row["kind"], string>> = {
  text: "a\u0007b",
  secret: "a\u0007b",
  segment: "a/b",
  count: "-1",
};
/** Invalid values for the other sources. */
export const unreadable: Held[] = [
  { source: "msg", value: "payload[" },
  { source: "flow", value: "a b" },
  { source: "global", value: "a.[" },
  { source: "jsonata", value: "$sum((" },
];

import type { Kind, Param } from "../../src/operations.js";

type Facts = "required" | "values" | "default" | "min" | "pattern" | "shown" | "example" | "when" | "suggest";

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
  /** It is under "More". */
  fold?: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: the editor's globals and nodes have no types that fit Node-RED 4 and 5
export type Any = any;
export type Text = (key: string, values?: Record<string, string | number>) => string;

/** Judges what a field holds, as src/schema.ts does. Closed: the page holds its source. */
export function check(RED: Any, text: Text) {
  const LONGEST = 8192;
  const LONGEST_SEGMENT = 255;
  const label = (row: Row) => text(`${row.key}.label`);
  /** A value as a closed list shows it: "Password (2)". */
  const named = (row: Row, value: string) => {
    const name = text(`${row.key}.values.${value}`);
    return name.toLowerCase() === value.toLowerCase() ? name : `${name} (${value})`;
  };
  /** The value that is meant, by itself or by its English name. */
  const find = ({ values = {} }: Row, meant: string) => {
    const sought = meant.trim().toLowerCase();
    return Object.keys(values).find(
      (value) => value.toLowerCase() === sought || values[value]?.toLowerCase() === sought,
    );
  };

  const sendable = (longest: number, value: string) =>
    value.length > longest ? "long" : /[\p{Cc}\p{Cs}]/u.test(value) ? "control" : "";
  const choice = (value: string, row: Row) => (find(row, value) === undefined ? "choice" : "");
  /** What is wrong with a fixed value, as a key of the catalogue. */
  const rules: Record<Kind, (value: string, row: Row) => string> = {
    text: (value) => sendable(LONGEST, value.trim()),
    secret: (value) => sendable(LONGEST, value),
    segment: (value) =>
      sendable(LONGEST_SEGMENT, value.trim()) || (/[/\\]|^\.\.?$/.test(value.trim()) ? "segment" : ""),
    choice,
    flag: (value, row) => (/^(true|false|yes|no)$/i.test(value.trim()) ? "" : choice(value, row)),
    count: (value, { min = 0 }) => (Number.isSafeInteger(Number(value)) && Number(value) >= min ? "" : "count"),
    node: () => "",
  };
  const shape = ({ pattern, example }: Row, value: string) =>
    !pattern || new RegExp(`^(${pattern})$`, "i").test(value.trim()) ? "" : example ? "pattern" : "characters";

  /** The sentence that says why a value is not allowed, or nothing. */
  const reason = (row: Row, given: unknown, source: string): string => {
    const value = String(given ?? "");
    if (given === undefined || /^\$(\{\w+\}|\(\w+\))$/.test(value)) return "";
    if ((row.kind === "secret" ? value : value.trim()) === "" || value === "_ADD_")
      return row.required ? text("invalid.required", { label: label(row) }) : "";
    if (source !== "str") {
      const valid = RED.validators.typedInput({ type: source })(value, { label: label(row) });
      return valid === true ? "" : String(valid);
    }
    const rule = rules[row.kind](value, row) || shape(row, value);
    if (!rule) return "";
    const { values = {}, min = 0, example = "" } = row;
    const max = row.kind === "segment" ? LONGEST_SEGMENT : LONGEST;
    const names = Object.keys(values).map((one) => named(row, one));
    return text(`invalid.${rule}`, { label: label(row), min, max, example, values: names.join(", ") });
  };

  return { label, named, find, reason };
}

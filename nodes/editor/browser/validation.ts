import { isBlank, type Kind, kindOf, variableIn } from "../../../src/kinds.js";
import type { Param } from "../../../src/operations.js";

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

/** Says in the editor's language what is wrong with the value of a field. */
export function createValidation(RED: Any, text: Text) {
  const label = (row: Row) => text(`${row.key}.label`);
  /** A value as a closed list shows it: "Password (2)". */
  const named = (row: Row, value: string) => {
    const name = text(`${row.key}.values.${value}`);
    return name.toLowerCase() === value.toLowerCase() ? name : `${name} (${value})`;
  };
  const shape = ({ pattern, example }: Row, value: string) => {
    if (!pattern || new RegExp(`^(${pattern})$`, "i").test(value)) return undefined;
    return example ? "pattern" : "characters";
  };

  /** The sentence that says why a value is not allowed, or nothing. */
  const reason = (row: Row, given: unknown, source: string): string => {
    const value = String(given ?? "");
    if (given === undefined || variableIn(value)) return "";
    if (isBlank(row.kind, value) || value === "_ADD_")
      return row.required ? text("invalid.required", { label: label(row) }) : "";
    if (source !== "str") {
      const valid = RED.validators.typedInput({ type: source })(value, { label: label(row) });
      return valid === true ? "" : String(valid);
    }
    const kind = kindOf(row.kind);
    const clean = kind.clean(value, row);
    const fault = kind.fault(clean, row) ?? shape(row, clean.trim());
    if (!fault) return "";
    const { values = {}, min = 0, example = "" } = row;
    const names = Object.keys(values).map((one) => named(row, one));
    return text(`invalid.${fault}`, {
      label: label(row),
      min,
      max: kind.longest ?? 0,
      example,
      values: names.join(", "),
    });
  };

  return { label, named, reason };
}

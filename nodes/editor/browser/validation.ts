import { conflictOf, isBlank, isIdle, kindOf, named as nameOf, variableIn } from "../../../src/kinds.js";
import { type Any, type Row, STORED, type State, type Text } from "./state.js";

/** Validates the fields of a node, with sentences in the editor's language. */
export function createValidation(RED: Any, text: Text, { forms, rows, current, source, fixed }: State) {
  const label = (row: Row) => text(`${row.key}.label`);
  /** A value by its label: "Password". */
  const labelOf = (row: Row, value: string) => text(`${row.key}.values.${value}`);
  /** A value in a list: "Password (2)". */
  const named = (row: Row, value: string) => (row.kind === "store" ? value : nameOf(labelOf(row, value), value));
  const shape = ({ pattern, example }: Row, value: string) => {
    if (!pattern || new RegExp(`^(${pattern})$`, "i").test(value)) return undefined;
    return example ? "pattern" : "characters";
  };

  /** Why a value by itself is invalid. */
  const wrong = (row: Row, given: unknown, from: string): string => {
    const value = String(given ?? "");
    if (given === undefined || variableIn(value) || (row.credential && value === STORED)) return "";
    if (isBlank(row.kind, value) || value === "_ADD_")
      return row.required ? text("invalid.required", { label: label(row) }) : "";
    if (from !== "str") {
      const valid = RED.validators.typedInput({ type: from })(value, { label: label(row) });
      return valid === true ? "" : String(valid);
    }
    const { longest = 0, ...kind } = kindOf(row.kind);
    const clean = kind.clean(value, row);
    const fault = kind.fault(clean, row) ?? shape(row, clean.trim());
    if (!fault) return "";
    const { values = {}, min = 0, example = "" } = row;
    const names = Object.keys(values).map((one) => named(row, one));
    return text(`invalid.${fault}`, { label: label(row), min, max: longest, example, values: names.join(", ") });
  };
  /** Why a fixed value, or a blank one, is invalid together with other fields. */
  const conflict = (node: Any, name: string, row: Row): string => {
    if (source(node, name) !== "str") return "";
    const isSet = fixed(node, name) !== undefined;
    // A value from another source is assumed to fit.
    const read = (other: string) =>
      source(node, other) === "str" ? fixed(node, other) : isSet ? row.when?.[other] : "";
    const { other, needed } = conflictOf(rows(node), name, isSet, read) ?? {};
    const beside = other === undefined ? undefined : rows(node)[other];
    if (!beside || needed === undefined) return "";
    const values = { label: label(row), other: label(beside), value: named(beside, needed) };
    return isSet ? text("invalid.when", values) : text("invalid.requiredIf", values);
  };

  /** A warning if the node would change nothing. */
  const idle = (node: Any): string => {
    const { effects = [] } = forms[node.type] ?? {};
    const read = (name: string) => (source(node, name) === "str" ? fixed(node, name) : current(node, name));
    const labels = effects.flatMap((name) => rows(node)[name] ?? []).map(label);
    return isIdle(rows(node), effects, read) ? text("dialog.idle", { labels: labels.join(", ") }) : "";
  };
  /** A warning if a number is less than another field's. */
  const short = (node: Any): string => {
    for (const [name, row] of Object.entries(rows(node))) {
      const value = Number(fixed(node, name) ?? 0);
      for (const [other, usual] of Object.entries(row.least ?? {})) {
        const beside = rows(node)[other];
        const min = Number(fixed(node, other) ?? usual);
        if (beside && value > 0 && value < min)
          return text("dialog.least", { label: label(row), other: label(beside), min });
      }
    }
    return "";
  };

  return {
    label,
    labelOf,
    named,
    /** Why a field is invalid; blank if it is valid. */
    reason(node: Any, name: string, value: unknown = current(node, name)): string {
      const row = rows(node)[name];
      return row ? wrong(row, value, source(node, name)) || conflict(node, name, row) : "";
    },
    /** The warning for a valid node; else blank. */
    tip: (node: Any): string => idle(node) || short(node),
  };
}

export type Validation = ReturnType<typeof createValidation>;

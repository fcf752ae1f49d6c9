import { kindOf } from "../../../src/kinds.js";
import type { Any, Editor, Row } from "./state.js";
import type { Validation } from "./validation.js";

type Suggest = (node: Any, operation: string, input: Any, list: Any) => void;

/** Makes the function that fills the input of a field when its dialog opens. */
export function createFields({ $, text, state }: Editor, { label, labelOf, named }: Validation, suggest: Suggest) {
  const { id, current, source } = state;
  /** Names the parts of a TypedInput for assistive technology. */
  const namedWidget = (line: Any, row: Row) => {
    const box = line.find(".red-ui-typedInput-container").attr({ role: "group", "aria-label": label(row) });
    const inner = box.find(".red-ui-typedInput-input").attr("aria-label", label(row));
    // Some buttons of the widget contain only an icon.
    box
      .find(".red-ui-typedInput-option-trigger, .red-ui-typedInput-option-expand, .red-ui-typedInput-type-select")
      .attr("title", label(row));
    return { box, inner };
  };
  /** Keeps the default path in a message from becoming a fixed value. The widget has one text for all sources. */
  const separate = (input: Any, type: Any, path: string) => {
    let last = type.val();
    input.on("change", () => {
      if (type.val() === last) return;
      last = type.val();
      if (last === "str" && input.val() === path) input.typedInput("value", "");
      if (last === "msg" && input.val() === "") input.typedInput("value", path);
    });
  };
  /** Turns an input into a TypedInput. A field with values gets a list of them for its fixed value. */
  const typed = (node: Any, name: string, row: Row) => {
    const input = $(id(node, name));
    const line = input.closest(".form-row");
    const value = String(input.val());
    const options = Object.keys(row.values ?? {}).map((one) => ({ value: one, label: named(row, one) }));
    const blank = row.default ? text("dialog.default", { value: labelOf(row, row.default) }) : text("dialog.unsent");
    if (!row.required && !row.initial) options.unshift({ value: "", label: blank });
    if (row.values && source(node, name) === "str") {
      // The widget would replace an unknown value with its first option.
      const known = kindOf(row.kind).clean(value, row);
      input.val(known);
      if (!options.some((option) => option.value === known)) options.push({ value: known, label: known });
    }
    const fixed = row.values ? { value: "str", label: text("dialog.fixed"), icon: "fa fa-list-ul", options } : "str";
    const types = [fixed, "msg", "flow", "global", "env", "jsonata"];
    input.typedInput({ default: "str", typeField: `${id(node, name)}Type`, types });
    const { box, inner } = namedWidget(line, row);
    if (row.reads) separate(input, $(`${id(node, name)}Type`), row.reads);
    // The widget handles key events, but not text that is pasted or dropped.
    inner.on("input", () => inner.trigger("change"));
    line
      .find("label")
      .on("click", () => box.find("input:visible, .red-ui-typedInput-option-trigger:visible").first().trigger("focus"));
    if (!row.suggest) return;
    const list = $("<datalist>").attr("id", `seo-${name}`).appendTo(line);
    suggest(node, row.suggest, inner.removeAttr("autocomplete"), list);
  };
  /** Fills the select of a field whose values depend on Node-RED's settings. */
  const choices = (node: Any, name: string, row: Row) => {
    const select = $(id(node, name));
    const chosen = current(node, name) ?? "";
    const all = ["", ...Object.keys(row.values ?? {})];
    if (!all.includes(chosen)) all.push(chosen);
    const option = (value: string) =>
      $("<option>")
        .attr("value", value)
        .text(value || text("dialog.usual"));
    select.empty().append(all.map(option)).val(chosen);
  };

  return function fill(node: Any, name: string, row: Row): void {
    if (row.kind === "store") choices(node, name, row);
    else if (row.kind === "property") {
      const input = $(id(node, name)).typedInput({ types: ["msg"] });
      namedWidget(input.closest(".form-row"), row);
    } else if (row.source) typed(node, name, row);
    else if (row.example) $(id(node, name)).attr("placeholder", text("dialog.example", { example: row.example }));
  };
}

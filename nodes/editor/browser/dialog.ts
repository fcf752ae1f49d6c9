import { kindOf } from "../../../src/kinds.js";
import { createRequests } from "./requests.js";
import type { Any, Row, State, Text } from "./state.js";
import type { Validation } from "./validation.js";

/** Prepares the edit dialogs and updates them while the user types. */
export function createDialog(RED: Any, $: Any, text: Text, state: State, { label, named, reason, tip }: Validation) {
  const { opened, rows, id, current, source, fresh, visible } = state;
  const { test, suggest } = createRequests(RED, $, text, state, reason);

  const show = (line: Any, sentence: string) => {
    const place = line.find(".seo-reason").text(sentence);
    const inputs = line.find("input:not([type=hidden]), select");
    if (sentence) inputs.attr({ "aria-invalid": "true", "aria-describedby": place.attr("id") });
    else inputs.removeAttr("aria-invalid").removeAttr("aria-describedby");
  };
  const refresh = (node: Any, form: Any, quiet: boolean) => {
    for (const [name, row] of Object.entries(rows(node))) {
      const line = $(id(node, name)).closest(".form-row");
      show(line, quiet ? "" : reason(node, name));
      // `toggle` would make the browser recalculate all styles for each row.
      line.css("display", visible(node, name) ? "" : "none");
      if (!row.source) continue;
      const type = source(node, name);
      const example = type === "str" && row.example ? text("dialog.example", { example: row.example }) : "";
      line.find(".red-ui-typedInput-input").attr({
        placeholder: example || (row.required || row.initial !== undefined ? "" : text("dialog.unsent")),
        list: type === "str" && row.suggest ? `seo-${name}` : null,
      });
    }
    form.find(".form-tips").text(tip(node));
  };
  /** Removes the editor's tooltip for an invalid field: it would cover the same sentence below the field. */
  const uncover = (node: Any) => {
    for (const name of Object.keys(rows(node))) {
      const input = $(id(node, name));
      input.data("tooltip")?.delete();
      input.data("tooltip", null);
    }
  };

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
    const blank = row.default ? text("dialog.default", { value: named(row, row.default) }) : text("dialog.unsent");
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

  return function prepare(node: Any) {
    const form = $(id(node, "name")).closest("form");
    // A node of an older version lacks the newer properties: show what applies.
    for (const [name, row] of Object.entries(rows(node))) {
      if (row.source) $(id(node, `${name}Type`)).val(source(node, name));
      const shown = row.reads || (row.initial === undefined ? row.value : row.default);
      if (node[name] === undefined && shown) $(id(node, name)).val(shown);
    }
    for (const [name, row] of Object.entries(rows(node))) {
      if (row.kind === "store") choices(node, name, row);
      else if (row.kind === "property")
        namedWidget(
          $(id(node, name))
            .typedInput({ types: ["msg"] })
            .closest(".form-row"),
          row,
        );
      else if (row.source) typed(node, name, row);
      else if (row.example) $(id(node, name)).attr("placeholder", text("dialog.example", { example: row.example }));
    }
    opened.set(node, form[0]);
    for (const name of Object.keys(rows(node)))
      if (!fresh(node, name)) $(id(node, name)).closest("details").prop("open", true);
    const clear = test(node, form.find(".seo-test"), form.find("output"));
    const values = () =>
      JSON.stringify(Object.keys(rows(node)).map((name) => [current(node, name), source(node, name)]));
    // A new config node shows no errors before the first change.
    const untouched = RED.nodes.node(node.id) ? "" : values();
    // The widgets trigger several events for one change.
    let last = "";
    const look = () => {
      const now = values();
      const quiet = now === untouched;
      form.toggleClass("seo-quiet", quiet);
      if (now !== last) refresh(node, form, quiet);
      if (last && now !== last) clear();
      last = now;
      uncover(node);
    };
    form.on("change keyup paste input", look);
    look();
    // The editor adds tooltips after `oneditprepare`.
    setTimeout(() => uncover(node));
  };
}

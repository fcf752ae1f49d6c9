import { kindOf } from "../../../src/kinds.js";
import { createRequests } from "./requests.js";
import { type Any, createValidation, type Row, type Text } from "./validation.js";

/** The browser half of every node type, of the editor's `RED` and `$`, the forms by node type, and where the catalogue is. */
export function register(
  RED: Any,
  $: Any,
  forms: Record<string, { main?: string; rows: Record<string, Row> }>,
  catalogue: string,
) {
  const text: Text = (key, values) => RED._(catalogue + key, values);
  const { label, named, reason } = createValidation(RED, text);
  const rows = (node: Any): Record<string, Row> => forms[node.type]?.rows ?? {};
  const id = (node: Any, name: string) => `#node-${node._def.category === "config" ? "config-" : ""}input-${name}`;
  const opened = new WeakMap<object, Any>();
  /** What a property is: in the node's dialog while that is open, else in the node. */
  const current = (node: Any, name: string): string | undefined =>
    (opened.get(node)?.isConnected ? $(id(node, name)).val() : undefined) ?? node[name];
  const source = (node: Any, name: string): string =>
    (rows(node)[name]?.source && current(node, `${name}Type`)) || "str";
  /** It is as in a new node. */
  const fresh = (node: Any, name: string) =>
    [name, `${name}Type`].every((key) => {
      const { value } = node._def.defaults[key] ?? {};
      return value === undefined || String(current(node, key) ?? value).replace("_ADD_", "") === value;
    });
  const { test, suggest } = createRequests(RED, $, text, current);

  const clean = (row: Row, value = "") => kindOf(row.kind).clean(value, row);
  /** The sentence that says why a value has no effect, or nothing. */
  const conflict = (node: Any, name: string, row: Row): string => {
    if (fresh(node, name) || !current(node, name)) return "";
    for (const [key, needed] of Object.entries(row.when ?? {})) {
      const other = rows(node)[key];
      if (!other || source(node, key) !== "str") continue;
      if ((clean(other, current(node, key)) || (other.default ?? needed)) !== needed)
        return text("dialog.when", { label: label(row), other: label(other), value: named(other, needed) });
    }
    return "";
  };
  const refresh = (node: Any) => {
    for (const [name, row] of Object.entries(rows(node))) {
      const line = $(id(node, name)).closest(".form-row");
      const type = source(node, name);
      line.find(".seo-reason").text(reason(row, current(node, name), type));
      line.find(".form-tips").text(conflict(node, name, row));
      // Not `toggle`, which has the browser work out all styles anew for each row.
      const shown = Object.entries(row.shown ?? {}).every(([key, values]) => values.includes(current(node, key) ?? ""));
      line.css("display", shown ? "" : "none");
      if (!row.source) continue;
      const example = type === "str" && row.example ? text("dialog.example", { example: row.example }) : "";
      line.find(".red-ui-typedInput-input").attr({
        placeholder: example || (row.required ? "" : text("dialog.unsent")),
        list: type === "str" && row.suggest ? `seo-${name}` : null,
      });
    }
  };

  /** Turns an input into a TypedInput; where there is a closed list, a fixed value is chosen from it. */
  const typed = (node: Any, name: string, row: Row) => {
    const input = $(id(node, name));
    const line = input.closest(".form-row");
    const value = String(input.val());
    const options = Object.keys(row.values ?? {}).map((one) => ({ value: one, label: named(row, one) }));
    const blank = row.default ? text("dialog.default", { value: named(row, row.default) }) : text("dialog.unsent");
    if (!row.required) options.unshift({ value: "", label: blank });
    if (row.values && source(node, name) === "str") {
      // The widget would put its first option in the place of a value that it does not know.
      const known = clean(row, value);
      input.val(known);
      if (!options.some((option) => option.value === known)) options.push({ value: known, label: known });
    }
    const fixed = row.values ? { value: "str", label: text("dialog.fixed"), icon: "fa fa-list-ul", options } : "str";
    const types = [fixed, "msg", "flow", "global", "env", "jsonata"];
    input.typedInput({ default: "str", typeField: `${id(node, name)}Type`, types });
    const box = line.find(".red-ui-typedInput-container").attr({ role: "group", "aria-label": label(row) });
    const inner = box.find(".red-ui-typedInput-input").attr("aria-label", label(row));
    // The widget hears of keys, but not of text that is pasted or chosen by the mouse.
    inner.on("input", () => inner.trigger("change"));
    line
      .find("label")
      .on("click", () => box.find("input:visible, .red-ui-typedInput-option-trigger:visible").first().trigger("focus"));
    if (!row.suggest) return;
    const list = $("<datalist>").attr("id", `seo-${name}`).appendTo(line);
    suggest(node, row.suggest, inner.removeAttr("autocomplete"), list);
  };

  return {
    text,
    title(this: Any) {
      return text(`node.${this.type}.title`);
    },
    label(this: Any) {
      const main = forms[this.type]?.main;
      const fixed = main && source(this, main) === "str" ? String(this[main] ?? "") : "";
      const short = fixed.length > 40 ? `${fixed.slice(0, 39)}…` : fixed;
      return this.name || `${text(`node.${this.type}.title`)} ${short}`.trim();
    },
    labelStyle(this: Any) {
      return this.name ? "node_label_italic" : "";
    },
    /** What it returns has two parameters: so the editor shows the sentence. */
    validate: (name: string) =>
      function (this: Any, value: unknown, _options: unknown) {
        const row = rows(this)[name];
        return (row && reason(row, value, source(this, name))) || true;
      },
    prepare(this: Any) {
      const form = $(id(this, "name")).closest("form");
      // A node of an older version lacks what is new: it has the default, and the dialog shows it.
      for (const [key, { value }] of Object.entries<Any>(this._def.defaults))
        if (this[key] === undefined && value) $(id(this, key)).val(value);
      opened.set(this, form[0]);
      for (const [name, row] of Object.entries(rows(this))) {
        if (row.source) typed(this, name, row);
        if (!fresh(this, name)) $(id(this, name)).closest("details").prop("open", true);
      }
      test(this, form.find(".seo-test"), form.find("output"));
      // The widgets tell of one change several times over.
      let last = "";
      const look = () => {
        const now = JSON.stringify(Object.keys(rows(this)).map((name) => [current(this, name), source(this, name)]));
        if (now !== last) refresh(this);
        last = now;
      };
      form.on("change keyup paste input", look);
      look();
    },
  };
}

import { createFields } from "./fields.js";
import { createRequests } from "./requests.js";
import { TAB } from "./sidebar.js";
import type { Any, Editor } from "./state.js";
import type { Validation } from "./validation.js";

/** Prepares the edit dialogs and updates them while the user types. */
export function createDialog(editor: Editor, validation: Validation) {
  const { RED, $, text, state } = editor;
  const { opened, rows, id, current, source, isNew, visible } = state;
  const { reason, tip } = validation;
  const { test, suggest } = createRequests(editor, reason);
  const fill = createFields(editor, validation, suggest);

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

  return function prepare(node: Any) {
    const form = $(id(node, "name")).closest("form");
    // A node of an older version lacks the newer properties: show what applies.
    for (const [name, row] of Object.entries(rows(node))) {
      if (row.source) $(id(node, `${name}Type`)).val(source(node, name));
      const shown = row.reads || (row.initial === undefined ? row.value : row.default);
      if (node[name] === undefined && shown) $(id(node, name)).val(shown);
    }
    for (const [name, row] of Object.entries(rows(node))) fill(node, name, row);
    opened.set(node, form[0]);
    form.find(".seo-show").on("click", () => RED.sidebar.show(TAB));
    for (const name of Object.keys(rows(node)))
      if (!isNew(node, name)) $(id(node, name)).closest("details").prop("open", true);
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

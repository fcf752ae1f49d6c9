import { kindOf } from "../../../src/kinds.js";
import { createDialog } from "./dialog.js";
import { type Any, createState, type Form, type Text } from "./state.js";
import { createValidation } from "./validation.js";

/** @public The page calls it. */
export { watchAudits } from "./sidebar.js";

const SERVICE = "seo-service";
/** The maximum number of characters that a label adds to the title. */
const LONGEST_LABEL = 40;

/** The host and port of a URL. Other text is returned unchanged. */
const hostOf = (url: string) => (URL.canParse(url) && new URL(url).host) || url;

/** The functions that the definitions of all node types use. `catalogue` is the prefix of the texts' keys. */
export function register(RED: Any, $: Any, forms: Record<string, Form>, catalogue: string) {
  const text: Text = (key, values) => RED._(catalogue + key, values);
  const stores: string[] = RED.settings.context?.stores ?? [];
  for (const { rows } of Object.values(forms))
    for (const row of Object.values(rows))
      if (row.kind === "store") row.values = Object.fromEntries(stores.map((store) => [store, store]));
  const state = createState($, forms);
  const validation = createValidation(RED, text, state);
  const prepare = createDialog({ RED, $, text, state }, validation);

  /**
   * The part of a label for a fixed value that is not the default: the value as the editor names it, after the name of its
   * field if it is a number, and only that name if it is Yes.
   */
  const shown = (node: Any, name: string): string[] => {
    const row = state.rows(node)[name];
    if (!row?.source || row.fold || !state.visible(node, name)) return [];
    const { secret, types } = kindOf(row.kind);
    const value = secret ? undefined : state.fixed(node, name);
    if (!value || value === row.default) return [];
    if (types.includes("boolean")) return [validation.label(row)];
    const { [value]: label } = row.values ?? {};
    if (label !== undefined)
      return [label.toLowerCase() === value.toLowerCase() ? value : text(`${row.key}.values.${value}`)];
    return [name !== forms[node.type]?.main && /^\d+$/.test(value) ? `${validation.label(row)} ${value}` : value];
  };

  return {
    text,
    title(this: Any) {
      return text(`node.${this.type}.title`);
    },
    label(this: Any) {
      const title = text(`node.${this.type}.title`);
      if (this.name) return this.name;
      const { main = "" } = forms[this.type] ?? {};
      if (this._def.category === "config") return hostOf(this[main] ?? "") || title;
      const values = Object.keys(state.rows(this)).flatMap((name) => shown(this, name));
      const all = values.length > 0 ? `${title}: ${values.join(", ")}` : title;
      return all.length > title.length + LONGEST_LABEL ? `${all.slice(0, title.length + LONGEST_LABEL)}…` : all;
    },
    outputLabel(this: Any, index: number) {
      return text(`node.${this.type}.outputs.${index}`);
    },
    labelStyle(this: Any) {
      return this.name ? "node_label_italic" : "";
    },
    /** The editor shows a returned sentence only if the validator has two parameters. */
    validate: (name: string) =>
      function (this: Any, value: unknown, _options: unknown) {
        return validation.reason(this, name, value) || true;
      },
    /** Selects the service of a new node if there is only one. */
    add(this: Any) {
      const services: Any[] = [];
      RED.nodes.eachConfig((node: Any) => {
        if (node.type === SERVICE && !node.d && (!node.z || node.z === this.z)) services.push(node);
      });
      if (!this.service && services.length === 1) this.service = services[0].id;
    },
    prepare(this: Any) {
      prepare(this);
    },
  };
}

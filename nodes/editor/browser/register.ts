import { kindOf } from "../../../src/kinds.js";
import { createDialog } from "./dialog.js";
import { type Any, createState, type FormData, type Text } from "./state.js";
import { createValidation } from "./validation.js";

const SERVICE = "seo-service";
/** A label of more characters would cover the workspace. */
const LONGEST_LABEL = 40;

/** The host of a URL, with its port; another text as it is. */
const hostOf = (url: string) => (URL.canParse(url) && new URL(url).host) || url;

/** The browser half of every node type, of the editor's `RED` and `$`, the forms by node type, and where the catalogue is. */
export function register(RED: Any, $: Any, forms: Record<string, FormData>, catalogue: string) {
  const text: Text = (key, values) => RED._(catalogue + key, values);
  const stores: string[] = RED.settings.context?.stores ?? [];
  for (const { rows } of Object.values(forms))
    for (const row of Object.values(rows))
      if (row.kind === "store") row.values = Object.fromEntries(stores.map((store) => [store, store]));
  const state = createState($, forms);
  const validation = createValidation(RED, text, state);
  const prepare = createDialog(RED, $, text, state, validation);

  /** What a label says of a fixed value that is not the service's default. A number has a name instead. */
  const shown = (node: Any, name: string): string[] => {
    const row = state.rows(node)[name];
    const value = row?.source && !kindOf(row.kind).secret ? state.fixed(node, name) : undefined;
    if (!row || !value || value === row.default) return [];
    const { [value]: label = value } = row.values ?? {};
    if (label.toLowerCase() === value.toLowerCase()) return [value];
    return [`${validation.label(row)} ${text(`${row.key}.values.${value}`)}`];
  };

  return {
    text,
    title(this: Any) {
      return text(`node.${this.type}.title`);
    },
    label(this: Any) {
      const title = text(`node.${this.type}.title`);
      if (this.name) return this.name;
      if (this.type === SERVICE) return hostOf(this.baseUrl ?? "") || title;
      const values = Object.keys(state.rows(this)).flatMap((name) => shown(this, name));
      const all = values.length > 0 ? `${title}: ${values.join(", ")}` : title;
      return all.length > title.length + LONGEST_LABEL ? `${all.slice(0, title.length + LONGEST_LABEL)}…` : all;
    },
    labelStyle(this: Any) {
      return this.name ? "node_label_italic" : "";
    },
    /** What it returns has two parameters: so the editor shows the sentence. */
    validate: (name: string) =>
      function (this: Any, value: unknown, _options: unknown) {
        return validation.reason(this, name, value) || true;
      },
    /** A new node has the only service that it can have. */
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

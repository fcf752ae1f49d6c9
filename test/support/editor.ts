import { Script } from "node:vm";
import { load } from "cheerio";
import { register } from "../../nodes/editor/browser/register.js";
import { build, type Texts } from "../../nodes/editor/forms.js";
import { page as makePage } from "../../nodes/editor/page.js";

// biome-ignore lint/suspicious/noExplicitAny: stands in for the editor's untyped globals
export type Any = any;

/** A text of the catalog with its placeholders filled in. */
export const fillIn = (text: string, values: Record<string, unknown>) =>
  text.replace(/__(\w+)__/g, (whole, name) => String(values[name] ?? whole));

/** Replaces the bundle with the modules themselves, for the coverage report. */
export const MODULES = "const browser = modules;";

/** The context stores in the settings of this editor. */
export const STORES = ["memory", "file"];

/** A small substitute for Node-RED's editor: runs a page, opens edit dialogs, and records requests and missing texts. */
export function createEditor(page: string, catalogue: Texts) {
  const definitions: Record<string, Any> = {};
  const nodes: Record<string, Any> = {};
  const requests: { url: string; body: Any; answer: (ok: boolean, value: unknown) => void }[] = [];
  const missing: string[] = [];
  const part = (attributes: string) => page.split(`<script ${attributes}>`)[1]?.split("</script>")[0] ?? "";
  const template = (type: string) => part(`type="text/html" data-template-name="${type}"`);
  let dialog: Any;
  let handlers = new Map<unknown, [string, (...values: unknown[]) => void][]>();

  const extras = {
    on(this: Any, events: string, act: () => void) {
      for (const event of events.split(" ")) handlers.set(this[0], [...(handlers.get(this[0]) ?? []), [event, act]]);
      return this;
    },
    trigger(this: Any, event: string) {
      for (let at = this[0]; at; at = at.parent)
        for (const [name, act] of handlers.get(at) ?? []) if (name === event) act();
      return this;
    },
    toggle(this: Any, shown: boolean) {
      return this.css("display", shown ? "" : "none");
    },
    typedInput(this: Any, { types, typeField, default: usual }: Any) {
      this[0].types = types;
      if (!$(typeField).val()) $(typeField).val(usual);
      this.after('<div class="red-ui-typedInput-container"><input class="red-ui-typedInput-input"></div>');
      return this;
    },
  };
  let ids = new Map<string, unknown>();
  const named = (selector: unknown) =>
    String(selector).startsWith("#") ? (ids.get(String(selector)) ?? []) : selector;
  const $ = Object.assign((selector: unknown) => dialog(named(selector)), {
    ajax: ({ url, data }: { url: string; data: string }) =>
      new Promise((resolve, reject) => {
        requests.push({ url, body: JSON.parse(data), answer: (ok, value) => (ok ? resolve : reject)(value) });
      }),
  });
  const RED = {
    _(key: string, values: Record<string, string> = {}) {
      const path = key.slice(key.indexOf(":") + 1).split(".");
      const text = path.reduce<Any>((texts, part) => texts?.[part], catalogue);
      if (typeof text !== "string") missing.push(key);
      return fillIn(String(text), values);
    },
    i18n: { lang: () => "en-US" },
    settings: { context: { stores: STORES } },
    validators: {
      typedInput:
        ({ type }: Any) =>
        (value: string) =>
          value.includes("(") ? `not a ${type}` : true,
    },
    nodes: {
      registerType: (type: string, definition: Any) => Object.assign(definitions, { [type]: { ...definition, type } }),
      node: (id: string) => nodes[id],
      eachConfig: (act: (node: Any) => void) =>
        Object.values(nodes)
          .filter(({ _def }) => _def.category === "config")
          .map(act),
    },
  };
  new Script(part('type="text/javascript"')).runInNewContext({ RED, $, modules: { register, watchAudits() {} } });

  function add(type: string, id = type, more: Record<string, unknown> = {}): Any {
    const _def = definitions[type];
    const fresh = Object.entries<Any>(_def.defaults).map(([name, { value }]) => [name, value]);
    nodes[id] = { id, type, _def, ...Object.fromEntries(fresh), ...more };
    return nodes[id];
  }

  return {
    definitions,
    requests,
    missing,
    template,
    /** Creates a node as the editor does when one is dragged from the palette, then applies `more`. */
    add,
    /** Creates a node as the editor does when one is dropped on the workspace. */
    drop(type: string): Any {
      const node = add(type, `${type}-dropped`, { z: "flow" });
      node._def.onadd.call(node);
      return node;
    },
    /** Opens a node's edit dialog and returns its `$`. */
    open(node: Any): Any {
      if (dialog) dialog("form")[0].isConnected = false;
      handlers = new Map();
      dialog = load(`<form>${template(node.type)}</form>`);
      Object.assign(dialog.prototype, extras);
      dialog("form")[0].isConnected = true;
      ids = new Map(
        dialog("[id]")
          .toArray()
          .map((element: Any) => [`#${element.attribs.id}`, element]),
      );
      const prefix = node._def.category === "config" ? "#node-config-input-" : "#node-input-";
      for (const name of Object.keys(node._def.defaults)) $(prefix + name).val(node[name] ?? "");
      for (const name of Object.keys(node._def.credentials ?? {})) $(prefix + name).val(node.credentials?.[name] ?? "");
      node._def.oneditprepare.call(node);
      return dialog;
    },
    /** Types into a field of the open edit dialog. */
    type(selector: string, value: string): void {
      $(selector).val(value).trigger("change");
    },
  };
}

/** The properties of a node that was dragged from the palette. */
export function fromPalette(type: string): Record<string, unknown> {
  const { types, english } = build();
  const { id: _, _def, ...properties } = createEditor(makePage(types, new Set(), MODULES), english).add(type);
  return properties;
}

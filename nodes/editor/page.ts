import { join } from "node:path";
import { buildSync } from "esbuild";
import { type Kind, kindOf } from "../../src/kinds.js";
import { build, CATEGORY, type Form, PACKAGE, SET } from "./forms.js";

export const KEYS = `${SET}.`;

export const safe = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
/** A value as JavaScript source that is safe inside a script element. */
const literal = (value: unknown) => JSON.stringify(value).replace(/</g, "\\u003c");

/** The icon of each kind, and its JavaScript types as the help names them. */
export const widgets: Record<Kind, { icon: string; type: string }> = {
  text: { icon: "font", type: "string" },
  url: { icon: "font", type: "string" },
  secret: { icon: "lock", type: "string" },
  segment: { icon: "key", type: "string | number" },
  choice: { icon: "list-ul", type: "string | number" },
  flag: { icon: "check-square-o", type: "boolean" },
  count: { icon: "hashtag", type: "number" },
  node: { icon: "cog", type: "node" },
  property: { icon: "envelope-o", type: "string" },
  server: { icon: "lock", type: "string" },
  store: { icon: "database", type: "string" },
};

/** The input of a field. Those that the user chooses a source for become TypedInputs. */
function input(id: string, { kind, key, source, unlimited, values = {} }: Form["rows"][string]): string {
  if (source) return `<input type="text" id="${id}" style="width:100%"><input type="hidden" id="${id}Type">`;
  if (["choice", "flag", "store"].includes(kind)) {
    const option = (value: string) => `<option value="${value}" data-i18n="${KEYS}${key}.values.${value}"></option>`;
    return `<select id="${id}" style="width:100%">${Object.keys(values).map(option).join("")}</select>`;
  }
  const type = kindOf(kind).secret ? "password" : "text";
  return `<input type="${type}" id="${id}" style="width:100%"${unlimited ? ' placeholder="∞"' : ""}>`;
}

const TEST = `<div class="form-row"><span></span><div>
<button type="button" class="red-ui-button seo-test"><i class="fa fa-plug" aria-hidden="true"></i> <span data-i18n="${KEYS}dialog.test"></span></button>
<output role="status"></output></div></div>`;
const SHOW = `<div class="form-row"><span></span><div>
<button type="button" class="red-ui-button seo-show"><i class="fa fa-tasks" aria-hidden="true"></i> <span data-i18n="${KEYS}sidebar.show"></span></button></div></div>`;
/** Light segments and dark ones alternate, and failures are striped, so that outcomes are told apart without color. */
const SIDEBAR = `<style>
.seo-audits { height: 100%; overflow-y: auto; box-sizing: border-box; padding: 8px; overflow-wrap: anywhere; color: var(--red-ui-primary-text-color); background: var(--red-ui-primary-background); }
.seo-audits :is(p, ul) { margin: 4px 0; }
.seo-audits section > * { margin-top: 4px; }
.seo-audits ul { padding-inline-start: 16px; }
.seo-audits summary { width: fit-content; margin-bottom: 4px; cursor: pointer; }
.seo-audits section { border-bottom: 1px solid #888; margin-bottom: 8px; padding-bottom: 8px; }
.seo-audits :is(.seo-line, .seo-legend, .seo-bar) { display: flex; flex-wrap: wrap; gap: 4px 8px; }
.seo-audits .seo-bar { flex-wrap: nowrap; gap: 0; height: 12px; margin: 4px 0; border: 1px solid #888; }
.seo-audits .seo-legend > span::before { content: ""; display: inline-block; width: 10px; height: 10px; margin-inline-end: 4px; border: 1px solid #888; background: var(--seo-fill); }
.seo-audits .seo-bar > span { background: var(--seo-fill); }
.seo-created { --seo-fill: #1b7f3b; }
.seo-regenerated { --seo-fill: #5ab4f0; }
.seo-fresh { --seo-fill: radial-gradient(#fff 30%, #666 35%) 0 0 / 5px 5px; }
.seo-failed { --seo-fill: repeating-linear-gradient(45deg, #c62828 0 3px, #fff 3px 5px); }
.seo-uncertain { --seo-fill: repeating-linear-gradient(-45deg, #e08a00 0 3px, #222 3px 5px); }
.seo-audits button { padding: 2px 8px; border: 1px solid #888; border-radius: 4px; color: inherit; background: var(--red-ui-secondary-background); font: inherit; }
.seo-audits button.seo-name { padding: 0; border: 0; background: none; font-weight: bold; text-decoration: underline; text-align: start; }
.seo-audits button:disabled { opacity: 0.6; }
.seo-audits :is(button, summary):focus-visible { outline: 2px solid; }
.seo-audits [hidden] { display: none; }
.seo-audits .seo-spoken { position: absolute; top: 0; clip-path: inset(50%); }
</style>
`;
const STYLE = `<style>
.seo-form .form-row { display: grid; grid-template-columns: min(150px, 34%) minmax(0, 1fr); gap: 4px 8px; align-items: center; }
.seo-form .form-row > label { display: flex; gap: 4px; align-items: baseline; width: auto; margin: 0; overflow-wrap: anywhere; }
.seo-form [data-unit]::after { content: " (" attr(data-unit) ")"; }
.seo-form .form-row select { min-width: 0; }
.seo-form .seo-reason { grid-column: 2; }
.seo-form :is(.seo-reason, .form-tips):empty { display: none; }
.seo-form .seo-reason { color: var(--red-ui-text-color-error); }
.seo-form :is(.seo-test, .seo-show) > * { color: var(--red-ui-primary-text-color); }
.seo-form output { display: block; margin-top: 8px; padding: 0 8px; overflow-wrap: anywhere; }
.seo-form output:is(.seo-good, .seo-bad) { border-inline-start: 4px solid var(--red-ui-text-color-success); }
.seo-form output.seo-bad { border-color: var(--red-ui-text-color-error); }
.seo-quiet .input-error { border-color: var(--red-ui-form-input-border-color) !important; }
.seo-form .form-tips { max-width: none; margin-bottom: 12px; }
.seo-form summary { width: fit-content; margin-bottom: 12px; padding: 4px 8px; cursor: pointer; }
</style>`;

/** The edit dialog of a node type, as static HTML. */
function template(type: string, { rows, effects, outputs }: Form): string {
  const config = Object.values(rows).some(({ credential }) => credential);
  const tips = effects || Object.values(rows).some(({ least }) => least);
  const line = ([name, row]: [string, Form["rows"][string]]) => {
    const id = `node-${config ? "config-" : ""}input-${name}`;
    return `<div class="form-row">
<label for="${id}" data-i18n="[title]${KEYS}${row.key}.help"><i class="fa fa-fw fa-${widgets[row.kind].icon}" aria-hidden="true"></i><span data-i18n="${KEYS}${row.key}.label"${row.unit ? ` data-unit="${row.unit}"` : ""}></span></label>
${input(id, row)}
<div class="seo-reason" id="${id}-reason" role="status"></div>
</div>`;
  };
  const lines = (fold: boolean) =>
    Object.entries(rows)
      .filter(([, row]) => Boolean(row.fold) === fold)
      .map(line)
      .join("\n");
  const folded = lines(true);
  return `<script type="text/html" data-template-name="${type}">
<div class="seo-form">
${lines(false)}${tips ? '\n<div class="form-tips" role="status"></div>' : ""}${config ? `\n${TEST}` : ""}${outputs ? `\n${SHOW}` : ""}
${folded && `<details>\n<summary data-i18n="${KEYS}dialog.advanced"></summary>\n${folded}\n</details>`}
</div>
</script>`;
}

/** The definition of a node type, as an object literal: the flow library's parser reads nothing else. */
function definition(type: string, { params, color = "#3FADB5", rows, outputs = [] }: Form, icon: string): string {
  const entries = (credential: boolean) =>
    Object.entries(rows)
      .filter(([, row]) => Boolean(row.credential) === credential)
      .map(([name, { kind, node, value, required, source, key }]) => {
        const facts = credential
          ? `type: "password", validate: seo.validate("${name}")`
          : kind === "node"
            ? `value: "", type: ${literal(node)}, required: ${Boolean(required)}, label: seo.text("${key}.label")`
            : `value: ${literal(value)}, validate: seo.validate("${name}")`;
        return `    ${name}: { ${facts} },${source ? `\n    ${name}Type: { value: "${source}" },` : ""}`;
      })
      .join("\n");
  const credentials = entries(true);
  return `RED.nodes.registerType(${literal(type)}, {
  category: ${literal(params ? CATEGORY : "config")},${
    params
      ? `\n  color: ${literal(color)},\n  inputs: 1,\n  outputs: ${outputs.length || 1},\n  icon: ${literal(icon)},`
      : ""
  }
  defaults: {
${entries(false)}
  },${credentials && `\n  credentials: {\n${credentials}\n  },`}
  paletteLabel: seo.title,
  label: seo.label,
  labelStyle: seo.labelStyle,
  oneditprepare: seo.prepare,${params ? "\n  onadd: seo.add," : ""}${outputs.length ? "\n  outputLabels: seo.outputLabel," : ""}
});`;
}

/** The modules of the browser half, as one script that defines `browser`. */
export const bundle = (minify = true) =>
  buildSync({
    entryPoints: [join(import.meta.dirname, "browser/register.js")],
    bundle: true,
    minify,
    write: false,
    format: "iife",
    globalName: "browser",
    target: "es2022",
    charset: "utf8",
  }).outputFiles[0]?.text ?? "";

/** The HTML page of the node set: edit dialogs and definitions. Its texts are in the catalogs. */
export function page(types = build().types, icons: ReadonlySet<string> = new Set(), script: string = bundle()): string {
  const forms = Object.entries(types).map(([type, { main, effects, rows }]) => {
    const data = Object.entries(rows).map(([name, { label, help, ...row }]) => [name, row]);
    return [type, { main, effects, rows: Object.fromEntries(data) }];
  });
  const icon = (type: string) => (icons.has(`${type}.svg`) ? `${type}.svg` : "file.svg");
  return `${STYLE}
${Object.entries(types)
  .map(([type, form]) => template(type, form))
  .join("\n")}
<script type="text/javascript">
(() => {
${script}
browser.watchAudits(RED, $, "${PACKAGE}/${SET}", "${KEYS}");
const seo = browser.register(RED, $, ${literal(Object.fromEntries(forms))}, "${PACKAGE}/${SET}:${KEYS}");
${Object.entries(types)
  .map(([type, form]) => definition(type, form, icon(type)))
  .join("\n")}
})();
</script>
${SIDEBAR}`;
}

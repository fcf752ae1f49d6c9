import type { Kind } from "../../src/operations.js";
import { build, CATEGORY, type Form, PACKAGE, SET, type Texts } from "./forms.js";
import { register } from "./register.js";

const HOME = "https://github.com/seo-reports/node-red#readme";
const KEYS = `${SET}.`;

const safe = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
/** A value as source text that is safe inside a script element. */
const literal = (value: unknown) => JSON.stringify(value).replace(/</g, "\\u003c");

const input =
  (type: string) =>
  (id: string, { example, source }: Form["rows"][string]) =>
    `<input type="${type}" id="${id}" style="width:100%"${example ? ` placeholder="${safe(example)}"` : ""}>${
      source ? `<input type="hidden" id="${id}Type">` : ""
    }`;
const select = (id: string, row: Form["rows"][string]) =>
  row.source
    ? input("text")(id, row)
    : `<select id="${id}" style="width:100%">${Object.keys(row.values ?? {})
        .map((value) => `<option value="${value}" data-i18n="${KEYS}${row.key}.values.${value}"></option>`)
        .join("")}</select>`;
const widgets: Record<Kind, { icon: string; type: string; html: typeof select }> = {
  text: { icon: "font", type: "string", html: input("text") },
  secret: { icon: "lock", type: "string", html: (id, row) => input(row.source ? "text" : "password")(id, row) },
  segment: { icon: "key", type: "string | number", html: input("text") },
  choice: { icon: "list-ul", type: "string | number", html: select },
  flag: { icon: "check-square-o", type: "boolean", html: select },
  count: { icon: "hashtag", type: "number", html: input("text") },
  node: { icon: "cog", type: "node", html: input("text") },
};

const TEST = `<div class="form-row"><span></span><div>
<button type="button" class="red-ui-button seo-test"><i class="fa fa-plug"></i> <span data-i18n="${KEYS}dialog.test"></span></button>
<output></output></div></div>`;
const STYLE = `<style>
.seo-form .form-row { display: grid; grid-template-columns: minmax(80px, 130px) minmax(0, 1fr); gap: 4px 8px; align-items: center; }
.seo-form .form-row > label { width: auto; margin: 0; overflow-wrap: anywhere; }
.seo-form .form-row > :is(.seo-reason, .form-tips) { grid-column: 2; }
.seo-form .form-row > :is(.seo-reason, .form-tips):empty { display: none; }
.seo-form :is(.seo-reason, .seo-bad) { color: var(--red-ui-text-color-error); }
.seo-form .seo-good { color: var(--red-ui-text-color-success); }
.seo-form output { display: block; margin-top: 4px; overflow-wrap: anywhere; }
.seo-form summary { margin-bottom: 12px; cursor: pointer; }
</style>`;

/** The dialog of a node type, in static HTML. */
function template(type: string, { rows }: Form): string {
  const config = Object.values(rows).some(({ credential }) => credential);
  const line = ([name, row]: [string, Form["rows"][string]]) => {
    const id = `node-${config ? "config-" : ""}input-${name}`;
    return `<div class="form-row">
<label for="${id}" data-i18n="[title]${KEYS}${row.key}.help"><i class="fa fa-fw fa-${widgets[row.kind].icon}"></i> <span data-i18n="${KEYS}${row.key}.label"></span></label>
${widgets[row.kind].html(id, row)}
<div class="seo-reason" role="status"></div>${row.when ? '<div class="form-tips" role="status"></div>' : ""}
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
${lines(false)}${config ? `\n${TEST}` : ""}
${folded && `<details>\n<summary data-i18n="${KEYS}dialog.${config ? "advanced" : "more"}"></summary>\n${folded}\n</details>`}
</div>
</script>`;
}

/** The definition of a node type, as an object literal that the flow library's parser can read. */
function definition(type: string, { color, rows }: Form, icon: string): string {
  const entries = (credential: boolean) =>
    Object.entries(rows)
      .filter(([, row]) => Boolean(row.credential) === credential)
      .map(([name, { kind, node, value, required, source, key }]) => {
        const facts = credential
          ? `type: "password", required: true, validate: seo.validate("${name}")`
          : kind === "node"
            ? `value: "", type: ${literal(node)}, required: ${Boolean(required)}, label: seo.text("${key}.label")`
            : `value: ${literal(value)}, validate: seo.validate("${name}")`;
        return `    ${name}: { ${facts} },${source ? `\n    ${name}Type: { value: "msg" },` : ""}`;
      })
      .join("\n");
  const credentials = entries(true);
  return `RED.nodes.registerType(${literal(type)}, {
  category: ${literal(color ? CATEGORY : "config")},${
    color ? `\n  color: ${literal(color)},\n  inputs: 1,\n  outputs: 1,\n  icon: ${literal(icon)},` : ""
  }
  defaults: {
${entries(false)}
  },${credentials && `\n  credentials: {\n${credentials}\n  },`}
  paletteLabel: seo.title,
  label: seo.label,
  labelStyle: seo.labelStyle,
  oneditprepare: seo.prepare,
});`;
}

/** The page of the node set: dialogs and definitions. Its texts are in the catalogues and helps of the languages. */
export function page(types = build().types, icons: ReadonlySet<string> = new Set()): string {
  const forms = Object.entries(types).map(([type, { main, rows }]) => {
    const data = Object.entries(rows).map(([name, { label, help, ...row }]) => [name, row]);
    return [type, { main, rows: Object.fromEntries(data) }];
  });
  const icon = (type: string) => (icons.has(`${type}.svg`) ? `${type}.svg` : "file.svg");
  return `${STYLE}
${Object.entries(types)
  .map(([type, form]) => template(type, form))
  .join("\n")}
<script type="text/javascript">
(() => {
const seo = (${register})(RED, $, ${literal(Object.fromEntries(forms))}, "${PACKAGE}/${SET}:${KEYS}");
${Object.entries(types)
  .map(([type, form]) => definition(type, form, icon(type)))
  .join("\n")}
})();
</script>
`;
}

/** The help of all node types in the language of a catalogue; what that lacks is taken from the English one. */
export function help(types: Record<string, Form>, ...catalogues: Texts[]): string {
  const at = (texts: Texts, path: string) =>
    path
      .split(".")
      .reduce<string | Texts | undefined>((part, key) => (typeof part === "object" ? part[key] : undefined), texts);
  const text = (path: string, values: Record<string, string> = {}): string => {
    const found = catalogues.map((texts) => at(texts, KEYS + path)).find((one) => typeof one === "string") ?? "";
    return String(found).replace(/__(\w+)__/g, (whole, name) => values[name] ?? whole);
  };
  const html = (prose: string) => safe(prose).replace(/`([^`]+)`/g, "<code>$1</code>");
  const term = (name: string, type: string, prose: string, optional = false) =>
    `<dt${optional ? ' class="optional"' : ""}>${safe(name)} <span class="property-type">${safe(type)}</span></dt>\n<dd>${html(prose)}</dd>\n`;
  const section = (title: string, ...parts: string[]) =>
    parts.some(Boolean) ? `<h3>${safe(text(`help.${title}`))}</h3>\n${parts.filter(Boolean).join("\n")}\n` : "";
  const list = (terms: string[]) => (terms.length ? `<dl class="message-properties">\n${terms.join("")}</dl>` : "");
  const paragraph = (prose: string) => (prose ? `<p>${html(prose)}</p>` : "");

  const one = ([type, form]: [string, Form]) => {
    const field = ([name, row]: [string, Form["rows"][string]]) => {
      const value = (key: string) => `\`${key}\` ${text(`${row.key}.values.${key}`)}`;
      const said = row.default && (row.values ? value(row.default) : `\`${row.default}\``);
      const prose = [
        `${text(`${row.key}.label`)}: ${text(`${row.key}.help`)}`,
        row.values && text("help.choices", { values: Object.keys(row.values).map(value).join(", ") }),
        said && text(row.source ? "help.unsent" : "help.default", { value: said }),
        name === form.main && row.source && text("help.main"),
        row.kind === "secret" && row.source && text("help.secret"),
      ];
      return term(
        row.source ? row.value : name,
        widgets[row.kind].type,
        prose.filter(Boolean).join(" "),
        !row.required,
      );
    };
    const fields = (source: boolean) =>
      list(
        Object.entries(form.rows)
          .filter(([, row]) => Boolean(row.source) === source)
          .map(field),
      );
    const codes = Object.keys(at(catalogues.at(-1) ?? {}, `${KEYS}error`) ?? {});
    const palette = Boolean(form.color);
    return `<script type="text/html" data-help-name="${type}">
<p>${html(text(`node.${type}.help`))}</p>
${section("inputs", fields(true))}${
  palette
    ? section(
        "outputs",
        list([
          term("payload", "object | array", text(`node.${type}.returns`)),
          term("seo", "object", text("help.seo")),
        ]),
      ) +
      section(
        "errors",
        paragraph(text("help.failure")),
        list(codes.map((code) => term(code, "code", text(`error.${code}.help`)))),
      )
    : ""
}${section(
  "details",
  fields(false),
  paragraph(palette ? text("help.sources") : text("help.service")),
  form.path ? paragraph(text("help.request", { request: `\`${form.method} ${form.path}\`` })) : "",
)}${section("references", `<ul><li><a href="${HOME}" target="_blank">${safe(text("help.readme"))}</a></li></ul>`)}</script>
`;
  };
  return Object.entries(types).map(one).join("\n");
}

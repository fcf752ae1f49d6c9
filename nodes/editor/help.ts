import { listProperties, responseProperties } from "../../src/operations.js";
import type { Form, Texts } from "./forms.js";
import { KEYS, safe, widgets } from "./page.js";

const HOME = "https://github.com/seo-reports/node-red";

/** The properties that a record can have. */
const records = {
  report: [
    "id",
    "url",
    "project",
    "score",
    "result",
    "results",
    "privacy",
    "password",
    "generated_at",
    "created_at",
    "updated_at",
  ],
  project: ["project", "reports", "created_at"],
};

/** The properties of `msg.seo` that a node can send. */
const metadata = ({ list, deletes, lookup, params, metadata }: Form) =>
  metadata ?? [
    ...responseProperties,
    ...(list ? listProperties : []),
    ...(deletes ? ["alreadyDeleted"] : []),
    ...(lookup ? ["reconciled"] : []),
    ...(params?.existing ? ["outcome"] : []),
  ];

/** A value in prose, with its label if that differs. */
export const choice = (value: string, label: string) =>
  value.toLowerCase() === label.toLowerCase() ? `\`${value}\`` : `\`${value}\` ${label}`;

/** The help of all node types. A text comes from the first catalog that has it. */
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

  const codes = (names: string[]) => names.map((name) => `\`${name}\``).join(", ");
  const outputs = (type: string, form: Form) => {
    const record = (form.record ? records[form.record] : []).map((name) => {
      const more = text(`record.${name}`);
      return more ? `\`${name}\` (${more})` : `\`${name}\``;
    });
    const properties = record.length > 0 ? ` ${text("help.record", { properties: record.join(", ") })}` : "";
    if (form.outputs) {
      const ports = form.outputs.map(({ payload }, index) => {
        const terms = payload
          ? [term("payload", "object", text("help.progress", { properties: codes(payload) }))]
          : [
              term("payload", "object", text(`node.${type}.returns`) + properties),
              term("seo", "object", text("help.result", { properties: codes(metadata(form)) })),
            ];
        const topic = term("topic", "string", text("help.batch"));
        return `<li>${safe(text(`node.${type}.outputs.${index}`))}\n${list([...terms, topic])}</li>`;
      });
      return `<ol class="node-ports">\n${ports.join("\n")}\n</ol>`;
    }
    const issue = form.record === "report" ? ` ${text("help.issue")}` : "";
    return list([
      term("payload", form.list ? "object | array" : "object", text(`node.${type}.returns`) + properties + issue),
      term("seo", "object", text("help.seo", { properties: codes(metadata(form)) })),
    ]);
  };
  const link = (part: string, title: string) =>
    `<li><a href="${HOME}${part}" target="_blank">${safe(text(`help.${title}`))}</a></li>`;

  const one = ([type, form]: [string, Form]) => {
    const field = ([name, row]: [string, Form["rows"][string]]) => {
      const value = (key: string) => choice(key, text(`${row.key}.values.${key}`));
      const said = row.default && (row.values ? value(row.default) : `\`${row.default}\``);
      const prose = [
        `${text(`${row.key}.label`)}: ${text(`${row.key}.help`)}`,
        row.values && text("help.choices", { values: Object.keys(row.values).map(value).join(", ") }),
        said && text(row.value === row.default ? "help.default" : "help.unsent", { value: said }),
        row.initial && !row.default && text("help.initial", { value: `\`${row.initial}\`` }),
        name === form.main && form.path && text("help.main"),
        row.kind === "secret" && row.source && text("help.secret"),
      ];
      return term(
        row.source === "msg" ? row.value : name,
        row.types ?? (row.values && !Object.keys(row.values).some(Number) ? "string" : widgets[row.kind].type),
        prose.filter(Boolean).join(" "),
        !row.required,
      );
    };
    // Name and service are not explained in the help of each node.
    const own = Object.entries(form.rows).filter(([name, row]) => row.source || name in (form.options ?? form.rows));
    const fields = (read: boolean) => list(own.filter(([, row]) => (row.source === "msg") === read).map(field));
    const palette = Boolean(form.params);
    return `<script type="text/html" data-help-name="${type}">
<p>${html(text(`node.${type}.help`))}</p>
${section("inputs", fields(true))}${palette ? section("outputs", outputs(type, form)) : ""}${section("settings", fields(false))}${
  palette ? section("errors", paragraph(text("help.failure"))) : ""
}${section(
  "details",
  paragraph(text(palette ? "help.sources" : `node.${type}.details`)),
  form.path ? paragraph(text("help.request", { request: `\`${form.method} ${form.path}\`` })) : "",
  form.outputs ? paragraph(text("help.control")) : "",
)}${section("references", `<ul>${link("#readme", "readme")}${palette ? link("#errors", "codes") : ""}</ul>`)}</script>
`;
  };
  return Object.entries(types).map(one).join("\n");
}

import { codes } from "../../src/errors.js";
import { changes, type Field, type Operation, operations, service } from "../../src/operations.js";
import { choice } from "./help.js";

const table = (head: string[], rows: string[][]) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

const choices = ({ values = {} }: Field) =>
  Object.entries(values)
    .map(([value, label]) => choice(value, label))
    .join(", ");
const short = (type: string) => type.replace("seo-", "");
const code = (text?: string) => (text ? `\`${text}\`` : "");
const field = (name: string, one: Field) => [
  `\`${name}\``,
  one.help,
  choices(one),
  one.default ? `\`${one.default}\`` : "",
];

const types = { ...operations, "seo-report-changes": changes };

/** The README's tables, by the name in their marker. */
export const tables: Record<string, string> = {
  nodes: table(
    ["node", "request", "main parameter", "what it does"],
    Object.entries(types).map(([type, row]) => {
      const { method, path } = row as Partial<Operation>;
      return [`\`${type}\``, method ? `\`${method} ${path}\`` : "", row.main ? `\`${row.main}\`` : "", row.help];
    }),
  ),
  params: table(
    ["parameter", "of", "what it is", "values", "if not sent"],
    [...new Set(Object.values(operations).flatMap(({ params }) => Object.keys(params)))].map((name) => {
      const rows = Object.entries<Operation>(operations).filter(([, { params }]) => params[name]);
      const all = rows.map(([, { params }]) => params[name] as Field);
      const values = Object.assign({}, ...all.map((one) => one.values));
      const preset = ([type, { params }]: [string, Operation]) =>
        params[name]?.default ? [`\`${params[name].default}\` (\`${short(type)}\`)`] : [];
      const presets =
        new Set(all.map((one) => one.default)).size > 1 ? rows.flatMap(preset).join(", ") : code(all[0]?.default);
      const of = rows.map(([type]) => code(short(type))).join(", ");
      return [`\`${name}\``, of, all[0]?.help ?? "", choices({ ...(all[0] as Field), values }), presets];
    }),
  ),
  codes: table(
    ["code", "shown under the node", "what it means"],
    Object.entries(codes).map(([code, { status, help }]) => [`\`${code}\``, `_${status}_`, help]),
  ),
  service: table(
    ["property", "what it is", "values", "default"],
    Object.entries(service).map(([name, one]) => field(name, one)),
  ),
  changes: table(
    ["property", "what it is", "values", "default"],
    Object.entries(changes.options).map(([name, one]) => field(name, one)),
  ),
};

/** A text with each table between its markers, `<!-- table:name -->` and `<!-- /table -->`. */
export const withTables = (text: string) =>
  text.replace(/(<!-- table:(\w+) -->\n)[\s\S]*?(<!-- \/table -->)/g, (whole, open, name, close) =>
    tables[name] ? `${open}${tables[name]}\n${close}` : whole,
  );

import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Form } from "../nodes/editor/forms.js";
import { choice } from "../nodes/editor/help.js";
import { codes } from "../src/errors.js";
import { fill, table } from "./markdown.js";
import { root } from "./nodered.js";

const { types } = build();
const palette = Object.entries(types).filter(([, { params }]) => params);

const code = (text?: string) => (text ? `\`${text}\`` : "");
const request = ({ method, path }: Form) => code(path && `${method} ${path}`);

const nodes = () =>
  table(
    ["Palette", "Type", "What it does", "Main parameter"],
    palette.map(([type, { title, help, main }]) => [title, code(type), help, code(main)]),
  );
const errors = () =>
  table(
    ["Code", "Status under the node", "Meaning"],
    Object.entries(codes).map(([name, { status, help }]) => [code(name), status, help]),
  );

/** A line for each property of a node type's own, by its name. */
const linesOf = ({ params, options, rows }: Form) =>
  Object.entries(rows)
    .filter(([name]) => !params || name in { ...params, ...options })
    .map(([name, row]) => {
      const values = Object.entries(row.values ?? {}).map(([value, label]) => choice(value, label));
      const usual = row.initial || row.default;
      const facts = [
        row.help,
        values.length && `One of: ${values.join(", ")}.`,
        row.source === "msg" && row.value !== `payload.${name}` && `Reads ${code(`msg.${row.value}`)}.`,
        row.source === "str" && "Fixed.",
        row.required && "Required.",
        usual && `${row.value === usual ? "Default" : "Default of the service"}: ${code(usual)}.`,
      ];
      return [name, `- ${code(name)} (_${row.label}_): ${facts.filter(Boolean).join(" ")}`] as const;
    });

/** The properties of all node types: first those that several of them have, then the others of each. */
function properties(): string {
  const all = Object.entries(types).map(([type, form]) => ({ type, form, lines: linesOf(form) }));
  const counts = new Map<string, number>();
  for (const [, line] of all.flatMap(({ lines }) => lines)) counts.set(line, (counts.get(line) ?? 0) + 1);
  const common = new Map<string, string>();
  for (const [name, line] of all.flatMap(({ lines }) => lines)) {
    const most = Number(counts.get(common.get(name) ?? "") ?? 1);
    if (Number(counts.get(line)) > most) common.set(name, line);
  }
  const sections = all.map(({ type, form, lines }) => {
    const { title, help, returns } = form;
    const shared = lines.filter(([name, line]) => common.get(name) === line).map(([name]) => code(name));
    const own = lines.filter(([name, line]) => common.get(name) !== line).map(([, line]) => line);
    return [
      `## ${title}`,
      `${[code(type), request(form)].filter(Boolean).join(": ")}. ${help}${returns ? ` **Result**: ${returns}` : ""}`,
      [...own, ...(shared.length ? [`- [Common](#common-properties): ${shared.join(", ")}.`] : [])].join("\n"),
    ].join("\n\n");
  });
  return [`## Common properties\n\n${[...common.values()].join("\n")}`, ...sections].join("\n\n");
}

/** The themes of Node-RED 5, and the file of a picture in one of them. */
export const themes = ["light", "dark"] as const;
export const pictureOf = (name: string, theme: (typeof themes)[number]) =>
  `${name}${theme === "dark" ? "-dark" : ""}.png`;

/** The pictures of `npm run pictures`, side by side. */
const dialogs = () => {
  const pictures: [name: string, title: string][] = [
    ["seo-service", "SEO service"],
    ["seo-service-advanced", "SEO service, Advanced"],
    ["seo-queue", "SEO queue"],
    ...palette.map(([type, { title }]): [string, string] => [type, title]),
    ["statuses", "Statuses"],
  ];
  const cells = (name: string, title: string) =>
    themes.map((theme) => `![${title}, ${theme}](pictures/${pictureOf(name, theme)})`).join("\n");
  const sections = pictures.map(([name, title]) => `## ${title}\n\n${cells(name, title)}\n`);
  return `# Edit dialogs

Every edit dialog, with its advanced settings, in both themes of Node-RED 5. \`npm run pictures\` makes the pictures.

${sections.join("\n")}`;
};

/** The documents that `npm run docs` writes: path and text. */
export const documents = (): Record<string, string> => ({
  "README.md": fill("README.md", { nodes, errors }),
  "docs/dialogs.md": dialogs(),
  "docs/reference.md": fill("docs/reference.md", { properties }),
});

/** Every document of the project. */
export const pages: readonly string[] = [
  ...[
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "examples/README.md",
    ".github/pull_request_template.md",
  ],
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path)),
];

if (process.argv[1] === import.meta.filename)
  for (const [path, text] of Object.entries(documents())) writeFileSync(join(root, path), text);

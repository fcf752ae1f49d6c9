import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Form } from "../nodes/editor/forms.js";
import { choice } from "../nodes/editor/help.js";
import { codes } from "../src/errors.js";
import { byFolder, chart, importsOf } from "./imports.js";
import { root } from "./nodered.js";

const { types } = build();
const palette = Object.entries(types).filter(([, { color }]) => color);

const table = (head: string[], rows: string[][]) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
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
const imports = () => chart(byFolder(importsOf(["nodes", "src"])));

/** A document with each part between its markers, `<!-- generated:name -->` and `<!-- /generated -->`. */
const fill = (path: string, parts: Record<string, () => string>) =>
  Object.entries(parts).reduce(
    (text, [name, make]) => {
      const [open, close] = [`<!-- generated:${name} -->`, "<!-- /generated -->"];
      const [head, rest = ""] = text.split(open);
      if (!rest.includes(close)) throw new Error(`${path} has no ${open} … ${close}.`);
      return `${head}${open}\n\n${make()}\n\n${rest.slice(rest.indexOf(close))}`;
    },
    readFileSync(join(root, path), "utf8"),
  );

/** A node type: a heading, and a row for each property of its own. */
function section([type, form]: [string, Form]): string {
  const { title, help, returns, params, options, rows } = form;
  const own = { ...params, ...options };
  const cells = Object.entries(rows)
    .filter(([name]) => !params || name in own)
    .map(([name, row]) => {
      const values = Object.entries(row.values ?? {}).map(([value, label]) => choice(value, label));
      const described = [row.help, ...(values.length ? [`One of: ${values.join(", ")}.`] : [])].join(" ");
      const usual = row.initial || row.default;
      const unset = row.required
        ? "required"
        : code(usual) && `${row.value === usual ? "" : "service: "}${code(usual)}`;
      return [
        code(name),
        row.label,
        ...(params ? [row.source === "msg" ? code(`msg.${row.value}`) : row.source ? "a fixed value" : ""] : []),
        described,
        unset,
      ];
    });
  const head = ["Property", "Label", ...(params ? ["A new node reads"] : []), "Description", "Default"];
  return [
    `## ${title}`,
    [code(type), request(form)].filter(Boolean).join(": "),
    help,
    ...(returns ? [`**Result**: ${returns}`] : []),
    table(head, cells),
  ].join("\n\n");
}

const reference = () => `# Reference

Every property of every node, made from [the table of operations](../src/operations.ts) by \`npm run docs\`. Each node of the palette also has
\`name\` and \`service\`, the SEO service node to use. The README explains [inputs](../README.md#inputs),
[outputs](../README.md#outputs) and [errors](../README.md#errors).

- **A new node reads**: where the value comes from until you choose something else. The property with \`Type\` at the end
  of its name holds that choice: \`str\`, \`msg\`, \`flow\`, \`global\`, \`env\` or \`jsonata\`.
- **Default**: what a new node has. After "service:", what the service uses if the parameter is blank and so is not sent.

${Object.entries(types).map(section).join("\n\n")}
`;

/** The documents that `npm run docs` writes: path and text. */
export const documents = (): Record<string, string> => ({
  "README.md": fill("README.md", { nodes, errors }),
  "CONTRIBUTING.md": fill("CONTRIBUTING.md", { imports }),
  "docs/reference.md": reference(),
});

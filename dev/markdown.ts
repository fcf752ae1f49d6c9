import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./nodered.js";

/** Three significant digits. */
function figure(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Numbers are aligned at the right, by the first row. */
export const table = (head: string[], rows: (string | number)[][]) =>
  [head, head.map((_, column) => (typeof rows[0]?.[column] === "number" ? "---:" : "---")), ...rows]
    .map((cells) => `| ${cells.map((cell) => (typeof cell === "number" ? figure(cell) : cell)).join(" | ")} |`)
    .join("\n");

/** A document with each part between its markers, `<!-- generated:name -->` and `<!-- /generated -->`. */
export const fill = (path: string, parts: Record<string, () => string>) =>
  Object.entries(parts).reduce(
    (text, [name, make]) => {
      const [open, close] = [`<!-- generated:${name} -->`, "<!-- /generated -->"];
      const [head, rest = ""] = text.split(open);
      if (!rest.includes(close)) throw new Error(`${path} has no ${open} … ${close}.`);
      return `${head}${open}\n\n${make()}\n\n${rest.slice(rest.indexOf(close))}`;
    },
    readFileSync(join(root, path), "utf8"),
  );

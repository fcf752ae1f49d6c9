import { readFileSync, writeFileSync } from "node:fs";

/** Numbers get three significant digits. */
export function figure(value: number | string): string {
  if (typeof value === "string") return value;
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The first column is text. */
export const table = (head: string[], rows: (string | number)[][]) =>
  [head, head.map((_, column) => (column === 0 ? "---" : "---:")), ...rows]
    .map((cells) => `| ${cells.map(figure).join(" | ")} |`)
    .join("\n");

/** Replaces the text between the marks in a document. */
export function fillIn(file: string, text: string, name = "bench"): void {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const [head, rest = ""] = readFileSync(file, "utf8").split(begin);
  const [, tail = ""] = rest.split(end);
  writeFileSync(file, `${head}${begin}\n\n${text}\n\n${end}${tail}`);
}

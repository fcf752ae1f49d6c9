import { readFileSync, writeFileSync } from "node:fs";
import { nodeRed } from "../nodered.js";

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

/** The versions that a bench ran with. */
export const versions = () => `Node-RED ${nodeRed().version}, Node ${process.versions.node}`;

/** Prints the result of a soak test, and ends the process; the test failed if there is a problem. */
export function conclude(values: Record<string, string | number>, problems: Record<string, number>): never {
  const rows = Object.entries({ ...values, ...problems }).map(([name, value]) => [name, String(value)]);
  console.log(`${versions()}\n\n${table(["", ""], rows)}`);
  const found = Object.entries(problems).flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name}`]));
  if (found.length > 0) console.error(`\nThe soak test failed: ${found.join(", ")}.`);
  process.exit(found.length > 0 ? 1 : 0);
}

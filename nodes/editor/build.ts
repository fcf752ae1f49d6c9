import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { build, SET, type Texts } from "./forms.js";
import { help } from "./help.js";
import { unmarked } from "./marks.js";
import { page } from "./page.js";

/** Runs after tsc: writes the files that Node-RED expects beside the compiled entry, and removes what has lost its source. */
const root = join(import.meta.dirname, "../../..");
const dist = join(root, "dist");
const out = join(dist, "nodes");
const written = new Set<string>();
/** Does not touch a file that is up to date, because another process may be reading it. */
const write = (path: string, text: string) => {
  const file = resolve(out, path);
  written.add(file);
  if (existsSync(file) && readFileSync(file, "utf8") === text) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
};

const { types, english } = build();
const icons = readdirSync(join(root, "icons"));
for (const icon of icons) write(`icons/${icon}`, readFileSync(join(root, "icons", icon), "utf8"));
write(`${SET}.html`, page(types, new Set(icons)));

const folder = join(root, "nodes/locales");
const catalogues = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".json")) : [];
// en-US.json is what the others were translated from, and can be older than the table.
const translations = catalogues.filter((file) => file !== "en-US.json");
const languages: [string, Texts][] = translations.map((file) => [
  file.replace(/\.json$/, ""),
  JSON.parse(unmarked(readFileSync(join(folder, file), "utf8"))),
]);
for (const [language, catalogue] of [["en-US", english] as const, ...languages]) {
  write(`locales/${language}/${SET}.json`, `${JSON.stringify(catalogue, null, 2)}\n`);
  write(`locales/${language}/${SET}.html`, help(types, catalogue, english));
}

for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath, entry.name);
  const source = join(root, relative(dist, file).replace(/(\.d\.ts|\.js)$/, ".ts"));
  if (entry.isFile() && !written.has(file) && !existsSync(source) && entry.name !== ".tsbuildinfo") rmSync(file);
}

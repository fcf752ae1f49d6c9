import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MARK } from "../nodes/editor/marks.js";
import { root } from "./nodered.js";

const REPOSITORY = "https://github.com/seo-reports/node-red";

/** The notes of a release: its section of the CHANGELOG, with whole links. Throws if the tag, package.json and the CHANGELOG differ in the version. */
export function releaseNotes(tag: string, changelog: string, version: string): string {
  if (tag !== `v${version}`) throw new Error(`The tag is ${tag}, but the version in package.json is ${version}.`);
  const [, section] = changelog.split(`\n## [${version}]`);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section [${version}].`);
  // The first line has the date. The links of all versions follow the last section.
  const [text = ""] = section.slice(section.indexOf("\n")).split(/\n(?:## |\[[^\]]+\]: )/);
  return text.trim().replace(/\]\((?!https?:)/g, `](${REPOSITORY}/blob/${tag}/`);
}

/** The lines of the catalogs in a folder that have a text to translate. */
export const untranslated = (folder: string): string[] =>
  readdirSync(folder).flatMap((file) =>
    readFileSync(join(folder, file), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        line.includes(`"${MARK}`) ? [`nodes/locales/${file}:${index + 1}: ${line.trim()}`] : [],
      ),
  );

if (process.argv[1] === import.meta.filename) {
  const read = (file: string) => readFileSync(join(root, file), "utf8");
  const left = untranslated(join(root, "nodes/locales"));
  if (left.length > 0) {
    console.error(["Translate these texts:", ...left].join("\n"));
    process.exit(1);
  }
  const { version } = JSON.parse(read("package.json")) as { version: string };
  console.log(releaseNotes(process.argv[2] ?? "", read("CHANGELOG.md"), version));
}

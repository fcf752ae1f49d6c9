import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./nodered.js";

/** The notes of a release: its section of the CHANGELOG. Throws if the tag, package.json and the CHANGELOG differ in the version. */
export function releaseNotes(tag: string, changelog: string, version: string): string {
  if (tag !== `v${version}`) throw new Error(`The tag is ${tag}, but the version in package.json is ${version}.`);
  const [, section] = changelog.split(`\n## [${version}]`);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section [${version}].`);
  // The first line has the date. The links of all versions follow the last section.
  return (
    section
      .slice(section.indexOf("\n"))
      .split(/\n(?:## |\[[^\]]+\]: )/)[0]
      ?.trim() ?? ""
  );
}

if (process.argv[1] === import.meta.filename) {
  const read = (file: string) => readFileSync(join(root, file), "utf8");
  const { version } = JSON.parse(read("package.json")) as { version: string };
  console.log(releaseNotes(process.argv[2] ?? "", read("CHANGELOG.md"), version));
}

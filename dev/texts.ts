import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Texts } from "../nodes/editor/forms.js";
import { MARK } from "../nodes/editor/marks.js";
import { root } from "./nodered.js";
import { untranslated } from "./release.js";

/** `npm run texts`: gives every language the keys of the English catalog. New and changed texts are in English, with a mark. */
const folder = join(root, "nodes/locales");
const read = (file: string) => JSON.parse(readFileSync(join(folder, file), "utf8")) as Texts;
const inside = (texts: Texts, key: string) => (texts[key] ?? {}) as Texts;

const { english } = build();
const source = read("en-US.json");

/** The English texts, with their translations if the English has not changed since, else with a mark, unless they are numbers. */
const translate = (now: Texts, old: Texts, translated: Texts): Texts =>
  Object.fromEntries(
    Object.entries(now).map(([key, text]) => {
      if (typeof text !== "string") return [key, translate(text, inside(old, key), inside(translated, key))];
      return [key, (text === old[key] && translated[key]) || (/^\d+$/.test(text) ? text : MARK + text)];
    }),
  );

for (const file of readdirSync(folder)) {
  const texts = file === "en-US.json" ? english : translate(english, source, read(file));
  writeFileSync(join(folder, file), `${JSON.stringify(texts, null, 2)}\n`);
}
for (const line of untranslated(folder)) console.log(line);

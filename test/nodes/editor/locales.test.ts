import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../../dev/nodered.js";
import { untranslated } from "../../../dev/release.js";
import { build, SET, type Texts } from "../../../nodes/editor/forms.js";
import { MARK, unmarked } from "../../../nodes/editor/marks.js";
import { safe } from "../../../nodes/editor/page.js";

const read = (...path: string[]) => readFileSync(join(root, ...path), "utf8");
const { types, english } = build();

/** Every text of a catalogue by its key. */
function flat(texts: Texts, path = ""): Record<string, string> {
  const parts = Object.entries(texts).map(([key, text]) =>
    typeof text === "string" ? { [path + key]: text } : flat(text, `${path}${key}.`),
  );
  return Object.assign({}, ...parts);
}

/** The texts that equal the English ones in a language, or in all. A number always does. */
const same: Record<string, string[]> = {
  all: ["URL", "TLS", "PUT", "PATCH"],
  de: ["Details", "Name", "Proxy"],
  "es-ES": ["No", "Proxy"],
  fr: ["Condition", "Documentation", "Pages", "Proxy", "Public", "Score", "Service"],
  "pt-BR": ["Proxy"],
};

/** Fails with one line for each problem. */
const none = (problems: string[], remedy = "") => {
  if (problems.length > 0) assert.fail(["", ...problems, remedy].join("\n"));
};

const found = (text: string, what: RegExp) => (text.match(what) ?? []).sort();
const placeholders = (text: string) => found(text, /__[a-zA-Z]+__/g);
const code = (text: string) => found(text, /`[^`]*`/g);
/** Names and values that must not be translated, with or without backticks. */
const names = (text: string) =>
  found(text, /\$\{\w*\}|\/[a-z]+\/\w+|[A-Z]+_[A-Z_]+|msg(?:\.[a-z]+)+|[a-z]+[A-Z]\w+|\b(?:0|\d[\dx]+)\b/g);

const FIELD = /__[a-z]+__/g;
const WIDE = /[ᄀ-ᇿ⺀-〿぀-ヿ㐀-鿿가-힣＀-￯]/g;
/** The width of a text in columns. A Chinese, Japanese or Korean character is two columns wide. */
const width = (text: string) => text.length + (text.match(WIDE) ?? []).length;
const LONGEST = 40;
/** Long values of placeholders; the others are "100". */
const LONG: Record<string, string> = { __done__: "12,043", __total__: "50,000", __left__: "14 h" };
const filled = (text: string) => text.replace(FIELD, (field) => LONG[field] ?? "100");
/** True for a text below a node. The other texts under "status" are logged. */
const isStatus = (key: string) =>
  /\.status$/.test(key) ||
  (key.startsWith(`${SET}.status.`) &&
    !/\.(overwritten|dropped|uncertain|runsDropped|pagesDropped|pagesLeft)$/.test(key));

/** Node-RED treats a status with a period or a colon as a catalog key. */
const fits = (text: string) => width(filled(text)) <= LONGEST && !/[.:]/.test(text.replace("msg.seo.error", ""));
const RULE = `A status has at most ${LONGEST} columns when filled in, and no period or colon.`;

/** The English source of the translations. The build generates the current English. */
const SOURCE = "nodes/locales/en-US.json";
const languages = readdirSync(join(root, "nodes/locales"))
  .map((file) => file.replace(/\.json$/, ""))
  .filter((language) => language !== "en-US");
const texts = flat(english);

describe("The translations", () => {
  it("exist for every language of Node-RED's own nodes", () => {
    const own = readdirSync(join(root, "node_modules/@node-red/nodes/locales"));
    assert.equal(own.length, 10);
    const others = own.filter((language) => !["en-US", ...languages].includes(language));
    assert.deepEqual(others, []);
  });

  /** A copy of the build, with languages of its own. */
  const copyBuild = () => {
    const copy = mkdtempSync(join(tmpdir(), "seo-language-"));
    for (const path of ["dist/nodes", "dist/src", "dist/dev", "dist/sandbox", "nodes/locales", "icons", "package.json"])
      cpSync(join(root, path), join(copy, path), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    return copy;
  };

  it("include a new language once its file exists, as CONTRIBUTING says", () => {
    const copy = copyBuild();
    const catalogue = read("dist/nodes/locales/en-US", `${SET}.json`).replaceAll("Base URL", "URL di base");
    writeFileSync(join(copy, "nodes/locales/it.json"), catalogue);
    execFileSync(process.execPath, [join(copy, "dist/nodes/editor/build.js")]);
    const built = (ending: string) => readFileSync(join(copy, `dist/nodes/locales/it/${SET}.${ending}`), "utf8");
    assert.deepEqual(JSON.parse(built("json")), JSON.parse(catalogue));
    assert.match(built("html"), /data-help-name="seo-report-store"/);
    rmSync(copy, { recursive: true });
  });

  it("were made from the current English", () => {
    const source = flat(JSON.parse(read(SOURCE)));
    const stale = [...new Set([...Object.keys(source), ...Object.keys(texts)])]
      .filter((key) => source[key] !== texts[key])
      .map((key) => `${key}\n  was: ${source[key] ?? "(no text)"}\n  now: ${texts[key] ?? "(no text)"}`);
    none(stale, "Run npm run texts, then this test again. It lists what to translate.");
  });

  it("keep what is current, mark the rest, and must be complete before a release", () => {
    const copy = copyBuild();
    const file = (language: string) => join(copy, `nodes/locales/${language}.json`);
    const change = (language: string, edit: (texts: Record<string, Texts>) => void) => {
      const catalogue = JSON.parse(read("nodes/locales", `${language}.json`));
      edit(catalogue[SET]);
      writeFileSync(file(language), JSON.stringify(catalogue));
    };
    change("en-US", ({ dialog }) => Object.assign(dialog ?? {}, { fixed: "The earlier English" }));
    change("de", (all) => {
      delete all.status;
      Object.assign(all, { gone: { key: "text" } });
    });
    const printed = execFileSync(process.execPath, [join(copy, "dist/dev/texts.js")], { encoding: "utf8" });
    const written = (language: string) => JSON.parse(readFileSync(file(language), "utf8"))[SET];
    const before = JSON.parse(read("nodes/locales/de.json"))[SET];
    const { dialog, status } = english[SET] as Record<string, Record<string, string>>;
    const marked = Object.fromEntries(Object.entries(status ?? {}).map(([key, text]) => [key, MARK + text]));
    assert.deepEqual(written("en-US"), english[SET]);
    assert.deepEqual(written("de"), {
      ...before,
      dialog: { ...before.dialog, fixed: MARK + dialog?.fixed },
      status: marked,
    });
    const left = untranslated(join(copy, "nodes/locales"));
    const line = `"fixed": "${MARK}${dialog?.fixed}"`;
    assert.ok(left.some((one) => /^nodes\/locales\/de\.json:\d+: /.test(one) && one.includes(line)));
    assert.equal(printed, `${left.join("\n")}\n`);

    assert.throws(
      () => execFileSync(process.execPath, [join(copy, "dist/dev/release.js")], { stdio: "pipe" }),
      ({ stderr }) => left.every((line) => String(stderr).includes(line)),
    );
    execFileSync(process.execPath, [join(copy, "dist/nodes/editor/build.js")]);
    const built = JSON.parse(readFileSync(join(copy, `dist/nodes/locales/de/${SET}.json`), "utf8"))[SET];
    assert.deepEqual(built.status, status);
    rmSync(copy, { recursive: true });
  });

  it("start from English statuses that fit under a node", () => {
    const wrong = Object.entries(texts).filter(([key, text]) => isStatus(key) && !fits(text));
    const lines = wrong.map(([key, text]) => `${key}: ${text}`);
    none(lines, RULE);
  });

  for (const language of languages) {
    describe(language, () => {
      const file = `nodes/locales/${language}.json`;
      const lines = read(file)
        .split("\n")
        .flatMap((line, index) => (/": ".*"/.test(line) ? [index + 1] : []));
      const marked = flat(JSON.parse(read(file)));
      const catalogue = JSON.parse(unmarked(read(file))) as Texts;
      const translated = flat(catalogue);
      const places = Object.fromEntries(Object.keys(translated).map((key, index) => [key, `${file}:${lines[index]}`]));
      /** The texts that have a problem, and where they are. */
      const list = (isWrong: (text: string, original: string, key: string) => boolean) =>
        Object.entries(texts).flatMap(([key, original]) => {
          const text = translated[key];
          return text !== undefined && isWrong(text, original, key) ? [{ place: places[key], text, original }] : [];
        });
      const shown = ({ place, text, original }: ReturnType<typeof list>[number]) =>
        `${place}: ${text}\n  English: ${original}`;

      it("has the keys of the English catalog, and a text for each", () => {
        const beside = (one: Texts, other: Texts) => Object.keys(one).filter((key) => !(key in other));
        const missing = beside(texts, translated).map((key) => `${file}: ${key} is missing`);
        const unknown = beside(translated, texts).map((key) => `${places[key]}: ${key} is not in the English catalog`);
        none([...missing, ...unknown], "Run npm run texts, then this test again.");
        none(list((text) => !text || text !== text.trim()).map(shown), "A text is blank, or has a space at an end.");
      });

      it("keeps placeholders, code and names", () => {
        const kept = (text: string) => [placeholders, code, names].map((of) => of(text).join(" ")).join("\n");
        const remedy = "Keep __placeholders__, text in backticks, names and numbers as they are in English.";
        none(list((text, original) => kept(text) !== kept(original)).map(shown), remedy);
      });

      it("has no text left in English", () => {
        const allowed = [...(same.all ?? []), ...(same[language] ?? [])];
        const isAlike = (text: string, original: string) => text === original && /\D/.test(text);
        const left = list((text, original, key) => isAlike(text, original) && text === marked[key]);
        none(
          left.filter(({ text }) => !allowed.includes(text)).map(shown),
          "Translate them. If a word is the same in both languages, add it to `same` in test/nodes/editor/locales.test.ts.",
        );
        // Those with a mark may stay as they are.
        const alike = list(isAlike).map(({ text }) => text);
        none(
          allowed.filter((word) => !alike.includes(word)).map((word) => `${word} is not in ${file}`),
          "Remove them from `same` in test/nodes/editor/locales.test.ts.",
        );
      });

      it("has statuses that fit under a node and contain no key separators", () => {
        none(list((text, original, key) => isStatus(key) && text !== original && !fits(text)).map(shown), RULE);
      });

      it("is built, with help that begins in the language", () => {
        assert.deepEqual(JSON.parse(read("dist/nodes/locales", language, `${SET}.json`)), catalogue);
        const help = read("dist/nodes/locales", language, `${SET}.html`);
        for (const type of Object.keys(types)) {
          const first = translated[`${SET}.node.${type}.help`] ?? texts[`${SET}.node.${type}.help`] ?? "";
          assert.ok(help.includes(`data-help-name="${type}">\n<p>${safe(first)}</p>`), type);
        }
        assert.ok(help.includes(`<h3>${safe(translated[`${SET}.help.outputs`] ?? "")}</h3>`));
      });
    });
  }
});

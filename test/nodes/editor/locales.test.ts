import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../../dev/nodered.js";
import { build, SET, type Texts } from "../../../nodes/editor/forms.js";
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

/** The texts that equal the English ones in a language, or in all. */
const same: Record<string, string[]> = {
  all: ["URL", "TLS", "PUT", "PATCH", "10", "25", "50", "100"],
  de: ["Details", "Name", "Proxy"],
  "es-ES": ["No", "Proxy"],
  fr: ["Condition", "Documentation", "Pages", "Proxy", "Public", "Score", "Service"],
  "pt-BR": ["Proxy"],
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
  /\.status$/.test(key) || (key.startsWith(`${SET}.status.`) && !/\.(overwritten|dropped|pagesDropped)$/.test(key));

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
    assert.deepEqual(
      own.filter((language) => !["en-US", ...languages].includes(language)),
      [],
    );
  });

  it("include a new language once its file exists, as CONTRIBUTING says", () => {
    const copy = mkdtempSync(join(tmpdir(), "seo-language-"));
    for (const path of ["dist/nodes", "dist/src", "nodes/locales", "icons", "package.json"])
      cpSync(join(root, path), join(copy, path), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
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
    const keys = [...new Set([...Object.keys(source), ...Object.keys(texts)])];
    const stale = keys
      .filter((key) => source[key] !== texts[key])
      .map((key) => `${key}\n  was: ${source[key] ?? "(no text)"}\n  now: ${texts[key] ?? "(no text)"}`);
    const remedy = `Translate in ${languages.join(", ")}, then:\ncp dist/nodes/locales/en-US/${SET}.json ${SOURCE}`;
    assert.ok(stale.length === 0, [...stale, remedy].join("\n"));
  });

  it("start from English statuses that fit under a node", () => {
    for (const [key, text] of Object.entries(texts)) {
      if (!isStatus(key)) continue;
      assert.ok(width(filled(text)) <= LONGEST, text);
      assert.doesNotMatch(text.replace("msg.seo.error", ""), /[.:]/, key);
    }
  });

  for (const language of languages) {
    describe(language, () => {
      const catalogue = JSON.parse(read("nodes/locales", `${language}.json`)) as Texts;
      const translated = flat(catalogue);
      const each = (check: (text: string, original: string, key: string) => void) => {
        for (const [key, original] of Object.entries(texts)) check(translated[key] ?? "", original, key);
      };

      it("has the keys of the English catalog, and a text for each", () => {
        const beside = (one: Texts, other: Texts) => Object.keys(one).filter((key) => !(key in other));
        assert.deepEqual(
          { missing: beside(texts, translated), unknown: beside(translated, texts) },
          { missing: [], unknown: [] },
        );
        each((text, _, key) => {
          assert.ok(text.trim(), key);
          assert.equal(text, text.trim(), key);
        });
      });

      it("keeps placeholders, code and names", () => {
        each((text, original, key) => {
          assert.deepEqual(placeholders(text), placeholders(original), key);
          assert.deepEqual(code(text), code(original), key);
          assert.deepEqual(names(text), names(original), key);
        });
      });

      it("has no text left in English", () => {
        const allowed = [...(same.all ?? []), ...(same[language] ?? [])];
        const used = Object.entries(texts).flatMap(([key, text]) => (translated[key] === text ? [text] : []));
        const left = used.filter((text) => !allowed.includes(text));
        assert.deepEqual(left, [], "translate them, or allow them in `same`, above");
        for (const text of allowed) assert.ok(used.includes(text), `${text} need not be allowed`);
      });

      it("has statuses that fit under a node and contain no key separators", () => {
        each((text, _, key) => {
          if (!isStatus(key)) return;
          assert.ok(width(filled(text)) <= LONGEST, `${key}: ${text}`);
          assert.doesNotMatch(text.replace("msg.seo.error", ""), /[.:]/, `${key} has a full stop or a colon: ${text}`);
        });
      });

      it("is built, with help that begins in the language", () => {
        assert.deepEqual(JSON.parse(read("dist/nodes/locales", language, `${SET}.json`)), catalogue);
        const help = read("dist/nodes/locales", language, `${SET}.html`);
        for (const type of Object.keys(types)) {
          const first = translated[`${SET}.node.${type}.help`] ?? "";
          assert.ok(help.includes(`data-help-name="${type}">\n<p>${safe(first)}</p>`), type);
        }
        assert.ok(help.includes(`<h3>${safe(translated[`${SET}.help.outputs`] ?? "")}</h3>`));
      });
    });
  }
});

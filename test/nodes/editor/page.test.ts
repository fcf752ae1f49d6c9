import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import fc from "fast-check";
import { root } from "../../../dev/nodered.js";
import { build, type Texts } from "../../../nodes/editor/forms.js";
import { help } from "../../../nodes/editor/help.js";
import { bundle, page } from "../../../nodes/editor/page.js";
import { phrases, stages } from "../../../nodes/editor/phrases.js";
import { codes } from "../../../src/errors.js";
import {
  type ConfigNode,
  configNodes,
  type Field,
  type NodeType,
  nodeTypes,
  operations,
  type Param,
  service,
} from "../../../src/operations.js";
import { createValidator } from "../../../src/schema.js";
import { type Any, createEditor, fillIn, MODULES, STORES } from "../../support/editor.js";

const icons = new Set(readdirSync(join(root, "icons")));
const { types, english } = build();
const html = page(types, icons);
const helps = help(types, english);
const editor = () => createEditor(page(types, icons, MODULES), english);
const table: Record<string, NodeType> = nodeTypes;
const at = (path: string) => path.split(".").reduce<Any>((texts, key) => texts?.[key], english);
const helpOf = (all: string, type: string) =>
  all.match(new RegExp(`data-help-name="${type}">([^]*?)</script>`))?.[1] ?? "";
/** The property of msg that a new node reads a parameter from, unless it has a fixed value. */
const readFrom = (name: string, { reads, initial, wire = name }: Param, main?: string) =>
  initial === undefined ? (reads ?? (name === main ? "payload" : `payload.${wire}`)) : undefined;
/** The label of a choice's value: with the value itself if its text is another one. */
const labelOf = (value: string, text: string) =>
  text === value || text.toLowerCase() === value ? text : `${text} (${value})`;
/** The label of a node in the workspace. */
const titleOf = (node: Any) => node._def.label.call(node);
const valuesOf = (options: Any) => options.toArray().map(({ attribs }: Any) => attribs.value);
/** Answers a request of the editor, and waits until it has shown that. */
async function answer(request: { answer(ok: boolean, value: unknown): void } | undefined, ok: boolean, value: unknown) {
  request?.answer(ok, value);
  await pause(1);
}
/** The properties of every operation node, beside its parameters and options. */
const COMMON = ["name", "service"];
/** Names reserved by the editor or the runtime. */
const RESERVED =
  /^(.|id|type|wires|inputs|outputs|info|status|dirty|changed|selected|users|valid|validationErrors|inputLabels|outputLabels|moved|send|error|warn|log|debug|trace|close|context|on|receive|metric|emit|credentials|_.*)$/;

/** A new SEO service node, as its requests say. */
const usual: Record<string, string> = { id: "s", name: "" };
for (const [name, row] of Object.entries<Field>(service)) usual[name] = row.initial ?? row.default ?? "";

describe("The editor page", () => {
  for (const [type, row] of Object.entries(table)) {
    describe(type, () => {
      const params = Object.keys(row.params);
      const fields = [...COMMON, ...params.flatMap((name) => [name, `${name}Type`]), ...Object.keys(row.options)];

      it("has the same properties in the table, the definition and the edit dialog", () => {
        const { definitions, template } = editor();
        const ids = [...template(type).matchAll(/<(?:input|select)[^>]* id="node-input-(\w+)"/g)].map(([, id]) => id);
        assert.deepEqual(Object.keys(definitions[type].defaults), fields);
        assert.deepEqual(ids.sort(), [...fields].sort());
        for (const name of fields) assert.doesNotMatch(name, RESERVED);
      });

      it("reads each parameter of a new node from its property of msg, or has a fixed value", () => {
        const { defaults } = editor().definitions[type];
        for (const [name, param] of Object.entries(row.params)) {
          const read = readFrom(name, param, row.main);
          assert.equal(defaults[name].value, read ?? param.initial);
          assert.equal(defaults[`${name}Type`].value, read ? "msg" : "str");
        }
        for (const [name, option] of Object.entries(row.options))
          assert.equal(defaults[name].value, option.default ?? "");
      });

      it("has a label for every field, and the required fields above the fold", () => {
        const template = editor().template(type);
        for (const name of [...COMMON, ...params, ...Object.keys(row.options)])
          assert.match(template, new RegExp(`<label\\s+for="node-input-${name}"`));
        const fold = template.indexOf("<details>");
        for (const [name, { fold: folded = false }] of Object.entries({ ...row.params, ...row.options }))
          assert.equal(template.indexOf(`id="node-input-${name}"`) > fold && fold > -1, folded, name);
      });

      it("offers every value of a choice, after a blank value if it is optional", () => {
        const { add, open } = editor();
        const $ = open(add(type));
        for (const [name, { values, initial, required = Boolean(initial) }] of Object.entries(row.params)) {
          const [fixed, ...others] = $(`#node-input-${name}`)[0].types;
          assert.deepEqual([...others], ["msg", "flow", "global", "env", "jsonata"]);
          if (!values) assert.equal(fixed, "str");
          else {
            assert.equal(fixed.value, "str");
            const offered = fixed.options.map(({ value }: Any) => value);
            assert.deepEqual([...offered], [...(required ? [] : [""]), ...Object.keys(values)]);
            for (const { value, label } of fixed.options.slice(required ? 0 : 1))
              assert.equal(label, labelOf(value, values[value] ?? ""));
          }
        }
        for (const [name, { kind, values = {} }] of Object.entries(row.options)) {
          if (kind === "store") continue;
          assert.deepEqual(valuesOf($(`#node-input-${name} option`)), Object.keys(values));
        }
      });

      it("documents every parameter, option and error code in its help, after a summary", () => {
        const text = helpOf(helps, type);
        assert.ok(text.trim().startsWith(`<p>${row.help.replace(/'/g, "&#39;")}</p>`));
        for (const [name, param] of Object.entries(row.params))
          assert.ok(text.includes(`>${readFrom(name, param, row.main) ?? name} <span`), name);
        for (const name of [...Object.keys(row.options), "payload", "seo"])
          assert.match(text, new RegExp(`<dt[^>]*>${name} <span`));
        const parts = [...text.matchAll(/<h3>(.*?)<\/h3>/g)].map(([, part]) => part);
        const reads = Object.entries(row.params).some(([name, param]) => readFrom(name, param, row.main));
        const needed = ["Outputs", "Settings", "Errors", "Details", "References"];
        assert.deepEqual(parts, [...(reads ? ["Inputs"] : []), ...needed]);
        for (const code of Object.keys(codes)) assert.ok(!text.includes(code), "the README explains the codes");
      });

      it("lists in its help what a new node reads from msg under Inputs, and other fields under Settings", () => {
        const [inputs = "", rest = ""] = helpOf(helps, type).split("<h3>Outputs</h3>");
        for (const [name, { source, value, values, types: known }] of Object.entries(types[type]?.rows ?? {})) {
          if (!source && !(name in row.options)) continue;
          const read = source === "msg";
          const [, kind] = (read ? inputs : rest).match(`>${read ? value : name} <span[^>]*>(.*?)<`) ?? [];
          assert.ok(kind, name);
          if (known) assert.equal(kind, known, name);
          if (values) assert.equal(kind === "string", !Object.keys(values).some((one) => /^\d+$/.test(one)), name);
        }
      });

      it("accepts the same fixed values of fields that depend on each other as the schema", () => {
        const { add } = editor();
        const accepts = createValidator(row.params);
        const main = row.main ? { [row.main]: row.params[row.main]?.example } : {};
        for (const [name, { when, requiredIf }] of Object.entries(row.params)) {
          const others = Object.keys({ ...when, ...requiredIf });
          if (others.length === 0) continue;
          const all = others.reduce<Record<string, string>[]>(
            (some, other) =>
              ["", ...Object.keys(row.params[other]?.values ?? {})].flatMap((value) =>
                some.map((one) => ({ ...one, [other]: value })),
              ),
            [{ [name]: "" }, { [name]: "x" }],
          );
          for (const values of all) {
            const types = Object.fromEntries(Object.keys(values).map((one) => [`${one}Type`, "str"]));
            const validate = (more: object) => {
              const node = add(type, "n", { ...values, ...types, ...more });
              return node._def.defaults[name].validate.call(node, values[name], {}) === true;
            };
            let schema = true;
            try {
              accepts({ ...main, ...values });
            } catch {
              schema = false;
            }
            assert.equal(validate({}), schema, JSON.stringify(values));
            const unknown = Object.fromEntries(others.map((other) => [`${other}Type`, "msg"]));
            assert.ok(validate(unknown), "the message can have values that fit");
          }
        }
      });

      it("has its own icon", () => assert.ok(icons.has(`${type}.svg`), `icons/${type}.svg is missing`));
    });
  }

  for (const [type, { settings, credential, place }] of Object.entries<ConfigNode>(configNodes)) {
    describe(type, () => {
      const { definitions, template } = editor();
      const { defaults, credentials, category } = definitions[type];
      const fields = { ...settings, ...credential };

      it("has its settings and one credential in the edit dialog and in the help", () => {
        const text = template(type);
        const ids = [...text.matchAll(/<(?:input|select)[^>]* id="node-config-input-(\w+)"/g)].map(([, id]) => id);
        assert.equal(category, "config");
        assert.deepEqual(Object.keys(defaults), ["name", ...Object.keys(settings)]);
        assert.deepEqual([Object.keys(credentials), Object.keys(credential).length], [Object.keys(credential), 1]);
        assert.deepEqual(ids.sort(), ["name", ...Object.keys(fields)].sort());
        for (const id of ids) assert.match(text, new RegExp(`<label\\s+for="node-config-input-${id}"`));
        for (const [name, { kind, node, unit }] of Object.entries(fields)) {
          assert.match(helpOf(helps, type), new RegExp(`<dt[^>]*>${name} <span`));
          if (unit) assert.ok(text.includes(`.field.${name}.label" data-unit="${unit}"`), name);
          if (kind === "node") assert.deepEqual([defaults[name].type, defaults[name].required], [node, false]);
        }
        for (const name of Object.keys(credential)) {
          assert.equal(credentials[name].type, "password");
          assert.match(text, new RegExp(`type="password" id="node-config-input-${name}"`));
        }
        const missing = place.filter((name) => !settings[name]);
        assert.deepEqual(missing, []);
      });
    });
  }

  /** Texts that some kind of field treats in its own way, beside its values. */
  const TEXTS = [
    ...["", " ", ".", "..", "a/b", "true", "No", "2", "PASSWORD", "1e3", "-1", "0.5", "x", "\ud800"],
    ...["x".repeat(256), "x".repeat(8193)],
  ];
  const SCHEMES = ["redis://", "rediss://", "POSTGRES://", "postgresql://", "http://", "mysql://", "redis:"];
  const schemes = fc.constantFrom(...SCHEMES);
  const places = fc.constantFrom("a", "u:p@a:6379/0", "[::1]", "", "/0", "a b", "\u0007", "a:99999", "${NAME}");
  const fieldsByType: Record<string, Record<string, Field>> = {};
  for (const [type, { params, options }] of Object.entries(table)) fieldsByType[type] = { ...params, ...options };
  for (const [type, { settings, credential }] of Object.entries<ConfigNode>(configNodes))
    fieldsByType[type] = { ...settings, ...credential };
  for (const [type, fields] of Object.entries(fieldsByType))
    it(`accepts the same fixed values as the schema: ${type}`, () => {
      const { add } = editor();
      const own = Object.values(fields).flatMap(({ values = {} }) => Object.entries(values).flat());
      const value = fc.oneof(
        fc.string({ maxLength: 8 }),
        fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)), maxLength: 4 }),
        fc.constantFrom(...TEXTS, ...own),
        fc.tuple(schemes, places).map((parts) => parts.join("")),
      );
      for (const [name, field] of Object.entries(fields)) {
        // Node-RED itself validates the reference to a config node.
        if (field.kind === "node") continue;
        // The editor adds what only it has: the context stores.
        const values = Object.fromEntries(STORES.map((store) => [store, store]));
        const accepts = createValidator({ [name]: field.kind === "store" ? { ...field, values } : field });
        const node = add(type, "n", { [`${name}Type`]: "str" });
        const { validate } = { ...node._def.defaults, ...node._def.credentials }[name];
        const property = fc.property(value, (text) => {
          const verdict = validate.call(node, text, {});
          if (/^\$[{(]/.test(text) || (field.pattern && !new RegExp(`^(${field.pattern})$`).test(text))) return;
          let schema = true;
          try {
            accepts({ [name]: text });
          } catch (error) {
            schema = false;
            if (field.kind === "secret") assert.doesNotMatch(String(error), /u:p@/);
          }
          assert.equal(verdict === true, schema, `${name} ${JSON.stringify(text)}: ${verdict}`);
          if (verdict !== true) assert.match(verdict, /^[^_]+ .*\.$/s);
        });
        fc.assert(property);
      }
    });

  it("has every text that the edit dialogs and the browser code use", () => {
    for (const [, key] of html.matchAll(/data-i18n="(?:\[\w+\])?([\w.-]+)"/g))
      assert.equal(typeof at(key ?? ""), "string", key);
    for (const [, key] of bundle(false).matchAll(/text\("([\w.]+)"/g))
      assert.equal(typeof at(`seo-reports.${key}`), "string", key);
    const stand = editor();
    for (const type of Object.keys(types)) {
      const node = stand.add(type);
      node._def.paletteLabel.call(node._def);
      node._def.label.call(node);
      for (const [name, { validate }] of Object.entries<Any>({ ...node._def.defaults, ...node._def.credentials })) {
        if (types[type]?.rows[name]?.source) node[`${name}Type`] = "str";
        for (const value of ["", "x", "/", "\n", "-1", "é", "x".repeat(9000)]) validate?.call(node, value, {});
      }
      stand.open(node);
    }
    assert.deepEqual(stand.missing, []);
    for (const { done } of Object.values(operations))
      if (done) assert.equal(typeof at(`seo-reports.status.${done}`), "string");
    for (const code of Object.keys(codes)) assert.equal(typeof at(`seo-reports.error.${code}.status`), "string");
    assert.equal(at("palette.label.SEO_reports"), "SEO reports");
  });

  it("uses only theme colors in edit dialogs, and never inserts data as HTML", () => {
    const dialogs = html.slice(0, html.indexOf('<script type="text/javascript">'));
    assert.equal(dialogs.match(/#[0-9a-f]{3,8}\b|rgb|hsl|color:(?!\s*var\(--red-ui-)/i)?.[0], undefined);
    const inserts = html.match(/innerHTML|outerHTML|insertAdjacent|\.html\(|RED\.notify|document\.write|\beval\b/);
    assert.equal(inserts?.[0], undefined);
    const [open, close] = [html.match(/<script/g), html.match(/<\/script>/g)];
    assert.equal(open?.length, close?.length);
  });

  it("matches the files that the build wrote", () => {
    const built = (file: string) => readFileSync(join(root, "dist/nodes", file), "utf8");
    assert.equal(built("seo-reports.html"), html);
    assert.deepEqual(JSON.parse(built("locales/en-US/seo-reports.json")), english);
    assert.equal(built("locales/en-US/seo-reports.html"), help(types, english, english));
    for (const icon of icons) assert.ok(existsSync(join(root, "dist/nodes/icons", icon)));
  });

  it("uses English where a translation is missing", () => {
    const german: Texts = {
      "seo-reports": { node: { "seo-report-show": { help: "Holt einen Bericht." } }, help: { inputs: "Eingaben" } },
    };
    const text = helpOf(help(types, german, english), "seo-report-show");
    assert.match(text, /<p>Holt einen Bericht\.<\/p>\n<h3>Eingaben<\/h3>/);
    assert.match(text, /<h3>Outputs<\/h3>/);
  });

  it("gets an edit dialog, help and texts for a new row of the table", () => {
    const ping: NodeType = {
      title: "ping <b>",
      help: "Pings & waits.",
      returns: "A pong.",
      color: "#87A980",
      main: "host",
      params: {
        host: { kind: "text", label: "Host", help: "Whom.", required: true },
        near: { kind: "text", label: "Near", help: "Where.", wire: "by", example: "</script>" },
        sort: { kind: "choice", label: "Order", help: "Another order.", values: { up: "Upwards" } },
      },
      options: {},
    };
    const taken = { ...ping, done: "paused" } as NodeType;
    assert.throws(() => build({ ...table, "seo-ping": taken }), /There is another status “paused” already\./);
    const { types: more, english: texts } = build({ ...table, "seo-ping": ping });
    const stand = createEditor(page(more, icons, MODULES), texts);
    const node = stand.add("seo-ping", "p", { host: "example.com", hostType: "str" });
    const $ = stand.open(node);
    const fields = [...COMMON, "host", "hostType", "near", "nearType", "sort", "sortType"];
    assert.deepEqual(Object.keys(stand.definitions["seo-ping"].defaults), fields);
    assert.equal(stand.definitions["seo-ping"].defaults.near.value, "payload.by");
    assert.equal(stand.definitions["seo-ping"].icon, "file.svg");
    assert.equal(titleOf(node), "ping <b>: example.com");
    const labels = [...$("#node-input-sort")[0].types[0].options].map(({ label }: Any) => label);
    assert.deepEqual(labels, ["not sent", "Upwards (up)"]);
    const own = helpOf(help(more, texts), "seo-ping");
    assert.match(own, /<p>Pings &#38; waits\.<\/p>[\s\S]*Another order\. One of: <code>up<\/code> Upwards\./);
    const { help: sort = "" } = operations["seo-report-list"]?.params.sort ?? {};
    assert.ok(sort !== "" && helpOf(help(more, texts), "seo-report-list").includes(sort));
    assert.deepEqual(stand.missing, []);
  });

  describe("an open edit dialog", () => {
    it("labels an unnamed node with its fixed values, shortened", () => {
      const { add } = editor();
      const label = (more: object) => titleOf(add("seo-report-store", "n", { ...more }));
      assert.equal(label({}), "store report");
      const fixed = { url: "https://example.com", urlType: "str", privacy: "1", privacyType: "str" };
      assert.equal(label(fixed), "store report: https://example.com, Private");
      assert.equal(label({ ...fixed, password: "secret", passwordType: "str" }), label(fixed));
      assert.equal(label({ ...fixed, privacy: "0" }), "store report: https://example.com", "0 is the default");
      assert.equal(label({ url: "x".repeat(99), urlType: "str" }), `store report: ${"x".repeat(38)}…`);
      assert.equal(label({ name: "mine", url: "x", urlType: "str" }), "mine");
      const list = add("seo-report-list", "l", { result: "Bad", resultType: "str", search: "seo", searchType: "env" });
      assert.equal(titleOf(list), "list reports: bad");
      const of = (type: string, fixed: Record<string, string>) => {
        const sources = Object.keys(fixed).map((name) => [`${name}Type`, "str"]);
        return titleOf(add(type, "f", { ...fixed, ...Object.fromEntries(sources) }));
      };
      assert.equal(of("seo-report-update", { reportId: "27", update: "yes" }), "update report: 27, Regenerate");
      const week = { existing: "return", maxAge: "7" };
      assert.equal(of("seo-report-store", week), "store report: Return it, Maximum age 7");
      assert.equal(of("seo-report-store", { ...week, existing: "create" }), "store report", "the age has no effect");
      assert.equal(of("seo-report-list", { result: "bad", sort: "asc" }), "list reports: bad", "Order is folded");
      for (const [baseUrl, shown] of [
        ["https://a.example:8443/sub/", "a.example:8443"],
        ["${SEO_BASE_URL}", "${SEO_BASE_URL}"],
        ["", "SEO service"],
      ])
        assert.equal(titleOf(add("seo-service", "s", { baseUrl })), shown);
    });

    it("shows a conflict of two fields in the dialog, for screen readers too, until it is solved", () => {
      const { add, open, type } = editor();
      const $ = open(add("seo-report-store", "n", { privacy: "0", privacyType: "str", passwordType: "str" }));
      const [input, reason] = [$("#node-input-password"), $("#node-input-password").closest(".form-row")];
      type("#node-input-password", "s");
      const sentence = fillIn(phrases.invalid.when, { label: "Password", other: "Privacy", value: "Password (2)" });
      assert.equal(reason.find(".seo-reason").text(), sentence);
      assert.equal(input.attr("aria-invalid"), "true");
      assert.equal(input.attr("aria-describedby"), reason.find(".seo-reason").attr("id"));
      type("#node-input-privacy", "2");
      assert.deepEqual([reason.find(".seo-reason").text(), input.attr("aria-invalid")], ["", undefined]);
    });

    it("warns that an update with nothing to change has no effect", () => {
      const { add, open, type } = editor();
      const blank = ["privacy", "password", "update"].flatMap((name) => [
        [name, ""],
        [`${name}Type`, "str"],
      ]);
      const $ = open(add("seo-report-update", "u", Object.fromEntries(blank)));
      const warning = () => $(".form-tips").text();
      assert.notEqual(warning(), "");
      type("#node-input-update", "1");
      assert.equal(warning(), "");
      type("#node-input-update", "0");
      assert.notEqual(warning(), "");
      type("#node-input-passwordType", "msg");
      type("#node-input-password", "payload.password");
      assert.equal(warning(), "");
      assert.equal(open(add("seo-report-update", "v"))(".form-tips").text(), "");
    });

    it("warns that a reconcile time below the timeout could create a report twice", () => {
      const { add, open, type } = editor();
      const $ = open(add("seo-service", "s"));
      const warns = (values: object) => {
        for (const [name, value] of Object.entries(values)) type(`#node-config-input-${name}`, value);
        return $(".form-tips").text();
      };
      const [label, other] = [service.reconcile?.label, service.timeout?.label];
      const sentence = (min: string) => fillIn(phrases.dialog.least, { label, other, min });
      assert.equal(warns({}), "");
      assert.equal(warns({ reconcile: "119" }), sentence("120"));
      assert.equal(warns({ reconcile: "120" }), "");
      assert.equal(warns({ timeout: "200" }), sentence("200"));
      assert.equal(warns({ timeout: "60" }), "");
      assert.equal(warns({ reconcile: "59" }), sentence("60"));
      for (const off of ["", "0", "x"]) assert.equal(warns({ reconcile: off }), "");
    });

    it("leaves a property blank that is set only in new nodes, in a node that lacks it", () => {
      const { add, open, definitions } = editor();
      const node = add("seo-service", "s", { reconcile: undefined, retries: undefined });
      const $ = open(node);
      assert.equal(definitions["seo-service"].defaults.reconcile.value, "300");
      const values = [$("#node-config-input-reconcile").val() || "", $("#node-config-input-retries").val()];
      assert.deepEqual(values, ["", "3"]);
    });

    it("offers the context stores of Node-RED's settings, and rejects any other", () => {
      const { add, open } = editor();
      const node = add("seo-report-changes", "c", { store: "file" });
      const $ = open(node);
      assert.deepEqual(valuesOf($("#node-input-store option")), ["", ...STORES]);
      const { validate } = node._def.defaults.store;
      assert.equal(validate.call(node, "file", {}), true);
      assert.match(validate.call(node, "disk", {}), /memory, file/);
      assert.equal(open(add("seo-report-changes", "d", { store: "disk" }))("#node-input-store").val(), "disk");
    });

    it("selects the only service for a new node", () => {
      const { add, drop } = editor();
      assert.equal(drop("seo-report-list").service, "");
      add("seo-service", "elsewhere", { z: "another" });
      add("seo-service", "off", { d: true });
      assert.equal(drop("seo-report-list").service, "");
      add("seo-service", "only");
      assert.equal(drop("seo-report-list").service, "only");
      add("seo-service", "second");
      assert.equal(drop("seo-report-list").service, "");
    });

    it("shows Limit only for the outputs that use it", () => {
      const { add, open, type } = editor();
      const $ = open(add("seo-project-list"));
      const shown = () => $("#node-input-limit").closest(".form-row").css("display") !== "none";
      const { output, limit } = operations["seo-project-list"]?.options ?? {};
      for (const name of Object.keys(output?.values ?? {})) {
        type("#node-input-output", name);
        assert.equal(shown(), limit?.shown?.output?.includes(name), name);
      }
    });

    it("opens the fold if a field in it differs from its default", () => {
      const { add, open } = editor();
      const isOpen = (more: object) => open(add("seo-report-list", "n", { ...more }))("details").prop("open");
      assert.ok(!isOpen({}));
      assert.ok(isOpen({ per_page: "x" }));
      assert.ok(isOpen({ sortType: "str", sort: "asc" }));
      assert.ok(!open(add("seo-service", "s"))("details").prop("open"));
      assert.ok(open(add("seo-service", "s", { retries: "0" }))("details").prop("open"));
    });

    it("shows what applies in place of properties that a node of an older version lacks", () => {
      const { add, open } = editor();
      const shown = (type: string, more: object, ...names: string[]) => {
        const node = add(type, "n", { ...more });
        const [first] = names as [string];
        assert.equal(node._def.defaults[first].validate.call(node, node[first], {}), true);
        const $ = open(node);
        return names.map((name) => $(`#node-input-${name}`).val());
      };
      const lacking = { search: undefined, searchType: undefined, limit: undefined };
      for (const type of ["seo-report-list", "seo-report-changes"]) {
        assert.deepEqual(shown(type, lacking, "search", "searchType"), ["payload.search", "msg"], type);
        assert.deepEqual(shown(type, { ...lacking, search: "x" }, "search", "searchType"), ["x", "str"], type);
      }
      assert.deepEqual(shown("seo-report-list", lacking, "limit"), ["1000"]);
      const earlier = { existing: undefined, existingType: undefined };
      assert.deepEqual(shown("seo-report-store", earlier, "existing", "existingType"), ["create", "str"]);
    });

    it("hides the folder of an audit that has a queue", () => {
      const { add, open } = editor();
      const shown = (queue: string) =>
        open(add("seo-report-audit", "n", { queue }))("#node-input-folder")
          .closest(".form-row")
          .css("display") !== "none";
      assert.deepEqual(["", "_ADD_", "q"].map(shown), [true, true, false]);
    });

    it("keeps a fixed value that is not in the list, and accepts a value by its label", () => {
      const { add, open } = editor();
      const fixed = (result: string) =>
        open(add("seo-report-list", "n", { result, resultType: "str" }))("#node-input-result");
      assert.equal(fixed("Good").val(), "good");
      assert.equal(fixed("${RESULT}").val(), "${RESULT}");
      assert.ok(fixed("odd")[0].types[0].options.some(({ value }: Any) => value === "odd"));
    });

    it("accepts a base URL and an API key that the client accepts", () => {
      const { add } = editor();
      const home = add("seo-service", "s");
      for (const good of ["https://a.example", "HTTP://a:8080/sub/", " https://[::1]/api/v1 ", "${URL}"])
        assert.equal(home._def.defaults.baseUrl.validate.call(home, good, {}), true, good);
      for (const bad of ["", "a.example", "ftp://a", "https://u:p@a", "https://a?b", "https://a#b", "https://"])
        assert.equal(typeof home._def.defaults.baseUrl.validate.call(home, bad, {}), "string", bad);
      for (const bad of ["", "a b", "a\nb", "schlüssel"])
        assert.equal(typeof home._def.credentials.apiKey.validate.call(home, bad, {}), "string", bad);
      assert.equal(home._def.credentials.apiKey.validate.call(home, "__PWRD__", {}), true);
    });
  });

  describe("the connection test", () => {
    const MARKUP = "<img src=x onerror=alert(1)>";
    const start = () => {
      const stand = editor();
      const deployed = { baseUrl: "https://old.example", tls: "_ADD_", credentials: { apiKey: "__PWRD__" } };
      const $ = stand.open(stand.add("seo-service", "s", deployed));
      stand.type("#node-config-input-baseUrl", "https://new.example");
      $(".seo-test").trigger("click");
      return { ...stand, $, result: $("output"), button: $(".seo-test") };
    };

    it("sends the current fields, and shows the response as text", async () => {
      const { requests, result } = start();
      assert.deepEqual(requests[0]?.body, { ...usual, baseUrl: "https://new.example", apiKey: "__PWRD__" });
      assert.equal(requests[0]?.url, "seo-service/test");
      await answer(requests[0], true, { ok: true, stage: "done", values: { count: MARKUP } });
      assert.equal(result.text(), fillIn(stages["seo-service"].done, { count: MARKUP }));
      assert.equal(result.children().length, 0);
      assert.ok(result.hasClass("seo-good"));
    });

    it("shows a failed test, a rejected request and a missing response", async () => {
      const untested = (reason: string) => fillIn(phrases.dialog.untested, { reason });
      const rejected = { ok: false, stage: "key", values: { status: 401 } };
      for (const [ok, response, text] of [
        [true, rejected, fillIn(stages["seo-service"].key, { status: "401" })],
        [false, { status: 403, responseText: "Forbidden" }, untested("HTTP 403")],
        [false, { status: 0, statusText: "error" }, untested(phrases.dialog.unanswered)],
      ] as const) {
        const { requests, result } = start();
        await answer(requests[0], ok, response);
        assert.equal(result.text(), text);
        assert.ok(result.hasClass("seo-bad"));
      }
    });

    it("of a queue has its own route, settings and sentences", async () => {
      const stand = editor();
      const queue = { prefix: "mine", tls: "tls", credentials: { url: "__PWRD__" } };
      const $ = stand.open(stand.add("seo-queue", "q", queue));
      $(".seo-test").trigger("click");
      const [request] = stand.requests;
      assert.equal(request?.url, "seo-queue/test");
      assert.deepEqual(request.body, { id: "q", name: "", prefix: "mine", tls: "tls", url: "__PWRD__" });
      await answer(request, true, { ok: true, stage: "done", values: { version: "Redis 7.0.15" } });
      assert.equal($("output").text(), "Connected: Redis 7.0.15.");
    });

    it("clears the result when a field changes, and ignores a late response", async () => {
      const { requests, result, button, type } = start();
      await answer(requests[0], true, { ok: true, stage: "done", values: { count: 1 } });
      assert.notEqual(result.text(), "");
      type("#node-config-input-baseUrl", "https://third.example");
      assert.deepEqual([result.text(), result.attr("class")], ["", ""]);
      button.trigger("click");
      type("#node-config-input-baseUrl", "https://fourth.example");
      await answer(requests[1], true, { ok: true, stage: "done", values: { count: 1 } });
      assert.equal(result.text(), "");
    });
  });

  describe("suggestions", () => {
    const start = (more: object = {}) => {
      const stand = editor();
      stand.add("seo-service", "s", { baseUrl: "https://a.example", credentials: { apiKey: "typed" } });
      const show = { service: "s", reportId: "", reportIdType: "str", ...more };
      const $ = stand.open(stand.add("seo-report-show", "n", show));
      const input = $(".red-ui-typedInput-input");
      const write = async (text: string) => {
        input.val(text).trigger("input");
        await pause(300);
      };
      return { ...stand, $, input, write, options: () => $("datalist option") };
    };

    it("come from the service as configured in the workspace, and appear as text", async () => {
      const { requests, write, options, input } = start();
      await Promise.all([write("e"), write("ex")]);
      assert.equal(requests.length, 1, "waits until typing pauses");
      const question = { operation: "seo-report-list", text: "ex" };
      assert.deepEqual(requests[0]?.body, { ...usual, baseUrl: "https://a.example", apiKey: "typed", ...question });
      const suggestions = [
        { value: "27", label: "example.com/pricing", date: "2025-11-12T10:00:00.000000Z" },
        { value: 28, label: "<img src=x onerror=alert(1)>", date: "never" },
        ...Array.from({ length: 30 }, (_, value) => ({ value, label: "more" })),
      ];
      await answer(requests[0], true, { suggestions });
      assert.equal(options().length, 20);
      const shown = options()
        .toArray()
        .map((option: Any) => `${option.attribs.value}: ${option.children[0].data}`);
      assert.deepEqual(shown.slice(0, 2), ["27: example.com/pricing · Nov 12", "28: <img src=x onerror=alert(1)>"]);
      assert.equal(input.attr("list"), options().parent().attr("id"));
      await write("ex");
      assert.equal(requests.length, 1, "the response is cached");
    });

    it("are empty after an error or invalid response, without a service, and for values that are not fixed", async () => {
      const { requests, write, options } = start();
      await write("ex");
      await answer(requests[0], false, { status: 500 });
      await write("ex");
      await answer(requests[1], true, "<html>");
      assert.deepEqual([requests.length, options().length], [2, 0]);
      for (const more of [{ service: "" }, { reportIdType: "msg" }]) {
        const other = start(more);
        await other.write("ex");
        assert.equal(other.requests.length, 0);
      }
    });
  });
});

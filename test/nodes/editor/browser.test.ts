import assert from "node:assert/strict";
import { freePort } from "../../../dev/nodered.js";
import type { Texts } from "../../../nodes/editor/forms.js";
import { type Stage, stages } from "../../../src/errors.js";
import { findChromium, needChromium } from "../../support/chromium.js";
import type { Editor, Held } from "../../support/driver.js";
import { fillIn } from "../../support/editor.js";
import { type Dialog, type EditorPage, textOf } from "../../support/editor-page.js";
import {
  bad,
  english,
  type Fields,
  fieldsOf,
  fillingOf,
  nodeTypes,
  preset,
  ROUNDS,
  shownAs,
  types,
  unreadable,
} from "../../support/filling.js";
import { MARKUP, startOddServices } from "../../support/odd-services.js";
import { catalogueOf, startWorkbench, type Workbench } from "../../support/workbench.js";

declare const RED: Editor;

const NARROW = 320;
const SERVICE = "seo-service";
/** The service's settings get as much as lets nothing wait. */
const PLENTY = 50;
/** One node is filled by mouse and keyboard, the others by the page's own hand. */
const BY_HAND = "seo-report-update";
const tell = (path: string, texts: Texts = english) =>
  String(path.split(".").reduce<string | Texts | undefined>((part, key) => Object(part)[key], texts["seo-reports"]));
/** The names of a form's fields in the order of the dialog. */
const inOrder = (fields: Fields) =>
  [false, true].flatMap((fold) =>
    Object.keys(fields).filter((name) => Boolean(fields[name]?.fold) === fold && !fields[name]?.shown),
  );

describe("the search for a browser", () => {
  const nowhere = { CHROMIUM_PATH: "/nowhere/chromium" };

  it("takes the one that the environment names, and no other in its place", () => {
    assert.equal(findChromium({ CHROME_BIN: process.execPath }), process.execPath);
    assert.equal(findChromium({ ...nowhere, CHROME_BIN: process.execPath }), undefined);
  });

  it("says in one line what to do where there is none, and fails in CI", () => {
    const said: string[] = [];
    assert.equal(
      needChromium(nowhere, (line) => said.push(line)),
      undefined,
    );
    assert.match(said.join("\n"), /^.*apt-get install chromium.*CHROMIUM_PATH.*$/);
    assert.throws(() => needChromium({ ...nowhere, CI: "true" }), /CHROMIUM_PATH/);
  });
});

describe("the editor in Chromium", function () {
  this.timeout(300_000);
  /** Each test goes on where the one before it has left the editor; mocha's own bail would end the other files, too. */
  let failed = false;
  let bench: Workbench;
  let odd: Awaited<ReturnType<typeof startOddServices>>;
  let editor: EditorPage;
  const ids: Record<string, string> = {};
  /** What the dialogs were filled with, by node type. */
  const filled: Record<string, Record<string, Held>> = {};
  const idOf = (type: string) => ids[type] ?? assert.fail(type);

  before(async function () {
    const chromium = needChromium();
    if (!chromium) return this.skip();
    [bench, odd] = await Promise.all([startWorkbench(chromium), startOddServices()]);
    editor = bench.editor;
  });
  after(async () => {
    await bench?.stop();
    await odd?.close();
  });
  beforeEach(function () {
    if (failed) this.skip();
  });
  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      failed = true;
      await editor.photograph("failed");
    }
    assert.deepEqual(editor?.complaints ?? [], []);
  });

  /** Types an address and a key into the service's dialog, tests them, and says what came of it. */
  async function tried(dialog: Dialog, baseUrl: string, apiKey?: string) {
    await dialog.field("baseUrl").fill(baseUrl);
    if (apiKey !== undefined) await dialog.field("apiKey").fill(apiKey);
    await dialog.tray.locator(".seo-test").click();
    const result = dialog.tray.locator("output:is(.seo-good, .seo-bad)");
    await result.waitFor();
    return { ok: (await result.getAttribute("class")) === "seo-good", text: await textOf(result) };
  }
  const reached = (result: { ok: boolean; text: string }, stage: Stage) => {
    assert.equal(result.ok, stage === "done", result.text);
    assert.ok(result.text.endsWith(stages[stage]), result.text);
  };
  /** Nothing of what others sent was taken for HTML. */
  const harmless = async () => {
    assert.equal(await editor.page.locator("img[src=x]").count(), 0);
    assert.equal(await editor.page.evaluate("window.broken"), undefined);
  };
  /** What a field offers to somebody who types. */
  async function offered(dialog: Dialog, name: string, text: string) {
    await dialog.fill(name, { value: text, source: "str" });
    const options = dialog.row(name).locator("datalist option");
    for (;;) {
      const found = await options.evaluateAll((all) =>
        all.map((one) => ({ value: (one as HTMLOptionElement).value, label: one.innerHTML })),
      );
      // Until the answer comes, the list may be that of what stood there before.
      if (found.length > 0 && found.every(({ value, label }) => `${value} ${label}`.includes(text))) return found;
      await editor.page.waitForTimeout(20);
    }
  }

  it("drags every node from the palette, named and explained", async () => {
    for (const [index, type] of nodeTypes.entries()) {
      const { title = "" } = types[type] ?? {};
      assert.equal(await editor.title(type), title);
      ids[type] = await editor.drag(type, 200, 60 + 60 * index);
      assert.equal(await editor.label(idOf(type)), title);
    }
  });

  it("has icons that can be read at the palette's size and told apart", async () => {
    const icons = await editor.icons(nodeTypes);
    for (const [i, icon] of icons.entries()) {
      const ink = icon.filter(Boolean).length / icon.length;
      assert.ok(ink > 0.15 && ink < 0.7, `${nodeTypes[i]}.svg covers ${ink} of its square; 0.15 to 0.7 can be read`);
      for (const [k, other] of icons.slice(0, i).entries())
        assert.ok(
          icon.filter((dot, at) => dot !== other[at]).length >= 12,
          `${nodeTypes[i]}.svg looks like ${nodeTypes[k]}.svg`,
        );
    }
  });

  it("marks bad values, and says in a sentence what is wrong", async () => {
    const needed = fillIn(tell("invalid.required"), { label: "Service" });
    for (const type of nodeTypes) {
      const fields = Object.entries(fieldsOf(type)).filter(([, { shown }]) => !shown);
      const fixed = fields.flatMap(([name, { kind, source }]): [string, Held][] =>
        bad[kind] ? [[name, { value: bad[kind], ...(source && { source: "str" }) }]] : [],
      );
      const read = fields.flatMap(([name, { source }], index): [string, Held][] => {
        const held = unreadable[(index + type.length) % unreadable.length];
        return source && held ? [[name, held]] : [];
      });
      const wrongs = [fixed, read].map((all) => Object.fromEntries(all));
      for (const wrong of wrongs) {
        const { said, valid, errors } = await editor.visit(idOf(type), wrong);
        assert.equal(said.service?.reason, needed);
        assert.equal(valid, false);
        for (const name of Object.keys(wrong)) {
          const where = `${type}.${name}: ${JSON.stringify(wrong[name])}`;
          assert.match(said[name]?.reason ?? "", /^\p{Lu}.{8,}/u, where);
          const { label = "" } = fieldsOf(type)[name] ?? {};
          assert.ok(
            errors.some((error) => error.includes(label)),
            `${where} ${errors}`,
          );
        }
      }
    }
  });

  it("tests a connection before anything is deployed, and says which stage failed and what to do", async () => {
    const operation = await editor.edit(idOf("seo-report-list"));
    const dialog = await editor.editConfig("service", "add");
    const before = await editor.said();
    for (const name of ["baseUrl", "apiKey"]) assert.notEqual(before[name]?.reason, "");
    const { url, apiKey } = bench.sandbox;
    const stops: [Stage, string, string?][] = [
      ["config", "seo.example.com", apiKey],
      ["config", "${SEO_NOT_SET}"],
      ["name", "http://seo.invalid"],
      ["connect", `http://127.0.0.1:${await freePort(0)}`],
      ["tls", odd.url.replace("http:", "https:")],
      ["redirect", `${odd.url}/moved`],
      ["answer", `${odd.url}/html`],
      ["key", `${odd.url}/refuses`],
      ["path", `${url}/typo`],
      ["key", url, "another-key"],
      ["done", "${SEO_BASE_URL}", "${SEO_API_KEY}"],
      ["done", `${url}/api/v1/`, apiKey],
    ];
    for (const [stage, ...given] of stops) reached(await tried(dialog, ...given), stage);
    await harmless();
    const paste = async (text: string) => {
      await dialog.field("apiKey").fill("");
      await editor.page.keyboard.insertText(text);
      return tried(dialog, url);
    };
    const broken = await paste(`${apiKey.slice(0, 4)}\n${apiKey.slice(4)}`);
    reached(broken, "config");
    assert.ok(!broken.text.includes(apiKey.slice(4)));
    assert.match((await editor.said()).apiKey?.reason ?? "", /character/);
    reached(await paste(`${apiKey}\n`), "done");
    assert.equal((await editor.said()).apiKey?.reason, "");

    const counts = Object.entries(fieldsOf(SERVICE)).filter(([, { kind }]) => kind === "count");
    await editor.fill(Object.fromEntries(counts.map(([name]) => [name, { value: bad.count ?? "" }])));
    const said = await editor.said();
    for (const [name] of counts) assert.match(said[name]?.reason ?? "", /\.$/);
    const { apiKey: _, ...settings } = fillingOf(SERVICE, PLENTY);
    filled[SERVICE] = await editor.fill({ ...settings, baseUrl: { value: url } });
    await dialog.done();
    ids[SERVICE] = (await editor.shown()).service?.value ?? "";
    await operation.done();
  });

  /** A dialog shows what its fields were filled with. */
  const asFilled = (type: string, shown: Record<string, Held>) => {
    for (const [name, held] of Object.entries(filled[type] ?? {}))
      if (shown[name])
        assert.deepEqual(shown[name], shownAs(fieldsOf(type)[name] ?? assert.fail(), held), `${type}.${name}`);
  };

  it("keeps what every field of every node is filled with, by every source, and shows it again", async () => {
    // A dialog takes a second, so that all sources of all fields take most of a minute.
    const rounds = process.env.BRIEF ? 2 : ROUNDS;
    for (let round = 0; round < rounds; round++) {
      for (const type of nodeTypes) {
        const fields = { ...fillingOf(type, round), service: { value: idOf(SERVICE) } };
        if (round === 0 && type === BY_HAND) {
          const dialog = await editor.edit(idOf(type));
          await dialog.unfold();
          for (const [name, held] of Object.entries(fields)) await dialog.fill(name, held);
          await dialog.done();
          filled[type] = fields;
        } else {
          const visit = await editor.visit(idOf(type), fields);
          asFilled(type, visit.shown);
          assert.deepEqual(visit.errors, [], type);
          filled[type] = { ...filled[type], ...visit.filled };
        }
        assert.ok(Object.keys(filled[type]).length >= Object.keys(fieldsOf(type)).length - 1, type);
      }
      await bench.deploy();
      const deployed = JSON.parse((await bench.ask("flows", "writer")).text) as Record<string, unknown>[];
      const exported = await editor.exported();
      for (const [type, fields] of Object.entries(filled))
        for (const nodes of [deployed, exported]) {
          const node = nodes.find(({ id }) => id === ids[type]) ?? assert.fail(type);
          for (const [name, { value, source }] of Object.entries(fields)) {
            assert.equal(node[name], value, `${type}.${name}`);
            assert.equal(node[`${name}Type`], source, `${type}.${name}Type`);
          }
        }
    }
  });

  it("brings listed reports to the debug sidebar", async () => {
    const inject = await editor.drag("inject", 200, 600);
    const list = await editor.drag("seo-report-list", 380, 600);
    const debug = await editor.drag("debug", 560, 600);
    await editor.wire(inject, list);
    await editor.wire(list, debug);
    await editor.visit(list, {
      service: { value: idOf(SERVICE) },
      output: { value: "records" },
      limit: { value: "3" },
    });
    await bench.deploy();
    await editor.page.evaluate(() => RED.sidebar.show("debug"));
    await editor.page.locator(`[id="${inject}"] .red-ui-flow-node-button-button`).click();
    await editor.page.locator(".red-ui-debug-msg").nth(2).waitFor();
    await editor.page
      .locator(`[id="${list}"]`)
      .getByText(new RegExp(`^${fillIn(tell("status.of"), { count: 3, total: "\\d+" })}$`))
      .waitFor();
  });

  describe("in every detail", () => {
    it("is worked by the keyboard, field by field, and fits into a narrow window", async () => {
      for (const type of nodeTypes) {
        const dialog = await editor.edit(idOf(type));
        asFilled(type, await editor.shown());
        const stops = await editor.tabs();
        assert.deepEqual(stops, inOrder(fieldsOf(type)), type);
        assert.deepEqual(await editor.tooWide(NARROW), [], type);
        await dialog.cancel();
      }
    });

    it("tests with the stored key only what it was stored for", async () => {
      const operation = await editor.edit(idOf("seo-report-list"));
      const dialog = await editor.editConfig("service");
      assert.equal((await editor.shown()).apiKey?.value, "__PWRD__");
      reached(await tried(dialog, bench.sandbox.url), "done");
      const asked = odd.asked.length;
      const refused = await tried(dialog, odd.url);
      reached(refused, "config");
      assert.match(refused.text, /Enter the key again/);
      assert.equal(odd.asked.length, asked);
      await dialog.cancel();
      await operation.cancel();
    });

    it("suggests projects and reports as one types", async () => {
      for (const type of nodeTypes)
        for (const [name, { suggest }] of Object.entries(fieldsOf(type))) {
          if (!suggest) continue;
          const dialog = await editor.edit(idOf(type));
          await dialog.unfold();
          const found = await offered(dialog, name, "shop.exam");
          assert.ok(found.length > 0 && found.length <= 20, `${type}.${name}`);
          for (const { value, label } of found)
            if (suggest === "seo-report-list")
              assert.match(`${value} ${label}`, /^\d+ shop\.example\.com.* · (\d+ \w+|\w+ \d+)$/);
            else assert.deepEqual([value, label], ["shop.example.com", "shop.example.com"]);
          await dialog.cancel();
        }
    });

    it("takes what the service is called for text, before a deploy too, and is quiet when it is away", async () => {
      const type = "seo-project-delete";
      const change = async (baseUrl: string) => {
        const dialog = await editor.edit(idOf(type));
        const service = await editor.editConfig("service");
        await service.field("baseUrl").fill(baseUrl);
        await service.field("apiKey").fill("typed-key");
        await service.done();
        return dialog;
      };
      const dialog = await change(`${odd.url}/markup`);
      const [suggestion] = await offered(dialog, "project", "<img");
      assert.equal(suggestion?.value, MARKUP);
      assert.ok(suggestion.label.startsWith("&lt;img"));
      await dialog.fill("name", { value: "" });
      await dialog.fill("project", { value: MARKUP, source: "str" });
      await dialog.done();
      assert.ok((await editor.label(idOf(type))).includes("<img"));
      await harmless();

      const away = await change(odd.url);
      const answered = editor.page.waitForResponse(/seo-service\/suggest/);
      await away.fill("project", { value: "example", source: "str" });
      assert.equal((await answered).status(), 200);
      assert.equal(await away.row("project").locator("datalist option").count(), 0);
      assert.equal(await away.input("project").inputValue(), "example");
      await away.cancel();
    });

    it("opens and runs a flow of an older version, which lacks the newer properties", async () => {
      await editor.reload();
      const node = (id: string, type: string, x: number, y: number, more: object) => ({
        id,
        type,
        z: "older",
        x,
        y,
        ...more,
      });
      await editor.import([
        { id: "older", type: "tab", label: "older" },
        node("in", "http in", 100, 40, { url: "/older", method: "get", wires: [["older-seo-report-list"]] }),
        node("out", "http response", 700, 40, { wires: [] }),
        ...nodeTypes.map((type, index) =>
          node(`older-${type}`, type, 400, 40 + 60 * index, {
            service: idOf(SERVICE),
            wires: type === "seo-report-list" ? [["out"]] : [[]],
          }),
        ),
      ]);
      for (const type of nodeTypes) {
        const { shown } = await editor.visit(`older-${type}`, {}, "cancel");
        for (const [name, row] of Object.entries(fieldsOf(type)))
          if (shown[name] && row.kind !== "node") assert.deepEqual(shown[name], preset(row), `${type}.${name}`);
      }
      await bench.deploy();
      const { status, text } = await bench.ask("older");
      assert.equal(status, 200);
      assert.equal((JSON.parse(text) as { data: unknown[] }).data.length, 10);
    });

    for (const locale of ["de", "ja"])
      it(`speaks ${locale}`, async () => {
        const texts = catalogueOf(locale);
        await editor.reload(locale);
        const plain = (text: string) => text.replace(/\s+/g, "");
        for (const type of nodeTypes)
          assert.equal(plain(await editor.title(type)), plain(tell(`node.${type}.title`, texts)));
        for (const type of ["seo-report-store", "seo-report-changes"]) {
          await editor.open(idOf(type));
          for (const [name, { label }] of Object.entries(await editor.said()))
            assert.equal(label, tell(`${fieldsOf(type)[name]?.key}.label`, texts));
          assert.deepEqual(await editor.tooWide(NARROW), [], type);
          await editor.close("cancel");
        }
      });

    it("answers its two questions only to those who may write, and never with the key", async () => {
      const { url, apiKey } = bench.sandbox;
      const draft = { baseUrl: url, apiKey, operation: "seo-project-list" };
      for (const [route, good] of [
        ["seo-service/test", /"ok":true/],
        ["seo-service/suggest", /"shop\.example\.com"/],
      ] as const) {
        for (const user of [undefined, "reader"]) {
          const { status, text } = await bench.ask(route, user, draft);
          assert.deepEqual([status, good.test(text)], [401, false]);
        }
        const { status, text } = await bench.ask(route, "writer", draft);
        assert.equal(status, 200);
        assert.match(text, good);
        assert.ok(!text.includes(apiKey));
      }
      const broken = await bench.ask("seo-service/test", "writer", { ...draft, apiKey: `${apiKey}\nx` });
      assert.match(broken.text, /"stage":"config"/);
      assert.ok(!broken.text.includes(apiKey));
      assert.deepEqual(
        bench.log.filter((line) => line.includes(apiKey)),
        [],
      );
    });
  });
});

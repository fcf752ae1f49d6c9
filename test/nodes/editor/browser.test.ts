import assert from "node:assert/strict";
import { nodeRed } from "../../../dev/nodered.js";
import { stages } from "../../../nodes/editor/phrases.js";
import type { Stage } from "../../../src/errors.js";
import { needChromium } from "../../support/chromium.js";
import type { Driver, Editor, Held } from "../../support/driver.js";
import { fillIn } from "../../support/editor.js";
import { type Dialog, type EditorPage, textOf } from "../../support/editor-page.js";
import {
  bad,
  type Fields,
  fieldsOf,
  fillingOf,
  nodeTypes,
  preset,
  ROUNDS,
  shownAs,
  tell,
  types,
  unreadable,
} from "../../support/filling.js";
import { catalogueOf, startWorkbench, type Workbench } from "../../support/workbench.js";

declare const RED: Editor;
declare const driver: Driver;

const NARROW = 320;
const USUAL = 450;
const SERVICE = "seo-service";
/** A value for the service's limits that makes no request wait. */
const PLENTY = 50;
/** The node that is filled by mouse and keyboard; a script in the page fills the others. */
const BY_HAND = "seo-report-update";
/** The names of a form's fields, in the order of the edit dialog. */
const inOrder = (fields: Fields) =>
  [false, true].flatMap((fold) => Object.keys(fields).filter((name) => Boolean(fields[name]?.fold) === fold));

describe("The editor in Chromium", () => {
  /** Each test continues where the previous one left the editor; mocha's bail option would also stop the other files. */
  let failed = false;
  let bench: Workbench;
  let editor: EditorPage;
  const ids: Record<string, string> = {};
  /** The values filled into the edit dialogs, by node type. */
  const filled: Record<string, Record<string, Held>> = {};
  const idOf = (type: string) => ids[type] ?? assert.fail(type);

  before(async function () {
    bench = await startWorkbench(needChromium() ?? this.skip());
    editor = bench.editor;
  });
  after(async () => {
    await bench?.stop();
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

  /** Tests a base URL and an API key in the service's edit dialog, and returns the result. */
  async function tried(dialog: Dialog, baseUrl: string, apiKey?: string) {
    await dialog.field("baseUrl").fill(baseUrl);
    if (apiKey !== undefined) await dialog.field("apiKey").fill(apiKey);
    await dialog.tray.locator(".seo-test").click();
    const result = dialog.tray.locator("output:is(.seo-good, .seo-bad)");
    await result.waitFor();
    return { ok: (await result.getAttribute("class")) === "seo-good", text: await textOf(result) };
  }
  const reached = ({ ok, text }: { ok: boolean; text: string }, stage: Stage) => {
    assert.equal(ok, stage === "done", text);
    const texts: Partial<Record<Stage, string>> = stages[SERVICE];
    for (const part of (texts[stage] ?? "").split(/__\w+__/)) assert.ok(text.includes(part), text);
  };
  /** Asserts that axe-core finds no violation in the edit dialog and judged its texts, in both themes. Only Node-RED 5 has the dark one. */
  const accessible = async (name: string) => {
    const [light, dark] = [await editor.violations(false), await editor.violations(true)];
    assert.deepEqual([light.found, dark.found], [[], []], name);
    for (const { judged } of [light, dark]) assert.ok(judged >= 10, `${name}: contrast of ${judged} elements judged`);
    assert.equal(light.color === dark.color, nodeRed().version.startsWith("4."), dark.color);
  };
  /** Asserts that the labels break only between words, at the usual width of an edit dialog. */
  const legible = async (name: string) => {
    assert.deepEqual(await editor.tooWide(USUAL), [], name);
    assert.deepEqual(await editor.broken(), [], name);
  };
  /** The suggestions of a field for a text. */
  async function offered(dialog: Dialog, name: string, text: string) {
    await dialog.fill(name, { value: text, source: "str" });
    const options = dialog.row(name).locator("datalist option");
    for (;;) {
      const found = await options.evaluateAll((all) =>
        all.map((one) => ({ value: (one as HTMLOptionElement).value, label: one.innerHTML })),
      );
      // Until the response arrives, the list may still hold earlier suggestions.
      if (found.length > 0 && found.every(({ value, label }) => `${value} ${label}`.includes(text))) return found;
      await editor.page.waitForTimeout(20);
    }
  }

  it("drags every node from the palette, labeled with its title", async () => {
    for (const [index, type] of nodeTypes.entries()) {
      const { title = "" } = types[type] ?? {};
      assert.equal(await editor.title(type), title);
      ids[type] = await editor.drag(type, 200, 40 + 50 * index);
      assert.equal(await editor.label(idOf(type)), title);
    }
  });

  it("has legible and distinct icons at palette size", async () => {
    const icons = await editor.icons(nodeTypes);
    for (const [i, icon] of icons.entries()) {
      const ink = icon.filter(Boolean).length / icon.length;
      const file = `${nodeTypes[i]}.svg`;
      assert.ok(ink > 0.15 && ink < 0.7, `${file} covers ${ink} of its square; legible icons cover 0.15 to 0.7`);
      for (const [k, other] of icons.slice(0, i).entries()) {
        const different = icon.filter((dot, at) => dot !== other[at]).length;
        assert.ok(different >= 12, `${file} looks like ${nodeTypes[k]}.svg`);
      }
    }
  });

  it("marks invalid values and explains why they are invalid", async () => {
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
          const isNamed = errors.some((error) => error.includes(label));
          assert.ok(isNamed, `${where} ${errors}`);
        }
      }
    }
  });

  it("tests a connection before the first deploy, and reports the failed stage with its remedy", async () => {
    const operation = await editor.edit(idOf("seo-report-list"));
    const dialog = await editor.editConfig("service", "add");
    const before = await editor.said();
    for (const [name, { reason }] of Object.entries(before)) assert.equal(reason, "", `${name} is quiet when new`);
    const { url, apiKey } = bench.sandbox;
    const stops: [Stage, string, string?][] = [
      ["variable", "${SEO_NOT_SET}", apiKey],
      ["tls", url.replace("http:", "https:")],
      ["path", `${url}/typo`],
      ["key", url, "another-key"],
      ["done", "${SEO_BASE_URL}", "${SEO_API_KEY}"],
      ["done", `${url}/api/v1/`, apiKey],
    ];
    const invalid = await tried(dialog, "seo.example.com");
    assert.ok(!invalid.ok && invalid.text.startsWith("Base URL "), invalid.text);
    // The editor shows a tooltip after less than a second.
    await dialog.field("baseUrl").hover();
    await editor.page.waitForTimeout(1000);
    assert.equal(await editor.page.locator(".red-ui-popover:visible").count(), 0);
    for (const [stage, ...given] of stops) reached(await tried(dialog, ...given), stage);
    const paste = async (text: string) => {
      await dialog.field("apiKey").fill("");
      await editor.page.keyboard.insertText(text);
      return tried(dialog, url);
    };
    const broken = await paste(`${apiKey.slice(0, 4)}\n${apiKey.slice(4)}`);
    assert.ok(!broken.ok && /^API key .*character/.test(broken.text), broken.text);
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

  /** Asserts that an edit dialog shows the values filled into it. */
  const asFilled = (type: string, shown: Record<string, Held>) => {
    for (const [name, held] of Object.entries(filled[type] ?? {}))
      if (shown[name])
        assert.deepEqual(shown[name], shownAs(fieldsOf(type)[name] ?? assert.fail(), held), `${type}.${name}`);
  };

  it("saves every field of every node, from every source, and shows it again", async () => {
    // Each edit dialog takes a second, so all sources of all fields take most of a minute.
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

  it("shows listed reports in the debug sidebar", async () => {
    const inject = await editor.drag("inject", 200, 600);
    const list = await editor.drag("seo-report-list", 380, 600);
    const debug = await editor.drag("debug", 560, 600);
    await editor.wire(inject, list);
    await editor.wire(list, debug);
    const fields = { service: { value: idOf(SERVICE) }, output: { value: "records" }, limit: { value: "3" } };
    await editor.visit(list, fields);
    await bench.deploy();
    await editor.page.evaluate(() => RED.sidebar.show("debug"));
    await editor.page.locator(`[id="${inject}"] .red-ui-flow-node-button-button`).click();
    await editor.page.locator(".red-ui-debug-msg").nth(2).waitFor();
    await editor.page
      .locator(`[id="${list}"]`)
      .getByText(new RegExp(`^${fillIn(tell("status.of"), { count: 3, total: "\\d+" })}$`))
      .waitFor();
  });

  it("shows the whole sentence of an error without a Catch node in the debug sidebar", async () => {
    const inject = await editor.drag("inject", 200, 660);
    const list = await editor.drag("seo-report-list", 380, 660);
    await editor.wire(inject, list);
    const result = { value: '$pad("", 50, "x")', source: "jsonata" };
    await editor.visit(list, { service: { value: idOf(SERVICE) }, result });
    await bench.deploy();
    await editor.page.locator(`[id="${inject}"] .red-ui-flow-node-button-button`).click();
    const message = editor.page.locator(".red-ui-debug-msg", { hasText: "result must be" }).first();
    const sentence = `result must be one of good, decent, bad; the JSONata expression is "${"x".repeat(50)}".`;
    assert.equal(await textOf(message.locator(".red-ui-debug-msg-payload").first()), sentence);
    assert.equal(await textOf(message.locator(".red-ui-debug-msg-topic").first()), "msg : Object");
  });

  describe("with deployed nodes", () => {
    it("reaches every field by keyboard, and fits into a narrow window", async () => {
      for (const type of nodeTypes) {
        const dialog = await editor.edit(idOf(type));
        const visible = await editor.shown();
        asFilled(type, visible);
        const stops = await editor.tabs();
        const order = inOrder(fieldsOf(type)).filter((name) => name in visible);
        assert.deepEqual(stops, order, type);
        assert.deepEqual(await editor.tooWide(NARROW), [], type);
        await dialog.cancel();
      }
    });

    it("does not take the default path in a message for a fixed value, and restores it", async () => {
      const dialog = await editor.edit(await editor.drag("seo-report-store", 200, 640));
      for (const [source, value] of [
        ["str", ""],
        ["msg", "payload.password"],
        ["env", "payload.password"],
      ] as const) {
        await dialog.choose("password", source);
        assert.deepEqual((await editor.shown()).password, { value, source });
      }
      await dialog.fill("password", { value: "payload", source: "msg" });
      await dialog.choose("password", "str");
      assert.equal((await editor.shown()).password?.value, "payload");
      await dialog.cancel();
    });

    it("has no accessibility violation that axe-core finds in any dialog, in both themes", async () => {
      for (const type of nodeTypes) {
        await editor.open(idOf(type));
        await editor.page.evaluate(() => driver.tooWide(480));
        await accessible(type);
        await editor.close("cancel");
      }
      const operation = await editor.edit(idOf("seo-report-list"));
      const dialog = await editor.editConfig("service");
      await dialog.unfold();
      await accessible(SERVICE);
      await tried(dialog, bench.sandbox.url);
      await accessible(`${SERVICE}, connected`);
      await tried(dialog, bench.sandbox.url, "another-key");
      await accessible(`${SERVICE}, not connected`);
      await dialog.field("baseUrl").fill("seo.example.com");
      await accessible(`${SERVICE}, invalid`);
      await dialog.cancel();
      await operation.cancel();
      const audit = await editor.edit(idOf("seo-report-audit"));
      await audit.unfold();
      const queue = await editor.editConfig("queue", "add");
      await queue.unfold();
      await accessible("seo-queue");
      await legible("seo-queue");
      await queue.cancel();
      await audit.cancel();
    });

    it("suggests projects and reports while typing", async () => {
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

    it("opens and runs a flow of an older version that lacks newer properties", async () => {
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
          if (shown[name] && row.kind !== "node")
            assert.deepEqual(shown[name], shownAs(row, preset(row)), `${type}.${name}`);
      }
      await bench.deploy();
      const { status, text } = await bench.ask("older");
      assert.equal(status, 200);
      assert.equal((JSON.parse(text) as { data: unknown[] }).data.length, 10);
    });

    it("shows the texts of the browser's language", async () => {
      const texts = catalogueOf("ja");
      await editor.reload("ja");
      const plain = (text: string) => text.replace(/\s+/g, "");
      for (const type of nodeTypes)
        assert.equal(plain(await editor.title(type)), plain(tell(`node.${type}.title`, texts)));
      for (const type of ["seo-report-store", "seo-report-changes"]) {
        await editor.open(idOf(type));
        for (const [name, { label }] of Object.entries(await editor.said()))
          assert.equal(label, tell(`${fieldsOf(type)[name]?.key}.label`, texts));
        await legible(type);
        assert.deepEqual(await editor.tooWide(NARROW), [], type);
        await editor.close("cancel");
      }
      const operation = await editor.edit(idOf("seo-report-list"));
      const dialog = await editor.editConfig("service");
      await legible(SERVICE);
      const { text } = await tried(dialog, bench.sandbox.url, "another-key");
      const own = (path: string) => fillIn(tell(path, texts), { status: "401" });
      assert.equal(text, own(`node.${SERVICE}.stage.key`));
      await dialog.cancel();
      await operation.cancel();
    });
  });
});

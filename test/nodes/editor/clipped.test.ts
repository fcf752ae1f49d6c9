import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../dev/nodered.js";
import type { Texts } from "../../../nodes/editor/forms.js";
import { named } from "../../../src/kinds.js";
import { configNodes, nodeTypes } from "../../../src/operations.js";
import { needChromium } from "../../support/chromium.js";
import type { Driver } from "../../support/driver.js";
import { fillIn } from "../../support/editor.js";
import { fieldsOf, tell, types } from "../../support/filling.js";
import { cutTexts } from "../../support/texts.js";
import { catalogueOf, startWorkbench } from "../../support/workbench.js";

declare const driver: Driver;
declare const RED: {
  editor: { editConfig(name: string, type: string, id: string): void };
};
/** jQuery with Node-RED's widget. */
declare const $: (element: Element) => { typedInput(method: string, value: string): void };

const FORM = ".red-ui-tray:last-child .seo-form";
const languages = readdirSync(join(root, "nodes/locales")).map((file) => file.replace(".json", ""));

/** The choices that each list of a dialog offers, as the dialog writes them. */
function choicesOf(type: string, texts: Texts): Record<string, string[]> {
  const lists = Object.entries(fieldsOf(type)).filter(([, { values }]) => values);
  return Object.fromEntries(
    lists.map(([name, { key, values = {}, source, required, initial, default: usual }]) => {
      const label = (value: string) => tell(`${key}.values.${value}`, texts);
      /** As the dialog writes it: the label, and the value if it differs. */
      const shown = (value: string) => named(label(value), value);
      if (!source) return [name, Object.keys(values).map(label)];
      const said = usual === undefined ? "dialog.unsent" : "dialog.default";
      const blank = fillIn(tell(said, texts), { value: usual === undefined ? "" : label(usual) });
      const all = Object.keys(values).map(shown);
      return [name, required || initial ? all : [blank, ...all]];
    }),
  );
}

describe("The texts of the edit dialogs", () => {
  it("are neither clipped nor covered at the default width, in any language", async function () {
    const chromium = needChromium() ?? this.skip();
    const place = { z: "tab", x: 200, y: 100, service: "seo-service", wires: [] };
    const flows = [
      { id: "tab", type: "tab", label: "" },
      ...Object.keys(configNodes).map((type) => ({ id: type, type, name: "" })),
      ...Object.keys(nodeTypes).map((type) => ({ ...place, id: type, type })),
    ];
    const bench = await startWorkbench(chromium, { flows });
    const cut: string[] = [];
    try {
      const { page } = bench.editor;
      await page.setViewportSize({ width: 1400, height: 2000 });
      for (const type of Object.keys(types)) {
        if (Object.hasOwn(configNodes, type)) {
          await page.evaluate((id) => RED.editor.editConfig("", id, id), type);
          await page.locator(FORM).waitFor();
        } else await page.evaluate((id) => driver.open(id), type);
        await page.evaluate((selector) => {
          const form = document.querySelector(selector);
          form?.querySelector("details")?.setAttribute("open", "");
          for (const row of form?.querySelectorAll<HTMLElement>(".form-row") ?? []) row.style.display = "";
          for (const input of form?.querySelectorAll("input[type=hidden][id$=Type]") ?? []) {
            const own = document.getElementById(input.id.replace(/Type$/, ""));
            if (own) $(own).typedInput("type", "str");
          }
        }, FORM);
        for (const language of languages) {
          const texts = catalogueOf(language);
          // A dialog takes half a second to open, so that its texts are replaced, but not the dialog.
          await page.evaluate(
            ([selector, catalog]) => {
              for (const element of document.querySelectorAll<HTMLElement>(
                `${selector} [data-i18n]:not([data-i18n^="["])`,
              )) {
                const path = element.dataset.i18n?.replace(/^.*:/, "").split(".") ?? [];
                // biome-ignore lint/suspicious/noExplicitAny: a tree of texts
                const text = path.reduce<any>((part, key) => Object(part)[key], catalog);
                if (typeof text === "string") element.textContent = text;
              }
            },
            [FORM, texts] as const,
          );
          const choices = choicesOf(type, texts);
          const most = Math.max(1, ...Object.values(choices).map(({ length }) => length));
          for (let at = 0; at < most; at++) {
            const chosen = Object.entries(choices).map(([name, all]) => [name, all[at % all.length] ?? ""] as const);
            const wide = await page.evaluate(
              ([selector, lists]) =>
                lists.flatMap(([name, text]) => {
                  const input = document.querySelector(`${selector} [id$="-input-${name}"]`);
                  const label = input?.closest(".form-row")?.querySelector(".red-ui-typedInput-option-label");
                  if (label) label.textContent = text;
                  if (!(input instanceof HTMLSelectElement)) return label ? [] : [`no list ${name}`];
                  const alone = input.cloneNode() as HTMLSelectElement;
                  Object.assign(alone.style, { width: "max-content", flex: "none" });
                  alone.append(new Option(text));
                  input.after(alone);
                  const { width } = alone.getBoundingClientRect();
                  alone.remove();
                  return width > input.getBoundingClientRect().width + 1 ? [text] : [];
                }),
              [FORM, chosen] as const,
            );
            cut.push(...[...wide, ...(await cutTexts(page, FORM))].map((text) => `${language}, ${type}: ${text}`));
          }
        }
        await page.evaluate(() => driver.close("cancel"));
      }
    } finally {
      await bench.stop();
    }
    assert.deepEqual([...new Set(cut)], []);
  });
});

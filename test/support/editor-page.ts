import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import type { Locator, Page } from "playwright-core";
import { createDriver, type Driver, type Editor, type Held } from "./driver.js";

declare const RED: Editor;
declare const driver: Driver;
declare const axe: { run(context: unknown): Promise<AxeResults> };

const require = createRequire(import.meta.url);

export type Dialog = ReturnType<typeof dialogOf>;
export type EditorPage = Awaited<ReturnType<typeof openEditor>>;

/** The text of an element, with white space collapsed. */
export const textOf = async (locator: Locator) => ((await locator.textContent()) ?? "").replace(/\s+/g, " ").trim();

/** The edit dialog of a node or config node, used by mouse and keyboard. */
function dialogOf(page: Page, kind: "node" | "node-config" = "node") {
  const tray = page.locator(".red-ui-tray").filter({ has: page.locator(`#${kind}-dialog-ok`) });
  const field = (name: string) => tray.locator(`#${kind}-input-${name}`);
  const row = (name: string) => tray.locator(".form-row").filter({ has: page.locator(`[id="${kind}-input-${name}"]`) });
  /** Selects an entry of the menu that a button opens. */
  const pick = async (button: Locator, value: string) => {
    await button.click();
    await page.locator(`.red-ui-typedInput-options:visible a[value="${value}"]`).click();
  };
  /** Selects the source of a value. */
  const choose = (name: string, source: string) => pick(row(name).locator(".red-ui-typedInput-type-select"), source);
  const close = async (button: string) => {
    const shown = await tray.elementHandle();
    await tray.locator(`#${kind}-dialog-${button}`).click();
    await shown?.waitForElementState("hidden");
  };

  return {
    tray,
    row,
    field,
    /** Opens the fold. */
    async unfold() {
      const fold = tray.locator("details:not([open]) > summary");
      if (await fold.count()) await fold.click();
    },
    choose,
    /** Fills a field from its menu, if it has one, else by typing. */
    async fill(name: string, { value, source }: Held) {
      const line = row(name);
      if (source) {
        await choose(name, source);
        const list = line.locator(".red-ui-typedInput-option-trigger:visible");
        if (source === "str" && (await list.count())) return pick(list, value);
        return line.locator(".red-ui-typedInput-input:visible").fill(value);
      }
      const widget = line.locator("input:visible, select:visible").first();
      if (await widget.evaluate((element) => element.tagName === "SELECT")) await widget.selectOption(value);
      else await widget.fill(value);
    },
    done: () => close("ok"),
    cancel: () => close("cancel"),
  };
}

/** Opens the editor with a user's token; `complaints` holds the errors of its console. */
export async function openEditor(page: Page, url: string, token: string) {
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.stack ?? String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${message.text()} ${message.location().url}`);
  });
  await page.addInitScript(`window.driver = (${createDriver})()`);
  await page.addInitScript({ path: require.resolve("axe-core/axe.min.js") });
  const load = async (language = "en-US") => {
    const storage = { "editor-language": language, "auth-tokens": JSON.stringify({ access_token: token }) };
    await page.addInitScript((all) => Object.assign(localStorage, all), storage);
    await page.goto(url, { waitUntil: "commit" });
    await page.waitForFunction(() => "RED" in window && RED.workspaces?.active?.());
    await page.locator("#red-ui-loading-progress").waitFor({ state: "hidden" });
    // Animations are slow without a GPU.
    const still = "* { transition: none !important; animation: none !important }";
    // Node-RED 4's body has no height, so axe-core would judge the contrast of nothing.
    await page.addStyleTag({ content: `${still} html, body { height: 100% }` });
    await page.evaluate("$.fx.off = true");
  };
  await load();
  const opened = async (kind: "node" | "node-config") => {
    const dialog = dialogOf(page, kind);
    await dialog.tray.locator(".seo-form").waitFor();
    return dialog;
  };
  const palette = (type: string) => page.locator(`.red-ui-palette-node[data-palette-type="${type}"]`);

  return {
    page,
    complaints,
    reload: load,
    title: (type: string) => textOf(palette(type).locator(".red-ui-palette-label")),
    /** Drags a node from the palette to the workspace and returns its ID. */
    async drag(type: string, x: number, y: number): Promise<string> {
      const before = await page.evaluate((one) => RED.nodes.filterNodes({ type: one }).map((node) => node.id), type);
      await palette(type).dragTo(page.locator("#red-ui-workspace-chart"), { targetPosition: { x, y } });
      return page.evaluate(
        ([one, known]) => RED.nodes.filterNodes({ type: one }).find(({ id }) => !known.includes(id))?.id ?? "",
        [type, before] as const,
      );
    },
    /** Draws a wire from one node to another. */
    wire: (from: string, to: string) =>
      page
        .locator(`[id="${from}"] .red-ui-flow-port-output .red-ui-flow-port`)
        .dragTo(page.locator(`[id="${to}"] .red-ui-flow-port-input .red-ui-flow-port`)),
    /** Opens a node's edit dialog by a click and the Enter key, because two clicks may be too slow for a double-click. */
    async edit(id: string): Promise<Dialog> {
      await page.locator(`[id="${id}"] .red-ui-flow-node`).click();
      await page.keyboard.press("Enter");
      return opened("node");
    },
    /** Tabs through the edit dialog, opening the fold, and returns the focused fields in order. */
    async tabs(): Promise<string[]> {
      const stops: string[] = [];
      for (let at = "before"; at !== "after"; at = await page.evaluate(() => driver.focused())) {
        if (at === "folded") await page.keyboard.press("Enter");
        else if (at !== "before" && stops.at(-1) !== at) stops.push(at);
        await page.keyboard.press("Tab");
      }
      return stops;
    },
    /** Opens the edit dialog of the config node selected in a field, or of a new one. */
    async editConfig(name: string, button: "edit" | "add" = "edit"): Promise<Dialog> {
      await page.locator(`#node-input-btn-${name}-${button}`).click();
      return opened("node-config");
    },
    /** A node's label in the workspace. */
    label: (id: string) => textOf(page.locator(`[id="${id}"] .red-ui-flow-node-label`)),
    /** Opens, fills and closes an edit dialog in one step; returns its initial values, the filled fields and their errors. */
    visit: (id: string, fields: Record<string, Held> = {}, button: "ok" | "cancel" = "ok") =>
      page.evaluate(
        async ([which, all, end]) => {
          await driver.open(which);
          const shown = driver.shown();
          const filled = driver.fill(all);
          const said = driver.said();
          await driver.close(end);
          return { shown, filled: Object.fromEntries(filled), said, ...driver.node(which) };
        },
        [id, fields, button] as const,
      ),
    /**
     * The violations that axe-core finds in the dialog on top, with its fold open, in the light or in the dark theme; the number of
     * elements whose contrast it judged; and the color of the dialog's text.
     */
    violations: (dark: boolean) =>
      page.evaluate(async (on) => {
        const form = [...document.querySelectorAll<HTMLElement>(".seo-form")].at(-1);
        const folded = [...(form?.querySelectorAll("details:not([open])") ?? [])];
        for (const fold of folded) fold.setAttribute("open", "");
        // Node-RED prints the name of a context store faintly over the value.
        const contextStore = ".red-ui-typedInput-container div[style*=opacity]";
        document.documentElement.classList.toggle("nr-theme-dark", on);
        const { violations, passes } = await axe.run({ include: [form], exclude: [contextStore] });
        const { color } = getComputedStyle(form ?? document.body);
        document.documentElement.classList.remove("nr-theme-dark");
        for (const fold of folded) fold.removeAttribute("open");
        const found = violations.flatMap(({ id, nodes }) =>
          nodes.map(({ html, failureSummary }) => [id, html, failureSummary]),
        );
        const contrasts = [...violations, ...passes].filter(({ id }) => id === "color-contrast");
        const judged = contrasts.reduce((sum, { nodes }) => sum + nodes.length, 0);
        return { found, judged, color };
      }, dark),
    open: (id: string) => page.evaluate((which) => driver.open(which), id),
    close: (button: "ok" | "cancel") => page.evaluate((end) => driver.close(end), button),
    tooWide: (width: number) => page.evaluate((most) => driver.tooWide(most), width),
    broken: () => page.evaluate(() => driver.broken()),
    /** Which of 20 × 30 pixels each node type's icon covers. */
    icons: (all: string[]) => page.evaluate((names) => Promise.all(names.map(driver.icon)), all),
    fill: (fields: Record<string, Held>) => page.evaluate((all) => Object.fromEntries(driver.fill(all)), fields),
    shown: () => page.evaluate(() => driver.shown()),
    said: () => page.evaluate(() => driver.said()),
    /** Imports nodes through the import dialog. */
    async import(nodes: object[]) {
      await page.evaluate(() => RED.actions.invoke("core:show-import-dialog"));
      const text = page.locator("#red-ui-clipboard-dialog-import-text");
      await text.fill(JSON.stringify(nodes));
      await text.press("End");
      await page.locator("#red-ui-clipboard-dialog-ok").click();
      await page.waitForFunction((id) => RED.nodes.node(id), (nodes.at(-1) as { id: string }).id);
    },
    photograph: (name: string) => page.screenshot({ path: join(tmpdir(), `seo-editor-${name}.png`) }),
    async deploy() {
      await page.locator("#red-ui-header-button-deploy").click();
      await page.waitForFunction(() => !RED.nodes.dirty());
    },
    exported: () => page.evaluate(() => RED.nodes.createCompleteNodeSet({ credentials: false })),
  };
}

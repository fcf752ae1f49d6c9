/** The content of a field: a value, and for a parameter its source. */
export interface Held {
  value: string;
  source?: string;
}

/** The parts of the editor's RED object that the tests use. */
export interface Editor {
  actions: { invoke(action: string, value?: unknown): void };
  editor: { edit(node: EditorNode): void; editConfig(name: string, type: string, id: string): void };
  nodes: {
    dirty(): boolean;
    node(id: string): EditorNode;
    import(nodes: object[]): void;
    filterNodes(filter: object): EditorNode[];
    createCompleteNodeSet(options?: object): Record<string, unknown>[];
  };
  sidebar: { show(tab: string): void };
  workspaces: { active(): string };
}
interface EditorNode {
  id: string;
  type: string;
  valid: boolean;
  validationErrors?: (string | object)[];
  /** The node's center and width in the workspace. */
  x: number;
  y: number;
  w: number;
  [property: string]: unknown;
}
declare const RED: Editor;

/**
 * Fills many fields of the topmost edit dialog at once, through its own buttons, menus and inputs.
 * Must not use outer variables, because its source is injected into the page.
 */
export function createDriver() {
  const { setTimeout } = window;
  // The edit dialog waits for animations, although they are off.
  window.setTimeout = ((act: TimerHandler, delay = 0, ...values: unknown[]) =>
    setTimeout(act, delay <= 250 ? 0 : delay, ...values)) as typeof window.setTimeout;

  const until = async (test: () => unknown) => {
    for (const end = Date.now() + 120_000; !test(); await new Promise((resolve) => setTimeout(resolve, 4)))
      if (Date.now() > end) throw new Error(`Timed out waiting for: ${test}`);
  };
  const trays = () => [...document.querySelectorAll<HTMLElement>(".red-ui-tray")];
  const form = () => trays().at(-1)?.querySelector<HTMLElement>(".seo-form");
  const lines = () =>
    [...(form()?.querySelectorAll<HTMLElement>(".form-row") ?? [])].flatMap((line) => {
      const own = line.querySelector<HTMLInputElement>("[id*=-input-]");
      return own && line.style.display !== "none" ? [{ line, own, name: own.id.replace(/.*-input-/, "") }] : [];
    });
  /** The text input of a field, or the menu button of a choice. */
  const widget = (line: HTMLElement, own: HTMLInputElement) => {
    const typed = line.querySelector<HTMLElement>(".red-ui-typedInput-input-wrap");
    const list = line.querySelector<HTMLElement>(".red-ui-typedInput-option-trigger");
    return typed?.style.display === "none" && list ? { list } : { input: typed?.querySelector("input") ?? own };
  };
  const choose = (button: HTMLElement | null, value: string) => {
    button?.click();
    const menus = [...document.querySelectorAll<HTMLElement>(".red-ui-typedInput-options")];
    const menu = menus.find(({ style }) => style.display !== "none");
    menu?.querySelector<HTMLElement>(`a[value="${CSS.escape(value)}"]`)?.click();
  };

  /** Hides the page behind the edit dialog, because redrawing it is slow without a GPU. */
  const behind = (display: string) => {
    for (const part of document.querySelectorAll<HTMLElement>("#red-ui-workspace-chart, #red-ui-sidebar"))
      part.style.display = display;
  };

  return {
    async open(id: string) {
      behind("none");
      RED.editor.edit(RED.nodes.node(id));
      await until(() => form() && trays()[0]?.contains(document.activeElement));
    },
    async close(button: "ok" | "cancel") {
      const tray = trays().at(-1);
      tray?.querySelector<HTMLElement>(`[id$=dialog-${button}]`)?.click();
      await until(() => !tray?.isConnected);
      behind("");
    },
    /** Fills the visible fields, and returns them. */
    fill: (fields: Record<string, Held>) =>
      Object.entries(fields).filter(([name, { value, source }]) => {
        const { line, own } = lines().find((one) => one.name === name) ?? {};
        if (!line || !own) return false;
        if (source) choose(line.querySelector(".red-ui-typedInput-type-select"), source);
        const { list, input } = widget(line, own);
        if (list) choose(list, value);
        if (input) input.value = value;
        for (const event of ["input", "change"]) input?.dispatchEvent(new Event(event, { bubbles: true }));
        return true;
      }),
    /** The text or label in each visible field, and its source. */
    shown: () =>
      Object.fromEntries<Held>(
        lines().map(({ line, own, name }) => {
          const source = line.querySelector<HTMLInputElement>("input[type=hidden][id$=Type]")?.value;
          const { list, input } = widget(line, own);
          const value = list?.querySelector(".red-ui-typedInput-option-label")?.textContent ?? input?.value ?? "";
          return [name, { value, ...(source && { source }) }];
        }),
      ),
    /** The label, error and tip of each visible field. */
    said: () =>
      Object.fromEntries(
        lines().map(({ line, name }) => {
          const text = (selector: string) =>
            (line.querySelector(selector)?.textContent ?? "").replace(/\s+/g, " ").trim();
          const marked = line.querySelector(".input-error") !== null;
          return [name, { label: text("label"), reason: text(".seo-reason"), tip: text(".form-tips"), marked }];
        }),
      ),
    /** The focused field; "folded" for a closed fold, or "before" or "after" the form. */
    focused() {
      const at = document.activeElement;
      if (!at || at.closest("details:not([open])")) return "folded";
      const name = lines().find(({ line }) => line.contains(at))?.name;
      const place = form()?.compareDocumentPosition(at) ?? 0;
      return name ?? (place === Node.DOCUMENT_POSITION_FOLLOWING ? "after" : "before");
    },
    /** Narrows the edit dialog, and returns the fields that overflow it. */
    tooWide(width: number) {
      const all = form();
      if (all) all.style.width = `${width}px`;
      all?.querySelector("details")?.setAttribute("open", "");
      window.dispatchEvent(new Event("resize"));
      return lines().flatMap(({ line, name }) => (line.scrollWidth > line.clientWidth + 1 ? [name] : []));
    },
    /** The labels that are broken within a word. */
    broken: () =>
      lines().flatMap(({ line }) => {
        const label = line.querySelector("label");
        if (!label) return [];
        label.style.overflowWrap = "normal";
        const broken = label.scrollWidth > label.clientWidth;
        label.style.overflowWrap = "";
        return broken ? [label.textContent] : [];
      }),
    async icon(type: string) {
      const image = new Image();
      image.src = `icons/@seo-reports/node-red/${type}.svg`;
      await image.decode();
      const brush = Object.assign(document.createElement("canvas"), { width: 20, height: 30 }).getContext("2d");
      brush?.drawImage(image, 0, 0, 20, 30);
      const dots = brush?.getImageData(0, 0, 20, 30).data ?? [];
      return Array.from({ length: 600 }, (_, dot) => (dots[4 * dot + 3] ?? 0) > 127);
    },
    node(id: string) {
      const { valid, validationErrors = [] } = RED.nodes.node(id);
      return { valid, errors: validationErrors.map(String) };
    },
  };
}

export type Driver = ReturnType<typeof createDriver>;

import type { Any, Text } from "./state.js";

/** The functions of the editor that the tab of audits needs. */
export function createTools(RED: Any, $: Any, catalogue: string) {
  const text: Text = (key, values) => RED._(catalogue + key, values);
  /** A tag with a class and parts, which are texts or elements. No text is read as HTML. */
  const build = (tag: string, kind = "", ...parts: Any[]): Any => {
    const nodes = parts.map((part) => (typeof part === "string" ? document.createTextNode(part) : part));
    return $(document.createElement(tag)).addClass(kind).append(nodes);
  };
  return {
    ...{ RED, text, build },
    button: (label: string, act: () => unknown, kind = ""): Any =>
      build("button", kind, label).attr("type", "button").on("click", act),
    figure: (value: number): string => value.toLocaleString(RED.i18n.lang()),
    /** Sends a request to a route of the tab. */
    send: (path: string, data: object | string, more = {}): Promise<Any> =>
      $.ajax({ url: `seo-report-audit/${path}`, data, ...more }),
  };
}

export type Tools = ReturnType<typeof createTools>;

/** The audit node's ID, and the name of its batch. */
export interface CardPlace {
  node: string;
  batch: string;
}

/** A blank text is hidden. One that is the same is not set again, so that it stays selected. */
export function put(element: Any, words: string): void {
  if (element.text() !== words) element.text(words);
  element.prop("hidden", words === "");
}

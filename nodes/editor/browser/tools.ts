import type { Any, Text } from "./state.js";

/** The functions of the editor that the tab of audits needs. */
export interface Tools {
  RED: Any;
  text: Text;
  /** A tag with a class and parts, which are texts or elements. No text is read as HTML. */
  build(tag: string, kind?: string, ...parts: Any[]): Any;
  button(label: string, act: () => unknown, kind?: string): Any;
  figure(value: number): string;
  /** Sends a request to a route of the tab. */
  send(path: string, data: object | string, more?: object): Promise<Any>;
  /** Shows all cards as they are now. */
  look(): Promise<void>;
}

/** The audit node's ID, and the name of its batch. */
export interface Place {
  node: string;
  batch: string;
}

/** A blank text is hidden. One that is the same is not set again, so that it stays selected. */
export function put(element: Any, words: string): void {
  if (element.text() !== words) element.text(words);
  element.prop("hidden", words === "");
}

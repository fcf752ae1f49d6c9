import { performance } from "node:perf_hooks";
import type { Node, NodeAPI, NodeStatus } from "node-red";
import type { Client } from "../src/client.js";
import type { SeoError } from "../src/errors.js";
import type { Lane } from "../src/scheduler.js";
import { SECOND, span } from "./figures.js";

/** Milliseconds between two statuses of one node, so that thousands of messages do not become thousands of statuses. */
const INTERVAL = 200;
/** The maximum number of characters of a text. */
const LONGEST = 40;
/** The texts of a success by which nothing has happened. */
const NOTHING = ["seo-reports.status.unchanged", "seo-reports.status.noChecks"];

export const red = (text: string): NodeStatus => ({ fill: "red", shape: "ring", text });
export const yellow = (text: string): NodeStatus => ({ fill: "yellow", shape: "ring", text });
export const green = (text: string): NodeStatus => ({ fill: "green", shape: "dot", text });
export const blue = (text: string): NodeStatus => ({ fill: "blue", shape: "dot", text });

/** Makes the function that sets the status of a node, unless it has that status already. */
export function createSetter(node: Node) {
  let shown = "";
  return (status: NodeStatus): void => {
    const text = JSON.stringify(status);
    if (text !== shown) node.status(status);
    shown = text;
  };
}

/** An error as a status shows it: the condition, and the parameters that are invalid. */
export function conditionOf(
  RED: { _(key: string): string },
  { code, details: { params = [], place } }: SeoError,
): string {
  if (place) return `seo-reports.status.${place}`;
  const key = `seo-reports.error.${code}.status`;
  // The remedy of a configuration is to open the node, whose edit dialog shows what is invalid.
  if (code !== "SEO_INPUT" || params.length === 0) return key;
  const text = `${RED._(key)} · ${params.join(", ")}`;
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

/** Shows what a node is doing: its figures while it does anything, and then how its messages ended. */
export class Status {
  readonly #RED: NodeAPI;
  readonly #set: (status: NodeStatus) => void;
  #lane: Lane | undefined;
  #client: Client | undefined;
  /** The messages since the node was idle. */
  #run = { since: 0, messages: 0, done: 0, failed: 0 };
  #result = (): NodeStatus => ({});
  #progress: (() => string) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stale = false;
  /** The node is gone. */
  closed = false;

  constructor(RED: NodeAPI, node: Node) {
    this.#RED = RED;
    this.#set = createSetter(node);
  }

  /** Shows the figures of `lane` from now on, whenever they change. */
  follow(lane: Lane, client: Client): void {
    this.#lane = lane;
    this.#client = client;
    lane.changed = () => this.#show();
  }

  /** How many messages are not complete. */
  get incomplete(): number {
    const { messages, done, failed } = this.#run;
    return messages - done - failed;
  }

  /** Counts a message; the first one after all others are complete begins a new run. */
  began(): void {
    if (this.incomplete === 0) this.#run = { since: performance.now(), messages: 0, done: 0, failed: 0 };
    this.#run.messages++;
  }

  /** Shows how many pages of a list were read, until the message ends. */
  progress(page: number, pages: number | undefined, records: number): void {
    const key = pages === undefined ? "pageUnknown" : "page";
    this.#progress = () => this.#text(key, { page, pages: pages ?? "", records });
    this.#show();
  }

  /** `text` is called only when it is shown, and so is the text of the progress: of many messages, few are. */
  succeeded(text: () => string): void {
    this.#run.done++;
    this.#end(() => {
      const shown = text();
      return NOTHING.includes(shown) ? { fill: "grey", shape: "ring", text: shown } : green(shown);
    });
  }

  failed(error: SeoError): void {
    this.#run.failed++;
    const text = conditionOf(this.#RED, error);
    this.#end(() => red(text));
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.#timer);
    this.#set({});
  }

  #text(key: string, values: Record<string, string | number>): string {
    return this.#RED._(`seo-reports.status.${key}`, values);
  }

  #end(result: () => NodeStatus): void {
    this.#progress = undefined;
    this.#result = result;
    this.#show();
  }

  #show(): void {
    if (this.closed) return;
    this.#stale = true;
    if (this.#timer) return;
    this.#stale = false;
    this.#set(this.#current());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#stale) this.#show();
    }, INTERVAL);
  }

  #current(): NodeStatus {
    if (!this.#lane || (this.#lane.running + this.#lane.waiting === 0 && this.#progress === undefined))
      return this.#ended();
    const { running, reconciling, waiting } = this.#lane;
    const queued = waiting - reconciling;
    const wait = this.#client?.waitingFor(this.#lane) ?? 0;
    if (running === 0 && wait > 0 && queued > 0) {
      this.#stale = true;
      return this.#waiting(wait, queued);
    }
    if (this.#progress) return blue(this.#progress());
    if (running + waiting === 1 && reconciling === 0) return blue("seo-reports.status.requesting");
    const parts = [
      running + queued > 0 && this.#text("running", { running, queued }),
      reconciling > 0 && this.#text("reconciling", { count: reconciling }),
    ];
    return blue(parts.filter(Boolean).join(", "));
  }

  /** How the last message ended, or of several how many succeeded and failed. */
  #ended(): NodeStatus {
    const { done, failed } = this.#run;
    if (done + failed < 2) return this.#result();
    const text = this.#text("summary", { done, failed });
    return failed > 0 ? red(text) : green(text);
  }

  /** The wait of all requests: for how long, how many, and about how long it takes until the last one starts. */
  #waiting(ms: number, queued: number): NodeStatus {
    const complete = this.#run.done + this.#run.failed;
    const left = ms + ((queued - 1) * (performance.now() - this.#run.since + ms)) / complete;
    const text =
      complete > 0 && queued > 1
        ? this.#text("paused", { wait: span(ms), queued, left: span(left) })
        : this.#text("waiting", { seconds: Math.ceil(ms / SECOND), queued });
    return yellow(text);
  }
}

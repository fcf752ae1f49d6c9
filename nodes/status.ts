import { performance } from "node:perf_hooks";
import type { Node, NodeAPI, NodeStatus } from "node-red";
import type { Client } from "../src/client.js";
import type { SeoError } from "../src/errors.js";
import type { Lane } from "../src/lane.js";

/** Milliseconds between two statuses of one node, so that thousands of messages do not become thousands of statuses. */
const INTERVAL = 200;
const SECOND = 1000;
/** The maximum number of characters of a text. */
const LONGEST = 40;
/** The texts of a success by which nothing has happened. */
const NOTHING = ["seo-reports.status.unchanged", "seo-reports.status.noChecks"];

/** A span of time as a status shows it. The symbols are the same in every language. */
export function span(ms: number): string {
  const seconds = Math.ceil(ms / SECOND);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 10 ? `${hours} h ${minutes % 60} min` : `${Math.round(minutes / 60)} h`;
}

/** An error as a status shows it: the condition, and the parameters that are invalid. */
export function conditionOf(RED: { _(key: string): string }, { code, details: { params = [] } }: SeoError): string {
  const key = `seo-reports.error.${code}.status`;
  // The remedy of a configuration is to open the node, whose edit dialog shows what is invalid.
  if (code !== "SEO_INPUT" || params.length === 0) return key;
  const text = `${RED._(key)} · ${params.join(", ")}`;
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

/** Shows what a node is doing: its figures while it does anything, and then how its messages ended. */
export function createStatus(RED: NodeAPI, node: Node) {
  let lane: Lane | undefined;
  let client: Client | undefined;
  /** The messages since the node was idle. */
  let run = { since: 0, received: 0, done: 0, failed: 0 };
  let last = (): NodeStatus => ({});
  let progress: (() => string) | undefined;
  let shown: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stale = false;
  let closed = false;

  /** How the last message ended, or of several how many succeeded and failed. */
  function ended(): NodeStatus {
    const { done, failed } = run;
    if (done + failed < 2) return last();
    const text = RED._("seo-reports.status.summary", { done, failed });
    return failed > 0 ? { fill: "red", shape: "ring", text } : { fill: "green", shape: "dot", text };
  }

  /** What keeps all requests waiting: for how long, how many, and about how long it takes until the last one starts. */
  function waiting(ms: number, queued: number): NodeStatus {
    const answered = run.done + run.failed;
    const seconds = Math.ceil(ms / SECOND);
    const left = ms + ((queued - 1) * (performance.now() - run.since + ms)) / answered;
    const text =
      answered > 0 && queued > 1
        ? RED._("seo-reports.status.paused", { wait: span(ms), queued, left: span(left) })
        : RED._("seo-reports.status.waiting", { seconds, queued });
    return { fill: "yellow", shape: "ring", text };
  }

  function current(): NodeStatus {
    if (!lane || (lane.running + lane.waiting === 0 && progress === undefined)) return ended();
    const { running, reconciling } = lane;
    const queued = lane.waiting - reconciling;
    const wait = client?.waitingFor(lane) ?? 0;
    if (running === 0 && wait > 0 && queued > 0) {
      stale = true;
      return waiting(wait, queued);
    }
    const alone = running + lane.waiting === 1;
    const parts = [
      running + queued > 0 && RED._("seo-reports.status.running", { running, queued }),
      reconciling > 0 && RED._("seo-reports.status.reconciling", { count: reconciling }),
    ];
    const text =
      progress?.() ?? (alone && reconciling === 0 ? "seo-reports.status.requesting" : parts.filter(Boolean).join(", "));
    return { fill: "blue", shape: "dot", text };
  }

  function show(): void {
    if (closed) return;
    stale = true;
    if (timer) return;
    stale = false;
    const status = current();
    const text = JSON.stringify(status);
    if (text !== shown) node.status(status);
    shown = text;
    timer = setTimeout(() => {
      timer = undefined;
      if (stale) show();
    }, INTERVAL);
  }

  return {
    /** Shows the figures of `lane` from now on, whenever they change. */
    follow(of: Lane, by: Client): void {
      lane = of;
      client = by;
      lane.changed = show;
    },
    /** Counts a message; the first one after all others were answered begins a new run. */
    received(): void {
      if (run.received === run.done + run.failed) run = { since: performance.now(), received: 0, done: 0, failed: 0 };
      run.received++;
    },
    /** Shows how many pages of a list were read, until the message ends. */
    progress(page: number, pages: number | undefined, records: number): void {
      const key = pages === undefined ? "pageUnknown" : "page";
      progress = () => RED._(`seo-reports.status.${key}`, { page, pages: pages ?? "", records });
      show();
    },
    /** `text` is asked for only when it is shown, and so is the text of the progress: of many messages, few are. */
    succeeded(text: () => string): void {
      progress = undefined;
      run.done++;
      last = () => {
        const shown = text();
        return NOTHING.includes(shown)
          ? { fill: "grey", shape: "ring", text: shown }
          : { fill: "green", shape: "dot", text: shown };
      };
      show();
    },
    failed(error: SeoError): void {
      progress = undefined;
      run.failed++;
      const text = conditionOf(RED, error);
      last = () => ({ fill: "red", shape: "ring", text });
      show();
    },
    close(): void {
      closed = true;
      clearTimeout(timer);
      node.status({});
    },
  };
}

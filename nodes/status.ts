import type { Node, NodeAPI, NodeStatus } from "node-red";
import type { Client } from "../src/client.js";
import type { Code } from "../src/errors.js";
import type { Lane } from "../src/queue.js";

/** Between two statuses of one node, so that thousands of messages do not become thousands of statuses. */
const PACE = 200;
const SECOND = 1000;

/** Shows what a node is doing: its figures while it does anything, and else how the last message ended. */
export function createStatus(RED: NodeAPI, node: Node) {
  let lane: Lane | undefined;
  let client: Client | undefined;
  let ended = (): NodeStatus => ({});
  let progress: (() => string) | undefined;
  let shown = "";
  let timer: NodeJS.Timeout | undefined;
  let stale = false;
  let closed = false;

  function current(): NodeStatus {
    if (!lane || (lane.running + lane.waiting === 0 && progress === undefined)) return ended();
    const seconds = Math.ceil((client?.waitingFor(lane) ?? 0) / SECOND);
    if (lane.running === 0 && seconds > 0) {
      stale = true;
      return {
        fill: "yellow",
        shape: "ring",
        text: RED._("seo-reports.status.waiting", { seconds, queued: lane.waiting }),
      };
    }
    const figures = { running: lane.running, queued: lane.waiting };
    const alone = lane.running + lane.waiting === 1;
    const text =
      progress?.() ?? (alone ? "seo-reports.status.requesting" : RED._("seo-reports.status.running", figures));
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
    timer = setTimeout(
      () => {
        timer = undefined;
        if (stale) show();
      },
      status.fill === "yellow" ? SECOND : PACE,
    );
  }

  return {
    /** Shows the figures of `lane` from now on, whenever they change. */
    follow(of: Lane, by: Client): void {
      lane = of;
      client = by;
      lane.changed = show;
    },
    /** Shows how far a list is read, until the message ends. */
    progress(page: number, pages: number | undefined, records: number): void {
      const key = pages === undefined ? "pageUnknown" : "page";
      progress = () => RED._(`seo-reports.status.${key}`, { page, pages: pages ?? "", records });
      show();
    },
    /** `text` is asked for only when it is shown: of many messages, most endings are not. So is the text of the progress. */
    succeeded(text: () => string): void {
      progress = undefined;
      ended = () => ({ fill: "green", shape: "dot", text: text() });
      show();
    },
    failed(code: Code): void {
      progress = undefined;
      ended = () => ({ fill: "red", shape: "ring", text: `seo-reports.error.${code}.status` });
      show();
    },
    close(): void {
      closed = true;
      clearTimeout(timer);
      node.status({});
    },
  };
}

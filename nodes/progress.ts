import type { Node, NodeAPI, NodeStatus } from "node-red";
import type { Progress } from "../src/audit/progress.js";
import { Trouble } from "../src/audit/trouble.js";
import type { SeoError } from "../src/errors.js";
import { conditionOf, span } from "./status.js";

const figure = (value: number) => value.toLocaleString("en-US");
const sum = (all: Progress[], of: (progress: Progress) => number) => all.reduce((total, one) => total + of(one), 0);

const failedIn = (all: Progress[]) => sum(all, (one) => one.failed + one.uncertain);

/** Shows how far the batches of a node are, all together, or why one of them cannot go on. */
export function createProgress(RED: NodeAPI, node: Node) {
  const batches = new Map<string, Progress>();
  /** By batch; that of a message, or of the whole node, has no name. */
  const errors = new Map<string, SeoError>();
  /** Another machine leads. */
  let standsBy = false;

  function ended(all: Progress[]): NodeStatus {
    const failed = failedIn(all);
    const done = sum(all, (one) => one.done);
    return failed > 0
      ? {
          fill: "red",
          shape: "ring",
          text: RED._("seo-reports.status.summary", { done: figure(done - failed), failed: figure(failed) }),
        }
      : { fill: "green", shape: "dot", text: RED._("seo-reports.status.audited", { done: figure(done) }) };
  }

  /** Why a batch, or the node, cannot go on; of a batch also how far it is. */
  function stopped(name: string, error: SeoError): NodeStatus {
    const reason = error instanceof Trouble ? `seo-reports.status.${error.kind}` : conditionOf(RED, error);
    const batch = batches.get(name);
    if (!batch?.paused) return { fill: "red", shape: "ring", text: reason };
    const figures = { done: figure(batch.done), total: figure(batch.total) };
    const text = `${RED._("seo-reports.status.auditPaused", figures)} · ${RED._(reason)}`;
    return { fill: "red", shape: "ring", text };
  }

  function current(): NodeStatus {
    const [entry] = errors;
    if (entry) return stopped(...entry);
    const all = [...batches.values()];
    if (all.length === 0) return {};
    if (all.every(({ finished }) => finished)) return ended(all);
    const figures = { done: figure(sum(all, ({ done }) => done)), total: figure(sum(all, ({ total }) => total)) };
    const active = all.filter(({ finished, paused }) => !finished && paused === false);
    if (active.length === 0)
      return { fill: "yellow", shape: "ring", text: RED._("seo-reports.status.auditPaused", figures) };
    const soFar = RED._("seo-reports.status.auditing", figures);
    const seconds = Math.max(...active.map(({ secondsToWait = 0 }) => secondsToWait));
    if (seconds > 0) {
      const queued = figure(sum(active, ({ waiting, reconciling }) => waiting - reconciling));
      const text = `${soFar} · ${RED._("seo-reports.status.waiting", { seconds, queued })}`;
      return { fill: "yellow", shape: "ring", text };
    }
    const lost = sum(active, ({ reconciling }) => reconciling);
    if (lost > 0 && active.every(({ secondsLeft }) => !secondsLeft)) {
      const text = `${soFar} · ${RED._("seo-reports.status.reconciling", { count: lost })}`;
      return { fill: "blue", shape: "dot", text };
    }
    const left = (60_000 * sum(active, (one) => one.waiting)) / sum(active, ({ perMinute }) => perMinute);
    const text = Number.isFinite(left) ? RED._("seo-reports.status.audit", { ...figures, left: span(left) }) : soFar;
    const failed = failedIn(all);
    const failures = failed > 0 ? ` · ${RED._("seo-reports.status.failed", { count: figure(failed) })}` : "";
    return { fill: "blue", shape: "dot", text: text + failures };
  }

  /** Of a machine that stands by, the same figures. */
  function shown(): NodeStatus {
    const status = current() as { fill?: "grey"; shape?: "ring"; text?: string };
    if (!standsBy || errors.size > 0) return status;
    const { fill = "grey", shape = "ring", text } = status;
    const name = RED._("seo-reports.status.standsBy");
    return { fill, shape, text: text ? `${name} · ${text}` : name };
  }

  const show = () => node.status(shown());

  function set(progress: Progress): void {
    batches.set(progress.batch, progress);
    if (progress.paused === false) for (const name of ["", progress.batch]) errors.delete(name);
  }

  return {
    /** The queue is being opened, which takes up to half a minute if its server does not respond. */
    connecting(): void {
      node.status({ fill: "yellow", shape: "ring", text: "node-red:common.status.connecting" });
    },
    update(progress: Progress): void {
      standsBy = false;
      // A finished batch is shown until another one continues.
      for (const [name, { finished }] of batches) if (finished) batches.delete(name);
      set(progress);
      show();
    },
    /** Another machine leads, which says this of its batches. */
    standBy(all: readonly Progress[]): void {
      standsBy = true;
      batches.clear();
      for (const progress of all) set(progress);
      show();
    },
    failed(error: SeoError, batch = ""): void {
      errors.set(batch, error);
      show();
    },
    /**
     * A message was processed, or the jobs can be kept again. `reset`: a batch was dropped, or all. `opened`: this machine
     * leads, and the batches that are not finished follow.
     */
    succeeded({ reset, batch, opened }: { reset?: boolean; batch?: string | undefined; opened?: boolean } = {}): void {
      if (opened) {
        standsBy = false;
        for (const [name, { finished }] of batches) if (!finished) batches.delete(name);
      }
      errors.delete("");
      if (reset && batch === undefined) errors.clear();
      else if (reset && batch !== undefined) errors.delete(batch);
      show();
    },
    close(): void {
      node.status({});
    },
  };
}

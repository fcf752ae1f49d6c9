import type { Node, NodeAPI, NodeStatus } from "node-red";
import type { Progress } from "../src/audit/progress.js";
import { Trouble } from "../src/audit/trouble.js";
import type { SeoError } from "../src/errors.js";
import { blue, conditionOf, green, red, span, yellow } from "./status.js";

const figure = (value: number) => value.toLocaleString("en-US");
const sum = (all: Progress[], of: (progress: Progress) => number) => all.reduce((total, one) => total + of(one), 0);

const failedIn = (all: Progress[]) => sum(all, (one) => one.failed + one.uncertain);

/** Shows how far the batches of a node are, all together, or why one of them cannot continue. */
export class AuditStatus {
  readonly #RED: NodeAPI;
  readonly #node: Node;
  readonly #batches = new Map<string, Progress>();
  /** By batch; that of a message, or of the whole node, has no name. */
  readonly #errors = new Map<string, SeoError>();
  /** Another machine leads. */
  #standsBy = false;

  constructor(RED: NodeAPI, node: Node) {
    this.#RED = RED;
    this.#node = node;
  }

  /** The queue is being opened, which takes up to half a minute if its server does not respond. */
  connecting(): void {
    this.#node.status(yellow("node-red:common.status.connecting"));
  }

  update(progress: Progress): void {
    this.#standsBy = false;
    // A finished batch is shown until another one continues.
    this.#drop(({ finished }) => finished);
    this.#set(progress);
    this.#show();
  }

  /** Another machine leads, which says this of its batches. */
  standBy(all: readonly Progress[]): void {
    this.#standsBy = true;
    this.#batches.clear();
    for (const progress of all) this.#set(progress);
    this.#show();
  }

  failed(error: SeoError, batch = ""): void {
    this.#errors.set(batch, error);
    this.#show();
  }

  /**
   * A message was processed, or the jobs can be kept again. `reset`: a batch was dropped, or all. `opened`: this machine
   * leads, and the batches that are not finished follow.
   */
  succeeded({ reset, batch, opened }: { reset?: boolean; batch?: string | undefined; opened?: boolean } = {}): void {
    if (opened) {
      this.#standsBy = false;
      this.#drop(({ finished }) => !finished);
    }
    this.#errors.delete("");
    if (reset && batch === undefined) this.#errors.clear();
    else if (reset && batch !== undefined) this.#errors.delete(batch);
    this.#show();
  }

  close(): void {
    this.#node.status({});
  }

  #drop(matches: (progress: Progress) => boolean): void {
    for (const [name, progress] of this.#batches) if (matches(progress)) this.#batches.delete(name);
  }

  #set(progress: Progress): void {
    this.#batches.set(progress.batch, progress);
    if (progress.paused === false) for (const name of ["", progress.batch]) this.#errors.delete(name);
  }

  /** Of a machine that stands by, the same figures. */
  #show(): void {
    const status = this.#current();
    if (!this.#standsBy || this.#errors.size > 0) return void this.#node.status(status);
    const { fill = "grey", shape = "ring", text } = status;
    const name = this.#text("standsBy");
    this.#node.status({ fill, shape, text: text ? `${name} · ${text}` : name });
  }

  #current(): NodeStatus {
    const [error] = this.#errors;
    if (error) return this.#stopped(...error);
    const all = [...this.#batches.values()];
    if (all.length === 0) return {};
    if (all.every(({ finished }) => finished)) return this.#ended(all);
    const figures = { done: figure(sum(all, ({ done }) => done)), total: figure(sum(all, ({ total }) => total)) };
    const active = all.filter(({ finished, paused }) => !finished && paused === false);
    if (active.length === 0) return yellow(this.#text("auditPaused", figures));
    const soFar = this.#text("auditing", figures);
    const seconds = Math.max(...active.map(({ secondsToWait = 0 }) => secondsToWait));
    if (seconds > 0) {
      const queued = figure(sum(active, ({ waiting, reconciling }) => waiting - reconciling));
      return yellow(`${soFar} · ${this.#text("waiting", { seconds, queued })}`);
    }
    const lost = sum(active, ({ reconciling }) => reconciling);
    if (lost > 0 && active.every(({ secondsLeft }) => !secondsLeft))
      return blue(`${soFar} · ${this.#text("reconciling", { count: lost })}`);
    const left = (60_000 * sum(active, (one) => one.waiting)) / sum(active, ({ perMinute }) => perMinute);
    const text = Number.isFinite(left) ? this.#text("audit", { ...figures, left: span(left) }) : soFar;
    const failed = failedIn(all);
    return blue(failed > 0 ? `${text} · ${this.#text("failed", { count: figure(failed) })}` : text);
  }

  #ended(all: Progress[]): NodeStatus {
    const failed = failedIn(all);
    const done = sum(all, (one) => one.done);
    return failed > 0
      ? red(this.#text("summary", { done: figure(done - failed), failed: figure(failed) }))
      : green(this.#text("audited", { done: figure(done) }));
  }

  /** Why a batch, or the node, cannot continue; of a batch also how far it is. */
  #stopped(name: string, error: SeoError): NodeStatus {
    const reason = error instanceof Trouble ? `seo-reports.status.${error.kind}` : conditionOf(this.#RED, error);
    const batch = this.#batches.get(name);
    if (!batch?.paused) return red(reason);
    const figures = { done: figure(batch.done), total: figure(batch.total) };
    return red(`${this.#text("auditPaused", figures)} · ${this.#RED._(reason)}`);
  }

  #text(key: string, values: Record<string, string | number> = {}): string {
    return this.#RED._(`seo-reports.status.${key}`, values);
  }
}

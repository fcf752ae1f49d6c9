import type { Node, NodeAPI, NodeStatus } from "node-red";
import type { Progress } from "../src/audit/progress.js";
import { reasonOf, Trouble } from "../src/audit/trouble.js";
import type { SeoError } from "../src/errors.js";
import { reasonKey, span } from "./figures.js";
import { blue, conditionOf, createSetter, green, red, yellow } from "./status.js";

const figure = (value: number) => value.toLocaleString("en-US");
const sum = (all: Progress[], of: (progress: Progress) => number) => all.reduce((total, one) => total + of(one), 0);

/** Finished batches that are remembered. */
const MOST_FINISHED = 20;
/** Milliseconds between two messages about the progress of another machine. */
const BETWEEN = 5000;

/** Shows how far the batches of a node are, all together, or why they cannot continue. */
export class AuditStatus {
  readonly #RED: NodeAPI;
  readonly #put: (status: NodeStatus) => void;
  readonly #batches: Map<string, Progress>;
  /** By batch; that of a message, or of the whole node, has no name. */
  readonly #errors = new Map<string, SeoError>();
  /** By batch: when the progress of another machine was sent, and why it was paused. */
  readonly #sent = new Map<string, { at: number; was: Progress["paused"] }>();
  /** Another machine leads. */
  #standsBy = false;

  /** `batches`: by name, those of the node before a deploy. They are kept up to date. */
  constructor(RED: NodeAPI, node: Node, batches = new Map<string, Progress>()) {
    this.#RED = RED;
    this.#put = createSetter(node);
    this.#batches = batches;
  }

  /** The queue is being opened, which takes up to half a minute if its server does not respond. */
  connecting(): void {
    this.#put(yellow("node-red:common.status.connecting"));
  }

  update(progress: Progress): void {
    this.#standsBy = false;
    this.#set(progress);
    this.#show();
  }

  /** The same batches, some time later. */
  refresh(all: readonly Progress[]): void {
    for (const progress of all) if (this.#batches.get(progress.batch)?.finished === false) this.#set(progress);
    this.#show();
  }

  /** Another machine leads, which says this of its batches. */
  standBy(all: readonly Progress[]): void {
    this.#standsBy = true;
    this.#batches.clear();
    for (const progress of all) this.#set(progress);
    for (const name of this.#sent.keys()) if (!this.#batches.has(name)) this.#sent.delete(name);
    for (const name of this.#errors.keys()) if (name !== "" && !this.#batches.has(name)) this.#errors.delete(name);
    this.#show();
  }

  /** Another machine's progress changes each second. It is sent if a pause begins or ends, and every 5 s. */
  isDue({ batch, paused }: Progress): boolean {
    const { at = Number.NEGATIVE_INFINITY, was } = this.#sent.get(batch) ?? {};
    if (was === paused && performance.now() - at < BETWEEN) return false;
    this.#sent.set(batch, { at: performance.now(), was: paused });
    return true;
  }

  failed(error: SeoError, batch = ""): void {
    this.#errors.set(batch, error);
    this.#show();
  }

  /**
   * A message was processed, or the journals can be written again. `reset`: a batch was dropped, or all. `opened`: this machine
   * leads, and the batches that are not finished follow.
   */
  succeeded({ reset, batch, opened }: { reset?: boolean; batch?: string | undefined; opened?: boolean } = {}): void {
    if (opened) {
      this.#standsBy = false;
      this.forget(false);
    }
    this.#errors.delete("");
    if (reset && batch === undefined) this.#errors.clear();
    else if (reset && batch !== undefined) this.#errors.delete(batch);
    this.#show();
  }

  /** Removes the batches that are finished, or are not, one or all. Returns how many. */
  forget(finished: boolean, name?: string): number {
    const all = [...this.#batches.values()].filter(
      (one) => one.finished === finished && (name ?? one.batch) === one.batch,
    );
    for (const { batch } of all) this.#batches.delete(batch);
    return all.length;
  }

  /** The errors of batches and of the whole node, as a progress says why it is paused. */
  errors(): Pick<Progress, "batch" | "reason" | "paused">[] {
    return [...this.#errors].map(([batch, error]) => ({ batch, reason: reasonOf(error), paused: error.message }));
  }

  close(): void {
    this.#put({});
  }

  #set(progress: Progress): void {
    const { batch, finished, paused } = progress;
    if (finished) this.#batches.delete(batch);
    this.#batches.set(batch, progress);
    if (paused === false) for (const name of ["", batch]) this.#errors.delete(name);
    const ended = [...this.#batches.values()].filter((one) => one.finished);
    for (const { batch } of ended.slice(0, -MOST_FINISHED)) this.#batches.delete(batch);
  }

  /** Of a machine that stands by, the same figures. */
  #show(): void {
    const status = this.#current();
    const { fill = "grey", shape = "ring", text } = status;
    const name = this.#text("status.standsBy");
    const isPlain = !this.#standsBy || this.#errors.size > 0;
    this.#put(isPlain ? status : { fill, shape, text: text ? `${name} · ${text}` : name });
  }

  #current(): NodeStatus {
    const unfinished = [...this.#batches.values()].filter(({ finished }) => !finished);
    // A finished batch is shown until another one continues.
    const all = unfinished.length > 0 ? unfinished : [...this.#batches.values()].slice(-1);
    const [error] = this.#errors;
    if (error) return this.#stopped(...error, all);
    const [first] = all;
    if (!first) return {};
    if (first.finished) return (first.failed + first.uncertain > 0 ? red : green)(this.#figures(all));
    const active = unfinished.filter(({ paused }) => paused === false);
    const { reason = "message" } = first;
    if (active.length === 0)
      return (reason === "message" ? yellow : red)(this.#figures(all, this.#text(reasonKey(reason))));
    const seconds = Math.max(...active.map(({ secondsToWait = 0 }) => secondsToWait));
    if (seconds > 0) return yellow(this.#figures(all, this.#text("status.wait", { seconds })));
    const count = sum(active, ({ reconciling }) => reconciling);
    const isLost = count > 0 && active.every(({ secondsLeft }) => !secondsLeft);
    const key = active.every(({ reason }) => reason) ? "plan" : isLost && "reconciling";
    return blue(this.#figures(all, key ? this.#text(`status.${key}`, { count }) : undefined));
  }

  /** Why a batch, or the node, cannot continue; of a batch also how far all are. */
  #stopped(name: string, error: SeoError, all: Progress[]): NodeStatus {
    const key = error instanceof Trouble ? `seo-reports.${reasonKey(error.kind)}` : conditionOf(this.#RED, error);
    return red(this.#batches.get(name)?.paused ? this.#figures(all, this.#RED._(key)) : key);
  }

  /** Why batches wait, how far they are, and what has failed. */
  #figures(all: Progress[], reason?: string): string {
    const active = all.filter(({ finished, paused }) => !finished && paused === false);
    const left = (60_000 * sum(active, (one) => one.waiting)) / sum(active, ({ perMinute }) => perMinute);
    const failed = sum(all, (one) => one.failed + one.uncertain);
    const dropped = sum(all, (one) => one.dropped);
    const figures = { done: figure(sum(all, ({ done }) => done)), total: figure(sum(all, ({ total }) => total)) };
    const parts = [
      reason,
      this.#text("status.auditing", figures),
      !reason && Number.isFinite(left) && this.#text("status.left", { left: span(left) }),
      failed > 0 && this.#text("status.failed", { count: figure(failed) }),
      dropped > 0 && this.#text("status.pagesReset", { count: figure(dropped) }),
    ];
    return parts.filter(Boolean).join(" · ");
  }

  #text(key: string, values: Record<string, string | number> = {}): string {
    return this.#RED._(`seo-reports.${key}`, values);
  }
}

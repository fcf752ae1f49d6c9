import type { Node, NodeAPI, NodeStatus } from "node-red";
import type { Progress } from "../src/audit/progress.js";
import { type Blocked, blockedBy, Trouble } from "../src/audit/trouble.js";
import type { SeoError } from "../src/errors.js";
import { reasonKey, span } from "./figures.js";
import { blue, conditionOf, createSetter, green, red, yellow } from "./status.js";

const figure = (value: number) => value.toLocaleString("en-US");
const sum = (all: Progress[], of: (progress: Progress) => number) => all.reduce((total, one) => total + of(one), 0);

/** Shows how far the batches of a node are, all together, or why they cannot continue. */
export class AuditStatus {
  readonly #RED: NodeAPI;
  readonly #put: (status: NodeStatus) => void;
  /** By batch; that of a message, or of the whole node, has no name. */
  readonly #errors = new Map<string, SeoError>();
  /** Another machine leads. */
  #standsBy = false;
  /** The queue is being opened, which takes up to half a minute if its server does not respond. */
  #connects = false;

  /** `batches`: those of the node before a deploy. */
  constructor(
    RED: NodeAPI,
    node: Node,
    public batches: readonly Progress[],
  ) {
    this.#RED = RED;
    this.#put = createSetter(node);
  }

  /** The queue is being opened: until it is known who leads, or an error. */
  connecting(): void {
    this.#connects = true;
    this.#show();
  }

  /** `all`: how far the batches are. `standsBy`: another machine leads, which says so; if that is undefined, as before. */
  update(all: readonly Progress[], standsBy?: boolean): void {
    this.#connects &&= standsBy === undefined;
    const isNews = ({ batch, finished }: Progress) => !(finished && this.#named(batch)?.finished);
    const running = all.filter((one) => one.paused === false && isNews(one));
    for (const { batch } of running) for (const name of ["", batch]) this.#errors.delete(name);
    this.#standsBy = standsBy ?? this.#standsBy;
    this.batches = all;
    if (this.#standsBy)
      for (const name of this.#errors.keys()) if (name !== "" && !this.#named(name)) this.#errors.delete(name);
    this.#show();
  }

  failed(error: SeoError, batch = ""): void {
    this.#errors.set(batch, error);
    this.#show();
  }

  /**
   * A message was processed, or the journals can be written again. `reset`: a batch was dropped, or all. `opened`: this machine
   * leads.
   */
  succeeded({ reset, batch, opened }: { reset?: boolean; batch?: string | undefined; opened?: boolean } = {}): void {
    if (opened) this.#standsBy = this.#connects = false;
    this.#errors.delete("");
    if (reset && batch === undefined) this.#errors.clear();
    else if (reset && batch !== undefined) this.#errors.delete(batch);
    this.#show();
  }

  /** The errors of batches and of the whole node, as a progress says why it is paused; of a config node that is invalid, which it is. */
  errors(): Blocked[] {
    return [...this.#errors].map(([batch, error]) => {
      const blocked = blockedBy(batch, error);
      return { ...blocked, reason: error.details.place ?? blocked.reason };
    });
  }

  close(): void {
    this.#put({});
  }

  #named(name: string): Progress | undefined {
    return this.batches.find(({ batch }) => batch === name);
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
    const unfinished = this.batches.filter(({ finished }) => !finished);
    // A finished batch is shown until another one continues.
    const all = unfinished.length > 0 ? unfinished : this.batches.slice(-1);
    const [error] = this.#errors;
    if (error) return this.#stopped(...error, all);
    if (this.#connects) return yellow("node-red:common.status.connecting");
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
    return red(this.#named(name)?.paused ? this.#figures(all, this.#RED._(key)) : key);
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

import { reasonKey, SECOND, span } from "../../figures.js";
import type { Any, Text } from "./state.js";

const WRITE = "seo-report-audit.write";
const outcomes = ["created", "regenerated", "fresh", "failed", "uncertain"];
const actions = ["pause", "resume", "retry", "reset"];

/** The functions of the editor that the tab of audits needs. */
export interface Tools {
  RED: Any;
  $: Any;
  text: Text;
  /** A tag with a class and parts, which are texts or elements. No text is read as HTML. */
  build(tag: string, kind?: string, ...parts: Any[]): Any;
}

/** The audit node's ID, and the name of its batch. */
export interface Place {
  node: string;
  batch: string;
}

/** The card of a batch, or of what is wrong with a node: how far it is, buttons, and the rows that have failed. */
export class Card {
  readonly element: Any;
  readonly #tools: Tools;
  readonly #place: Place;
  readonly #name: Any;
  readonly #bar: Any;
  readonly #legend: Any;
  readonly #figures: Any;
  readonly #why: Any;
  readonly #buttons: Record<string, Any>;
  readonly #message: Any;
  readonly #opener: Any;
  readonly #rows: Any;
  readonly #list: Any;
  readonly #more: Any;
  #last: Any = {};
  /** The rows that are shown. */
  #count = 0;

  constructor(tools: Tools, place: Place, reveal: () => void) {
    const { text, build } = tools;
    const button = (label: string, act: () => unknown, kind = "") =>
      build("button", kind, label).attr("type", "button").on("click", act);
    const action = (how: string) => [how, button(text(`sidebar.${how}`), () => this.#control(how))];
    const marks = () => outcomes.map((outcome) => build("span", `seo-${outcome}`));
    this.#tools = tools;
    this.#place = place;
    this.#name = button("", reveal, "seo-name");
    this.#bar = build("div", "seo-bar", ...marks()).attr({ role: "progressbar", "aria-label": place.batch });
    this.#legend = build("div", "seo-legend", ...marks());
    this.#figures = build("div");
    this.#why = build("div");
    this.#buttons = Object.fromEntries(actions.map(action));
    this.#message = build("div").attr("role", "status");
    this.#opener = button("", () => this.#toggle()).attr("aria-expanded", "false");
    this.#list = build("ul");
    this.#more = button(text("sidebar.more"), () => this.#read());
    const copy = button(text("sidebar.copy"), () => this.#copy());
    this.#rows = build("div", "", copy, this.#list, this.#more).prop("hidden", true);
    const head = build("div", "seo-line", this.#name, build("span", "", place.batch));
    const foot = build("div", "seo-line", ...Object.values(this.#buttons), this.#opener);
    const body = [this.#bar, this.#figures, this.#why, this.#legend, foot, this.#message, this.#rows];
    this.element = build("section", "", head, ...body);
  }

  /** `progress`: of the batch, or why there is none. Returns what a screen reader says of it. */
  show(progress: Any, label: string): string | undefined {
    const { RED, text } = this.#tools;
    const { failed, uncertain, paused, reason, finished, kept } = progress;
    const isOpen = finished === false;
    const canRetry = failed + uncertain > 0 && (isOpen || kept);
    const fits: Any = { pause: isOpen && !paused, resume: isOpen && paused, retry: canRetry, reset: this.#place.batch };
    const why = reason && [text(reasonKey(reason)), reason !== "message" && (paused || progress.message)];
    put(this.#name, label);
    put(this.#why, (why || []).filter(Boolean).join(" · "));
    for (const how of actions) this.#buttons[how].prop("hidden", !RED.user.hasPermission(WRITE) || !fits[how]);
    put(this.#opener, text("sidebar.rows", { count: this.#figure(failed + uncertain) }));
    this.#opener.prop("hidden", !canRetry);
    this.#bar.prop("hidden", !progress.total);
    if (progress.total) this.#showFigures(progress);
    const isNews = this.#last.total && (this.#last.paused !== paused || this.#last.finished !== finished);
    this.#last = progress;
    const news = [label, this.#place.batch, this.#why.text(), this.#figures.text()];
    return isNews ? news.filter(Boolean).join(" · ") : undefined;
  }

  #showFigures(progress: Any): void {
    const { text } = this.#tools;
    const { total, done, paused, finished, perMinute, secondsLeft, secondsToWait, dropped } = progress;
    const parts = [
      text("status.auditing", { done: this.#figure(done), total: this.#figure(total) }),
      !finished && !paused && perMinute > 0 && text("sidebar.pace", { count: this.#figure(perMinute) }),
      !finished && secondsLeft > 0 && text("status.left", { left: span(secondsLeft * SECOND) }),
      secondsToWait > 0 && text("status.wait", { seconds: secondsToWait }),
      finished && text("sidebar.ended"),
      dropped > 0 && text("status.pagesReset", { count: this.#figure(dropped) }),
    ].filter(Boolean);
    put(this.#figures, parts.join(" · "));
    this.#bar.attr({ "aria-valuemax": total, "aria-valuenow": done, "aria-valuetext": parts.join(", ") });
    for (const [at, outcome] of outcomes.entries()) {
      const value = progress[outcome];
      const entry = this.#legend.children().eq(at);
      const share = this.#bar.children().eq(at);
      share
        .css("width", `${(100 * value) / total}%`)
        .add(entry)
        .prop("hidden", value === 0);
      put(entry, text(outcome === "failed" ? "status.failed" : `sidebar.${outcome}`, { count: this.#figure(value) }));
    }
  }

  #figure(value: number): string {
    return value.toLocaleString(this.#tools.RED.i18n.lang());
  }

  /** Sends a request, and shows why it has failed. */
  async #request(path: string, data: object | string, more = {}): Promise<Any> {
    this.#message.text("");
    try {
      return await this.#tools.$.ajax({ url: `seo-report-audit/${path}`, data, ...more });
    } catch (failed) {
      const { status, responseJSON } = failed as Any;
      const why = status ? `HTTP ${status}` : this.#tools.text("dialog.unanswered");
      this.#message.text(responseJSON?.message ?? why);
    }
  }

  async #control(how: string): Promise<void> {
    const { waiting, kept } = this.#last;
    const question = () => this.#tools.text("sidebar.question", { count: this.#figure(waiting) });
    if (how === "reset" && (waiting > 0 || kept) && !window.confirm(question())) return;
    if (!this.#rows.prop("hidden")) this.#toggle();
    const data = JSON.stringify({ ...this.#place, do: how });
    this.#buttons[how].prop("disabled", true);
    await this.#request("control", data, { method: "POST", contentType: "application/json" });
    this.#buttons[how].prop("disabled", false);
  }

  #toggle(): void {
    const opens = this.#rows.prop("hidden");
    this.#rows.prop("hidden", !opens);
    this.#opener.attr("aria-expanded", String(opens));
    this.#list.empty();
    this.#count = 0;
    if (opens) void this.#read();
  }

  async #read(): Promise<void> {
    const { text, build } = this.#tools;
    const found = await this.#request("rows", { ...this.#place, from: this.#count });
    for (const { url, message, candidates } of found?.rows ?? []) {
      const reports = candidates.length > 0 ? text("sidebar.candidates", { reports: candidates.join(", ") }) : "";
      this.#list.append(build("li", "", build("b", "", url), build("div", "", message), build("div", "", reports)));
      this.#count++;
    }
    this.#more.prop("hidden", this.#count >= (found?.total ?? 0));
  }

  async #copy(): Promise<void> {
    const { RED, text } = this.#tools;
    const csv = await this.#request("rows", { ...this.#place, csv: 1 }, { dataType: "text" });
    if (csv === undefined) return;
    const key = RED.clipboard.copyText(csv) ? "copied" : "uncopied";
    const { failed, uncertain } = this.#last;
    this.#message.text(text(`sidebar.${key}`, { count: this.#figure(failed + uncertain) }));
  }
}

/** A text that is the same is not set again, so that it stays selected. */
function put(element: Any, words: string): void {
  if (element.text() !== words) element.text(words);
}

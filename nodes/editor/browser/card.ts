import { controls, outcomes } from "../../../src/audit/entries.js";
import { reasonKey, SECOND, span } from "../../figures.js";
import { createRows } from "./rows.js";
import type { Any } from "./state.js";
import { type CardPlace, put, type Tools } from "./tools.js";

const WRITE = "seo-report-audit.write";
const MESSAGE = new RegExp(`msg\\.(${controls.join("|")})\\b`, "g");

/** How far a batch is. */
function figuresOf({ text, figure }: Tools, progress: Any): string[] {
  const { total, done, finished, perMinute, secondsLeft, secondsToWait, reconciling, dropped, reset } = progress;
  return [
    text("status.auditing", { done: figure(done), total: figure(total) }),
    secondsLeft > 0 && perMinute > 0 && text("sidebar.pace", { count: figure(perMinute) }),
    secondsLeft > 0 && text("status.left", { left: span(secondsLeft * SECOND) }),
    secondsToWait > 0 && text("status.wait", { seconds: secondsToWait }),
    reconciling > 0 && text("status.reconciling", { count: figure(reconciling) }),
    finished && text("sidebar.ended"),
    (dropped > 0 || reset) && text("status.pagesReset", { count: figure(dropped) }),
  ].filter(Boolean) as string[];
}

/** How many rows have failed, or are uncertain. At the end of a reset, they are removed. */
const failedIn = ({ total, failed, uncertain, reset, finished }: Any): number =>
  total && !(reset && finished) ? failed + uncertain : 0;

/** The card of a batch, or of an error of a node: how far it is, buttons, and the rows that have failed. */
export function createCard(tools: Tools, place: CardPlace, reveal: () => void, look: () => Promise<void>) {
  const { RED, text, build, button, figure, send } = tools;
  const marks = () => outcomes.map((outcome) => build("span", `seo-${outcome}`));
  const segments = marks();
  const counts = marks();
  const name = button("", reveal, "seo-name");
  const bar = build("div", "seo-bar", ...segments).attr({ role: "progressbar", "aria-label": place.batch });
  const legend = build("div", "seo-legend", ...counts);
  const figures = build("div");
  const why = build("div");
  const buttons = controls.map((how) => button(text(`sidebar.${how}`), () => control(how)));
  const message = build("div").attr("role", "status");
  const rows = createRows(tools, place, request);
  const head = build("div", "seo-line", name, build("span", "", place.batch));
  const foot = build("div", "seo-line", ...buttons);
  const element = build("section", "", head, bar, figures, why, legend, foot, message, rows.element);
  let last: Any = {};
  let isBusy = false;

  /** Sends a request, and shows why it has failed. */
  async function request(path: string, data: object | string, more = {}): Promise<Any> {
    put(message, "");
    try {
      return await send(path, data, more);
    } catch (failed) {
      const { status, responseJSON } = failed as Any;
      put(message, responseJSON?.message ?? (status ? `HTTP ${status}` : text("dialog.unanswered")));
    }
  }

  async function control(how: string): Promise<void> {
    // The card can be a second old.
    if (how === "reset") await look();
    const warnings = [
      last.waiting > 0 && text("sidebar.question", { count: figure(last.waiting) }),
      failedIn(last) > last.invalid && text("sidebar.forgotten"),
    ];
    const question = warnings.filter(Boolean).join(" ");
    if (isBusy || (how === "reset" && question && !window.confirm(`${place.batch}\n\n${question}`))) return;
    isBusy = true;
    const data = JSON.stringify({ ...place, do: how });
    await request("control", data, { method: "POST", contentType: "application/json" });
    await look();
    isBusy = false;
  }

  function showFigures(progress: Any): void {
    const parts = figuresOf(tools, progress);
    put(figures, parts.join(" · "));
    bar.attr({ "aria-valuemax": progress.total, "aria-valuenow": progress.done, "aria-valuetext": parts.join(", ") });
    for (const [at, outcome] of outcomes.entries()) {
      const count = figure(progress[outcome]);
      const entry = text(outcome === "failed" ? "status.failed" : `sidebar.${outcome}`, { count });
      put(counts[at], progress[outcome] > 0 ? entry : "");
      segments[at].css("width", `${(100 * progress[outcome]) / progress.total}%`);
    }
  }

  /** `progress`: of the batch, or why there is none. Returns what a screen reader says of it. */
  function show(progress: Any, label: string): string | undefined {
    const { total, invalid, reset, paused, reason, finished } = progress;
    const isOpen = finished === false && !reset;
    const count = failedIn(progress);
    const fits: Any = {
      pause: isOpen && !paused,
      resume: isOpen && paused,
      retry: count > invalid && !reset,
      reset: place.batch && (isOpen || finished !== false),
    };
    const sentence = (paused || "").replace(MESSAGE, (_: string, how: string) => `“${text(`sidebar.${how}`)}”`);
    const resume = text("sidebar.continues", { resume: text("sidebar.resume") });
    const because = reason ? [text(reasonKey(reason)), reason === "message" ? resume : sentence] : [];
    put(name, label || name.text() || place.node);
    put(why, because.filter(Boolean).join(" · "));
    const focused = buttons.find((one) => one.is(":focus"));
    for (const [i, how] of controls.entries()) buttons[i].prop("hidden", !RED.user.hasPermission(WRITE) || !fits[how]);
    if (focused?.prop("hidden")) (buttons.find((one) => !one.prop("hidden")) ?? name).trigger("focus");
    if (message.text() === text("dialog.unanswered")) put(message, "");
    rows.show(count);
    for (const one of [bar, legend, figures]) one.prop("hidden", !total);
    if (total) showFigures(progress);
    const isNews = last.total && ["paused", "finished", "reset"].some((key) => last[key] !== progress[key]);
    last = progress;
    return isNews ? [label, place.batch, why.text(), figures.text()].filter(Boolean).join(" · ") : undefined;
  }

  return { element, show };
}

export type Card = ReturnType<typeof createCard>;

import type { Any } from "./state.js";
import { type CardPlace, put, type Tools } from "./tools.js";

/** The rows of a batch that have failed: a list that can be opened, and copied as CSV. */
export function createRows({ RED, text, build, button, figure }: Tools, place: CardPlace, request: Tools["send"]) {
  const title = build("summary");
  const list = build("ul");
  const rest = build("div");
  const message = build("div").attr("role", "status");
  const element = build("details", "", title, button(text("sidebar.copy"), copy), message, list, rest);
  /** How many have failed, and how many had when the list was read. */
  let count = 0;
  let shown = 0;

  async function read(): Promise<void> {
    if (!element.prop("open") || shown === count) return;
    shown = count;
    const rows: Any[] = (await request("rows", place)) ?? [];
    const lines = rows.map(({ url, message, candidates }) => {
      const reports = candidates.length > 0 ? text("sidebar.candidates", { reports: candidates.join(", ") }) : "";
      return build("li", "", build("b", "", url), build("div", "", message), build("div", "", reports));
    });
    list.empty().append(lines);
    put(rest, count > rows.length ? text("sidebar.more", { count: figure(count - rows.length) }) : "");
  }

  async function copy(): Promise<void> {
    const csv = await request("rows", { ...place, csv: 1 }, { dataType: "text" });
    if (csv === undefined) return;
    const end = RED.clipboard.copyText(csv) ? "copied" : "uncopied";
    put(message, text(`sidebar.${end}`, { count: figure(count) }));
  }

  element.on("toggle", async () => {
    shown = 0;
    put(message, "");
    await read();
    // Node-RED 5 shows few lines: the first row can be below them.
    list[0].firstElementChild?.scrollIntoView({ block: "nearest" });
  });

  return {
    element,
    /** `now`: how many rows have failed. An open list is read again if that has changed. */
    show(now: number): void {
      if (now !== count) put(message, "");
      count = now;
      put(title, text("sidebar.rows", { count: figure(count) }));
      element.prop("hidden", count === 0);
      void read();
    },
  };
}

import { SECOND } from "../../figures.js";
import { type Card, createCard } from "./card.js";
import type { Any } from "./state.js";
import { createTools, put } from "./tools.js";

export const TAB = "seo-audits";
const READ = "seo-report-audit.read";

/** @public Adds the tab “SEO audits”. It requests the cards once a second while somebody sees it. */
export function watchAudits(RED: Any, $: Any, set: string, keys: string): void {
  const tools = createTools(RED, $, `${set}:${keys}`);
  const { text, build } = tools;
  const note = build("p");
  const list = build("div");
  const spoken = build("div", "seo-spoken").attr("role", "status");
  const content = build("div", "seo-audits", note, list, spoken);
  let cards = new Map<string, Card>();
  let isSeen = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * A node in the editor. The ID of one in a subflow is that of the instance, a hyphen, and its own: then the instance, and the node.
   * None if it was deleted in the workspace.
   */
  function nodesOf(id: string): Any[] {
    const parts = id.split("-");
    const first = parts.map((_, at) => RED.nodes.node(parts.slice(0, parts.length - at).join("-"))).find(Boolean);
    return first ? [first, ...nodesOf(id.slice(first.id.length + 1))] : [];
  }

  function show(all: Any[]): void {
    const before = cards;
    cards = new Map();
    for (const { node, batch, ...progress } of all) {
      const key = JSON.stringify([node, batch]);
      const reveal = () => RED.view.reveal(nodesOf(node)[0]?.id);
      const card = before.get(key) ?? createCard(tools, { node, batch }, reveal, look);
      if (!before.has(key)) list.append(card.element);
      cards.set(key, card);
      const label = nodesOf(node).map((one) => RED.utils.getNodeLabel(one, one.id));
      const news = card.show(progress, label.join(": "));
      if (news) spoken.text(news);
    }
    for (const [key, { element }] of before) {
      if (cards.has(key)) continue;
      element.remove();
      // The card of a node that could not be used has no batch.
      const [, batch] = JSON.parse(key);
      if (batch) spoken.text(`${batch} · ${text("sidebar.removed")}`);
    }
  }

  async function look(): Promise<void> {
    clearTimeout(timer);
    if (!isSeen || document.hidden) return;
    const mayRead = RED.user.hasPermission(READ);
    const all = mayRead && (await tools.send("batches", {}).catch(() => undefined));
    if (all) show(all);
    const empty = cards.size > 0 ? "" : text("sidebar.empty");
    put(note, mayRead ? (all ? empty : text("dialog.unanswered")) : text("sidebar.forbidden"));
    clearTimeout(timer);
    timer = setTimeout(look, SECOND);
  }

  function remove({ id }: Any): void {
    if (id !== set) return;
    RED.events.off("registry:node-set-removed", remove);
    document.removeEventListener("visibilitychange", look);
    // Node-RED 5 would keep its place, which is empty then.
    if (isSeen) RED.sidebar.show("info");
    RED.sidebar.removeTab(TAB);
  }

  const name = text("sidebar.name");
  RED.sidebar.addTab({ id: TAB, name, label: name, iconClass: "fa fa-tasks", enableOnEdit: true, content });
  new IntersectionObserver((all) => {
    isSeen = all.at(-1)?.isIntersecting === true;
    void look();
  }).observe(content[0]);
  document.addEventListener("visibilitychange", look);
  RED.events.on("registry:node-set-removed", remove);
}

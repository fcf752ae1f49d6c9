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
  const cards = new Map<string, Card>();
  let isSeen = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** A node in the editor; of one in a subflow, whose ID begins with that of the instance, the instance. */
  function find(id: string): Any {
    const parts = id.split("-");
    return parts.map((_, at) => RED.nodes.node(parts.slice(0, parts.length - at).join("-"))).find(Boolean);
  }

  /** Blank if the node was deleted in the workspace. */
  function labelOf(id: string, alias?: string): string {
    const nodes = [find(id), alias && RED.nodes.node(alias)].filter(Boolean);
    return nodes.map((node) => RED.utils.getNodeLabel(node, node.id)).join(": ");
  }

  function show(all: Any[]): void {
    const gone = new Map(cards);
    for (const { node, alias, ...progress } of all) {
      const { batch } = progress;
      const key = JSON.stringify([node, batch]);
      const reveal = () => RED.view.reveal(find(node)?.id);
      const card = cards.get(key) ?? createCard(tools, { node, batch }, reveal, look);
      if (!cards.has(key)) list.append(card.element);
      cards.set(key, card);
      gone.delete(key);
      const news = card.show(progress, labelOf(node, alias));
      if (news) spoken.text(news);
    }
    for (const [key, { element }] of gone) {
      element.remove();
      cards.delete(key);
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

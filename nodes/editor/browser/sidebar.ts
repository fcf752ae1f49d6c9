import { SECOND } from "../../figures.js";
import { Card, type Place, type Tools } from "./card.js";
import type { Any, Text } from "./state.js";

export const TAB = "seo-audits";
const READ = "seo-report-audit.read";

/** @public Adds the tab “SEO audits”. It requests the batches once a second while somebody sees it. */
export function watchAudits(RED: Any, $: Any, set: string, keys: string): void {
  const text: Text = (key, values) => RED._(`${set}:${keys}${key}`, values);
  const build: Tools["build"] = (tag, kind, ...parts) => {
    const nodes = parts.map((part) => (typeof part === "string" ? document.createTextNode(part) : part));
    return $(document.createElement(tag)).addClass(kind).append(nodes);
  };
  const note = build("p");
  const list = build("div");
  const spoken = build("div", "seo-spoken").attr("role", "status");
  const content = build("div", "seo-audits", note, list, spoken);
  const cards = new Map<string, Card>();
  const labels = new Map<string, string>();
  let isSeen = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** A node in the editor; of one in a subflow, whose ID begins with that of the instance, the instance. */
  function find(id: string): Any {
    const parts = id.split("-");
    return parts.map((_, at) => RED.nodes.node(parts.slice(0, parts.length - at).join("-"))).find(Boolean);
  }

  /** Its last label, if it was deleted in the workspace. */
  function labelOf(id: string, alias?: string): string {
    const nodes = [find(id), alias && RED.nodes.node(alias)].filter(Boolean);
    if (nodes.length > 0) labels.set(id, nodes.map((node) => RED.utils.getNodeLabel(node, node.id)).join(": "));
    return labels.get(id) ?? id;
  }

  function cardOf(key: string, place: Place) {
    const card =
      cards.get(key) ?? new Card({ RED, $, text, build }, place, () => RED.view.reveal(find(place.node)?.id));
    if (!cards.has(key)) list.append(card.element);
    cards.set(key, card);
    return card;
  }

  function show(nodes: Any[]): void {
    const gone = new Set(cards.keys());
    for (const { id, alias, batches, errors } of nodes)
      for (const one of [...batches, ...errors]) {
        const key = JSON.stringify([id, one.batch]);
        if (!gone.delete(key) && cards.has(key)) continue;
        const news = cardOf(key, { node: id, batch: one.batch }).show(one, labelOf(id, alias));
        if (news) spoken.text(news);
      }
    for (const key of gone) {
      cards.get(key)?.element.remove();
      cards.delete(key);
    }
  }

  function say(words: string): void {
    if (note.text() !== words) note.text(words);
    note.prop("hidden", words === "");
  }

  async function look(): Promise<void> {
    clearTimeout(timer);
    if (!isSeen || document.hidden) return;
    const mayRead = RED.user.hasPermission(READ);
    const nodes = mayRead && (await $.ajax({ url: "seo-report-audit/batches" }).catch(() => undefined));
    if (nodes) show(nodes);
    const empty = cards.size > 0 ? "" : text("sidebar.empty");
    say(mayRead ? (nodes ? empty : text("dialog.unanswered")) : text("sidebar.forbidden"));
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

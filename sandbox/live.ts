import { hash, pageAt } from "./pages.js";
import type { Reports } from "./reports.js";

/** Creates, regenerates or deletes reports every `interval` ms until the returned function is called. */
export function startLive(reports: Reports, interval: number): () => void {
  let turn = 0;

  function pick(purpose: string): number | undefined {
    const all = reports.list({});
    return all[hash(`${purpose} ${turn}`) % all.length]?.id;
  }

  function change(): void {
    turn++;
    const regenerated = pick("regenerate");
    if (regenerated !== undefined) reports.update(regenerated, { update: "1" });
    const removed = turn % 3 === 0 ? pick("remove") : undefined;
    if (removed !== undefined) reports.remove(removed);
    reports.store({ url: pageAt(hash(`store ${turn}`) % 1000) });
  }

  const timer = setInterval(change, interval);
  timer.unref();
  return () => clearInterval(timer);
}

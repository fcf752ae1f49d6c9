import type { Watcher } from "../store.js";
import type { Group, GroupEntry } from "./group.js";
import type { Applied } from "./writer.js";

/** Follows what other machines send and get, because it explains reports that no request of this one created. */
export function createElsewhere({ ledger, owners, pages, urlOf }: Group, isOwn: (by: string) => boolean) {
  const open = new Map<number, () => void>();
  const reports: string[] = [];
  let watcher: Watcher | undefined;

  function follow(page: number): void {
    const by = owners.get(page);
    const sent = ledger.sent.get(page);
    open.get(page)?.();
    open.delete(page);
    if (!watcher || !sent || by === undefined || isOwn(by) || pages.state(page) !== "sent") return;
    open.set(page, watcher.sent(urlOf(page), sent));
  }

  return {
    /** All reports that were got, the last one at the end. */
    reports: () => reports,

    watch(given: Watcher): void {
      watcher = given;
      for (const page of ledger.sent.keys()) follow(page);
    },

    /** Nothing is followed any more. */
    end(): void {
      watcher = undefined;
      for (const stop of open.values()) stop();
      open.clear();
    },

    applied(entry: GroupEntry, result: Applied): void {
      if ("ended" in entry && result === true) {
        if (entry.report !== undefined) {
          reports.push(entry.report);
          watcher?.got(entry.report);
        }
        if (!isOwn(entry.by ?? "/") && entry.attempts > 0) watcher?.ended();
      }
      if ("row" in entry) follow(entry.row);
      if ("take" in entry && typeof result === "number") follow(result);
    },
  };
}

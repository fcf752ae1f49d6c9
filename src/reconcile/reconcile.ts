import { pageKey } from "../address.js";
import { parseDate } from "../dates.js";
import { SeoError } from "../errors.js";
import type { Response } from "../http/transport.js";
import type { Lookup } from "../operations.js";
import { reportsIn } from "../records.js";
import { createTurns, deferred } from "../turns.js";
import { createAccount } from "./account.js";
import type { Requester } from "./list.js";
import { type Fate, type OpenRequest, Search } from "./search.js";
import { Searches } from "./searches.js";
import type { Intent } from "./watermark.js";

/** The time that the reconciler goes by. */
export interface Time {
  /** Milliseconds that only rise. */
  now(): number;
  sleep(ms: number): Promise<unknown>;
}

/** Of two dates of a report, the one that its latest response had. */
const later = (one: string | undefined, other: string | undefined) =>
  other === undefined || parseDate(one) > parseDate(other) ? one : other;

/** Finds out what became of requests whose response was lost. The rules, and why: docs/decisions/reconcile.md. */
export function createReconciler(requester: Requester, { now, sleep }: Time, isNeeded = true) {
  const account = createAccount(requester, now);
  const takeTurn = createTurns();
  const open = new Set<OpenRequest>();
  const searches = new Searches({ account, requester, open, now }, sleep);

  return {
    /** Learns from a response, if any lost response was to be looked for so far. */
    observe(response: Pick<Response, "body">): void {
      if (isNeeded) account.observe(response);
    },
    forget: account.forget,
    /** Reports that somebody got in another process, at most `horizon` milliseconds after the request was sent. */
    claim: (ids: readonly string[], horizon: number) => account.claimAll(ids, now() + horizon),

    /** Opens a request for a page or a report. `intent` is what is known; restored from it, the request counts as sent now. */
    open(lookup: Lookup, input: Record<string, string>, intent?: Intent) {
      const { list } = lookup;
      // No page's key begins with a space.
      const page = list ? pageKey(String(input.url)) : ` ${input.reportId}`;
      const request: OpenRequest = { lookup, input, page, sentAt: now(), ...intent };
      const ended = deferred();
      let settle = () => {};
      let search: Search | undefined;
      open.add(request);
      isNeeded = true;
      return {
        /** Resolves when no other request for the page is open; undefined if none is. */
        turn(): Promise<unknown> | undefined {
          // All turns at once, so that no two can wait for each other.
          const before = account.namesOf(page).flatMap((name) => takeTurn(name, ended.promise) ?? []);
          return before.length > 0 ? Promise.all(before) : undefined;
        },
        /** Resolves when the newest report is known; undefined if it is. */
        newest: () => (list ? account.findNewest(list) : undefined),
        /** The request is about to be sent. What this returns finds its effect later, also in another process. */
        sending(): Intent {
          const { promise: settled, resolve } = deferred();
          settle = resolve;
          const known: Intent = list
            ? { watermark: account.newest(), generatedAt: undefined }
            : {
                watermark: undefined,
                generatedAt: later(request.generatedAt, account.generatedAt(String(input.reportId))),
              };
          Object.assign(request, { sentAt: now(), settled, ...known });
          return known;
        },
        /** The request is not in flight any more. */
        received(result: Pick<Response, "body"> | SeoError): void {
          const [record] = result instanceof SeoError ? [] : reportsIn(result.body);
          if (record && list) account.claim(record, page, 0, request.watermark);
          settle();
        },
        /** The response was lost: looks until the outcome is known. `error` says why, `horizon` is in milliseconds after sending. */
        lost(error: SeoError, horizon: number): Promise<Fate> {
          search = new Search(request, error, horizon, now());
          searches.add(search);
          return search.fate;
        },
        /** Must follow, whatever happened. Stops looking. */
        end(): void {
          settle();
          open.delete(request);
          if (search) searches.delete(search);
          ended.resolve();
        },
      };
    },
  };
}

export type Reconciler = ReturnType<typeof createReconciler>;
/** One request, from before it is sent until its outcome is known. */
export type Ticket = ReturnType<Reconciler["open"]>;

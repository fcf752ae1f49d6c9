import { randomUUID } from "node:crypto";
import { pageKey } from "../address.js";
import { cancelled, SeoError } from "../errors.js";
import type { Lookup } from "../operations.js";
import { reportIn } from "../records.js";
import type { Response } from "../responses.js";
import { createGroups, createTurns, deferred } from "../turns.js";
import { type Account, createAccount } from "./account.js";
import type { Requester } from "./list.js";
import type { Knowledge, ListNeed, Time, TrackedRequest } from "./look.js";
import { type Fate, searchFor } from "./search.js";
import type { Intent } from "./watermark.js";

const SECOND = 1000;
/** Many that search share their looks. */
const MOST_SECONDS_BETWEEN = 5;

/** The start of the IDs of this process's requests. A UUID for each would take much more memory. */
const PROCESS = randomUUID();
let lastRequest = 0;

/** The facts that find the effect of a request, known before it is sent. */
const intentOf = (account: Account, { lookup, input, generatedAt }: TrackedRequest): Intent => ({
  id: `${PROCESS}-${++lastRequest}`,
  watermark: lookup.list ? account.newest() : undefined,
  ...account.beforeUpdate(String(input.reportId), generatedAt),
});

/** Finds out what became of requests whose response was lost. The rules, and why: docs/decisions/reconcile.md. */
export function createReconciler(requester: Requester, { now, sleep }: Time, isNeeded = true) {
  const account = createAccount(requester, now);
  const turnsOf = createTurns();
  const tracked = new Set<TrackedRequest>();
  const inFlight = new Set<TrackedRequest>();
  /** From when the list may be read again. */
  let readableAt = 0;
  /** One read of the list serves all that look at the same time. */
  const { add: read } = createGroups(
    async (needs: ListNeed[]) => {
      const wanted = needs.filter(({ request }) => tracked.has(request));
      const [oldest] = wanted.sort((a, b) => a.readTo.rank - b.readTo.rank);
      if (!oldest) throw cancelled;
      return account.readAfter(oldest.list, oldest.readTo).finally(() => {
        const lost = [...tracked].filter(({ horizonAt }) => horizonAt !== undefined);
        readableAt = now() + SECOND * Math.min(lost.length, MOST_SECONDS_BETWEEN);
      });
    },
    // At least a turn, so that requests of an earlier process, which begin together, share the first one.
    () => sleep(Math.max(0, readableAt - now())),
  );
  /** Audits that have not claimed yet which reports earlier processes got. */
  const announced = new Set<Promise<void>>();
  /** Resolves when all earlier work for a page, or for the page to which it redirects, has ended; undefined if there is none. */
  function turnOf(page: string, ended: Promise<void>): Promise<unknown> | undefined {
    // All turns at once, so that no two can wait for each other.
    const before = account.namesOf(page).flatMap((name) => turnsOf(name, ended) ?? []);
    return before.length > 0 ? Promise.all(before) : undefined;
  }
  const claimed = () => Promise.all(announced);
  const knowledge: Knowledge = { account, requester, tracked, inFlight, now, sleep, claimed, read };

  return {
    /** Whether any lost response is looked for: then all requests of a page take turns. */
    isNeeded: () => isNeeded,
    /** Learns from a response, if any lost response is looked for. */
    observe: (response: Pick<Response, "headers" | "body">) => isNeeded && account.observe(response),
    forget: account.forget,
    turnOf,
    /** Reports that somebody got in another process, at most `horizon` milliseconds after the request was sent. */
    claim: (ids: readonly string[], horizon: number) => account.claimAll(ids, now() + horizon),

    /** An audit will claim such reports. Until it calls what this returns, they could be taken for the effects of lost requests. */
    announceClaims(): () => void {
      isNeeded = true;
      const { promise, resolve } = deferred();
      announced.add(promise);
      return () => {
        announced.delete(promise);
        resolve();
      };
    },

    /** Tracks a request for a page or a report. `intent` is what is known; one that is restored counts as sent its `age` ago. */
    track(lookup: Lookup, input: Record<string, string>, intent?: Intent) {
      const { list } = lookup;
      // No page's key begins with a space.
      const page = list ? pageKey(String(input.url)) : ` ${input.reportId}`;
      const request: TrackedRequest = { lookup, input, page, sentAt: now() - (intent?.age ?? 0), ...intent };
      const ended = deferred();
      let settle = () => {};
      tracked.add(request);
      return {
        /** Resolves when the earlier requests for the page have ended; undefined if there are none. */
        turn: () => turnOf(page, ended.promise),
        /** Resolves when the newest report is known; undefined if it is. */
        newest: () => (list ? account.findNewest(list) : undefined),
        /** The request is about to be sent. What this returns finds its effect later, also in another process. */
        beforeAttempt(): Intent {
          const { promise: settled, resolve } = deferred();
          settle = resolve;
          inFlight.add(request);
          void settled.then(() => inFlight.delete(request));
          const known = intentOf(account, request);
          Object.assign(request, { settled, ...known });
          return known;
        },
        /** The request is sent now: saving what finds it can have taken long. */
        sent(): void {
          request.sentAt = now();
        },
        /** The request is not in flight any more. */
        afterAttempt(result: Pick<Response, "body"> | SeoError): void {
          const record = result instanceof SeoError || !isNeeded ? undefined : reportIn(result.body);
          if (result instanceof SeoError && result.details.transient && !result.uncertain) account.readAgain();
          if (record) account.regenerated(record, request.id);
          if (record && list) account.claim(record, page, request.id);
          settle();
        },
        /** The response was lost: looks until the outcome is known. `error` says why, `horizon` is in milliseconds after sending. */
        lost: (error: SeoError, horizon: number): Promise<Fate> => searchFor(knowledge, request, error, horizon),
        /** Must follow, whatever happened. Stops looking. */
        end(): void {
          settle();
          tracked.delete(request);
          ended.resolve();
        },
      };
    },
  };
}

export type Reconciler = ReturnType<typeof createReconciler>;
/** One request, from before it is sent until its outcome is known. */
export type Ticket = ReturnType<Reconciler["track"]>;

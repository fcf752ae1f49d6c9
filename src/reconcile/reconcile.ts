import { pageKey } from "../address.js";
import { parseDate } from "../dates.js";
import { SeoError } from "../errors.js";
import type { Response } from "../http/transport.js";
import type { Lookup } from "../operations.js";
import { reportsIn } from "../records.js";
import { createTurns, deferred } from "../turns.js";
import { covers, createAccount, type Reading, type Requests, type Watermark } from "./account.js";
import { type Candidates, type Entry, type Intent, lookAtReport, lookInList, REPEAT, undecided } from "./look.js";

/** What became of a request whose response was lost. `after`: milliseconds since it was sent. */
export type Outcome =
  | { was: "carried out"; response: Response; reconciled: { looks: number; after: number } }
  /** `again` is false if the service itself rejected the page: the same request would fail again. */
  | { was: "not carried out"; again: boolean }
  | { was: "undecided"; candidates: Candidates };

/** One request, from before it is sent until its outcome is known. */
export interface Ticket {
  /** Waits until no other request for the same page is open; undefined if there is none. */
  turn(): Promise<unknown> | undefined;
  /** Waits until the newest report is known; undefined if it is. */
  newest(): Promise<void> | undefined;
  /** The request is about to be sent. What this returns finds its effect later, also in another process. */
  sending(): Intent;
  /** It is not in flight any more. */
  received(result: Pick<Response, "body"> | SeoError): void;
  /** The response was lost: looks until the outcome is known. `error` says why, `horizon` is in milliseconds after sending. */
  lost(error: SeoError, horizon: number): Promise<Outcome>;
  /** Must follow, whatever happened. Stops looking. */
  end(): void;
}

/** The clock that the reconciler goes by. */
export interface Clock {
  /** Milliseconds that only rise. */
  now(): number;
  sleep(ms: number): Promise<unknown>;
}

/** A lost response that is looked for. */
interface Search {
  entry: Entry;
  /** The newest report before the last look: the next one reads only newer reports. The deciding look reads everything. */
  seen: Watermark | undefined;
  /** When to look, soonest first; the last look decides. */
  due: number[];
  again: boolean;
  looks: number;
  failures: number;
  /** A look is in progress. */
  looking: boolean;
  resolve(outcome: Outcome): void;
}

type Read = (list: string) => Promise<Reading>;

const SECOND = 1000;
/** When to look, after a response was lost. */
const LOOKS = [5, 15, 30, 60, 120].map((seconds) => seconds * SECOND);
/** An application that has responded no longer works on the request. */
const AFTER_ANSWER = 2 * SECOND;
/** A deciding look takes place so often if it fails or is put off. */
const MOST_FAILURES = 10;
/** Many that search share their looks. */
const MOST_SECONDS_BETWEEN = 5;

const decides = ({ due }: Search) => due.length === 1;
/** The newest report that the next look need not read. */
const readTo = (search: Search) => (decides(search) ? undefined : search.seen) ?? search.entry.watermark;

/** Of two dates of a report, the one that its latest response had. */
const later = (one: string | undefined, other: string | undefined) =>
  other === undefined || parseDate(one) > parseDate(other) ? one : other;

/** Finds out what became of requests whose response was lost. The rules, and why: docs/decisions/reconcile.md. */
export function createReconciler(requests: Requests, { now, sleep }: Clock, isNeeded = true) {
  const account = createAccount(requests, now);
  const turns = createTurns();
  const open = new Set<Entry>();
  const searches = new Set<Search>();
  let looking = false;

  async function findOut(search: Search, read: Read) {
    const { entry } = search;
    const { list } = entry.lookup;
    if (!list) return lookAtReport(requests, now, entry, decides(search));
    const watermark = readTo(search);
    if (!watermark) return undecided([]);
    const before = account.newest();
    const reading = await read(list);
    // Nor does it count if it has the page's report: it may be another request's, and this one's be missing.
    if (!covers(reading, watermark)) throw new SeoError("SEO_RESPONSE", "The list of reports is not complete.");
    search.seen = before;
    return lookInList(account, requests, open, entry, reading, decides(search));
  }

  /** One look, which may end the search. */
  async function look(search: Search, read: Read): Promise<void> {
    const { entry, again } = search;
    const resolve = (outcome: Outcome) => {
      searches.delete(search);
      search.resolve(outcome);
    };
    const repeat = (at: number) => {
      if (++search.failures < MOST_FAILURES) search.due = [at];
      else resolve({ was: "undecided", candidates: [] });
    };
    search.looking = true;
    try {
      const finding = await findOut(search, read);
      search.looks++;
      search.due.shift();
      const reconciled = { looks: search.looks, after: Math.round(now() - entry.sentAt) };
      if (finding?.was === "carried out") resolve({ ...finding, reconciled });
      // A rejected request is not retried: its error need not wait.
      else if (finding?.was === "put off" && again) repeat(finding.until);
      else if (finding) resolve(finding.was === "undecided" ? finding : { was: "not carried out", again });
    } catch {
      // A look that failed proves nothing.
      if (decides(search)) repeat(now() + REPEAT);
      else search.due.shift();
    } finally {
      search.looking = false;
    }
  }

  /** Looks for all that is due, until nothing is searched for. One read of the list serves them all. */
  async function lookForAll(): Promise<void> {
    if (looking) return;
    looking = true;
    for (; searches.size > 0; await sleep(SECOND * Math.min(searches.size, MOST_SECONDS_BETWEEN))) {
      const due = [...searches].filter(({ looking, due: [next = 0] }) => !looking && next <= now());
      for (const search of due) while (Number(search.due[1]) <= now()) search.due.shift();
      const [oldest] = due.flatMap((search) => readTo(search) ?? []).sort((a, b) => a.rank - b.rank);
      let reading: Promise<Reading> | undefined;
      const read: Read = (list) => {
        reading ??= account.readAfter(list, oldest as Watermark);
        return reading;
      };
      for (const search of due) void look(search, read);
      await reading?.catch(() => {});
    }
    looking = false;
  }

  return {
    /** Learns from a response, if any lost response was to be looked for so far. */
    observe(response: Pick<Response, "body">): void {
      if (isNeeded) account.observe(response);
    },
    forget: account.forget,
    /** Reports that somebody got in another process, at most `horizon` milliseconds after the request was sent. */
    claim: (ids: readonly string[], horizon: number) => account.claimAll(ids, now() + horizon),

    /** Opens a request for a page or a report. `intent` is what is known; restored from it, the request counts as sent now. */
    open(lookup: Lookup, input: Record<string, string>, intent?: Intent): Ticket {
      // No page's key begins with a space.
      const page = lookup.list ? pageKey(String(input.url)) : ` ${input.reportId}`;
      const entry: Entry = { lookup, input, page, sentAt: now(), ...intent };
      const ended = deferred();
      let answer = () => {};
      let search: Search | undefined;
      open.add(entry);
      isNeeded = true;
      return {
        turn() {
          // All at once, so that no two can wait for each other.
          const before = account.namesOf(page).flatMap((name) => turns.take(name, ended.promise) ?? []);
          return before.length > 0 ? Promise.all(before) : undefined;
        },
        newest: () => (lookup.list ? account.findNewest(lookup.list) : undefined),
        sending() {
          const answered = deferred();
          answer = answered.resolve;
          const watermark = lookup.list ? account.newest() : undefined;
          const generatedAt = lookup.list
            ? undefined
            : later(entry.generatedAt, account.generatedAt(String(input.reportId)));
          Object.assign(entry, { sentAt: now(), answered: answered.promise, watermark, generatedAt });
          return { watermark, generatedAt };
        },
        received(result) {
          const [record] = result instanceof SeoError ? [] : reportsIn(result.body);
          if (record && lookup.list) account.claim(record, page, 0, entry.watermark);
          answer();
        },
        lost({ details: { statusCode, body } }, horizon) {
          const rejected = statusCode === 500 && typeof body === "object";
          const last = rejected ? now() + AFTER_ANSWER : Math.max(now(), entry.sentAt + horizon);
          const due = LOOKS.map((delay) => now() + delay).filter((time) => !rejected && time < last);
          Object.assign(entry, { until: last, doubted: undefined });
          return new Promise((resolve) => {
            const progress = { seen: undefined, looks: 0, failures: 0, looking: false };
            search = { entry, due: [...due, last], again: !rejected, ...progress, resolve };
            searches.add(search);
            void lookForAll();
          });
        },
        end() {
          answer();
          open.delete(entry);
          if (search) searches.delete(search);
          ended.resolve();
        },
      };
    },
  };
}

export type Reconciler = ReturnType<typeof createReconciler>;

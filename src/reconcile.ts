import { type Address, readAddress } from "./address.js";
import type { Response } from "./client.js";
import { SeoError } from "./errors.js";
import type { Lookup } from "./operations.js";

/**
 * The newest report before a request was sent. `rank` is its ID, or its creation date in milliseconds if the IDs are not
 * numbers; `ids` are the reports of that rank.
 */
export interface Watermark {
  rank: number;
  ids: string[];
}

/** What identifies the effect of a request, known before it is sent. Plain JSON, so that it can outlive the process. */
export interface Intent {
  watermark?: Watermark | undefined;
  /** When the report was last generated, for an update. */
  generatedAt?: string | undefined;
}

/** A report that may be the one that was requested. */
export interface Candidate {
  id: unknown;
  url: unknown;
  created_at: unknown;
}

/** What became of a request whose response was lost. `after`: milliseconds since it was sent. */
export type Outcome =
  | { was: "carried out"; response: Response; reconciled: { looks: number; after: number } }
  /** `again` is false if the service itself rejected the page: the same request would fail again. */
  | { was: "not carried out"; again: boolean }
  | { was: "undecided"; candidates: Candidate[] };

/** What the reconciler needs: requests, which go through the client's budget, and time. */
export interface Surroundings {
  request(type: string, input: Record<string, string>): Promise<Response>;
  /** Reads a list page by page, each only when it is needed. */
  pages(type: string, input: Record<string, string>): AsyncIterable<ListPage>;
  /** Milliseconds that only rise. */
  now(): number;
  /** The time of day, in milliseconds. */
  date(): number;
  sleep(ms: number): Promise<unknown>;
}

interface ListPage {
  records: unknown[];
  total: number | undefined;
  response: Response;
}

/** One request, from before it is sent until its outcome is known. */
export interface Ticket {
  /** Resolves when no other request for the same page is open, and the newest report is known. */
  ready(): Promise<void>;
  /** The request is about to be sent. What this returns finds its effect later, also in another process. */
  sending(): Intent;
  /** The response arrived. */
  succeeded(response: Response): void;
  /** The response was lost: looks until the outcome is known. `error` says why, `horizon` is in milliseconds after sending. */
  lost(error: SeoError, horizon: number): Promise<Outcome>;
  /** Must follow, whatever happened. Stops looking. */
  end(): void;
}

type Json = Record<string, unknown>;

/** An open request: not sent yet, sent, or lost. */
interface Entry extends Intent {
  lookup: Lookup;
  input: Record<string, string>;
  address: Address;
  /** When it was sent, by `now()` and by the time of day. */
  sentAt: number;
  sentDate: number;
  /** Whether the response is awaited; resolves when that ends. */
  answered?: Promise<void> | undefined;
  /** The report's date at the first look. */
  seenAt?: string;
}

/** A lost response that is looked for. */
interface Search {
  entry: Entry;
  /** The newest report at the look before: the next one reads only what came since. The deciding look reads it all again. */
  seen: Watermark | undefined;
  /** When to look, soonest first; the last look decides. */
  due: number[];
  again: boolean;
  looks: number;
  failures: number;
  /** A look is under way. */
  looking: boolean;
  resolve(outcome: Outcome): void;
}

const SECOND = 1000;
/** When to look, after a response was lost. */
const LOOKS = [5, 15, 30, 60, 120].map((seconds) => seconds * SECOND);
/** An application that has answered no longer works on the request. */
const AFTER_ANSWER = 2 * SECOND;
/** How often, and how much later, a deciding look that failed is repeated. */
const MOST_FAILURES = 5;
const REPEAT = 30 * SECOND;
/** Many that search share their looks. */
const MOST_SECONDS_BETWEEN = 5;
/** Two clocks that differ by more prove nothing. */
const MOST_SKEW = 60 * SECOND;
/** A `Date` header has whole seconds. */
const DATE_STEP = 2 * SECOND;
const MOST_REMEMBERED = 10_000;
const NEWEST = { sort_by: "id", sort: "desc" };

const idOf = (record: Json) => String(record.id);
/** Where a report stands in the order of creation. */
const rankOf = (record: Json) =>
  /^\d+$/.test(idOf(record)) ? Number(record.id) : Date.parse(String(record.created_at));
const isAfter = (record: Json, { rank, ids }: Watermark) =>
  rankOf(record) > rank || (rankOf(record) === rank && !ids.includes(idOf(record)));
const addressOf = (record: Json) => readAddress(String(record.url));

/** The reports in a response: a list, one wrapped in `data`, or one by itself. A project has no ID. */
export function reportsIn(body: unknown): Json[] {
  const { data = body } = Object(body) as { data?: unknown };
  return [data].flat().filter((record): record is Json => Object(record).id !== undefined);
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MOST_REMEMBERED && oldest !== undefined) map.delete(oldest);
}

function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const undecided = (records: Json[]): Outcome => ({
  was: "undecided",
  candidates: records.map(({ id, url, created_at }) => ({ id, url, created_at })),
});

/** Finds out what became of requests whose response was lost. The rules, and why: docs/decisions/reconcile.md. */
export function createReconciler({ request, pages, now, date, sleep }: Surroundings) {
  let newest: Watermark | undefined;
  let finding: Promise<void> | undefined;
  /** The service's clock minus this machine's. */
  let skew: number | undefined;
  /** Reports that a message already got, with their rank. */
  const claimed = new Map<string, number>();
  const redirects = new Map<string, Address>();
  const generated = new Map<string, string>();
  const open = new Set<Entry>();
  const lastOf = new Map<string, Promise<unknown>>();
  const searches = new Set<Search>();
  let looking = false;

  /** Learns from a response, whoever requested it. */
  function observe({ body, headers }: Response): void {
    const clock = Date.parse(String(headers.date));
    skew = Number.isNaN(clock) ? undefined : clock - date();
    for (const record of reportsIn(body)) {
      const rank = rankOf(record);
      if (!newest || rank > newest.rank) newest = Number.isNaN(rank) ? newest : { rank, ids: [idOf(record)] };
      else if (rank === newest.rank && !newest.ids.includes(idOf(record)))
        newest = { rank, ids: [...newest.ids, idOf(record)] };
      if (typeof record.generated_at === "string") remember(generated, idOf(record), record.generated_at);
    }
  }

  /** Reads one short list. If that fails, a request is sent all the same, and stays uncertain if its response is lost. */
  async function findNewest(list: string): Promise<void> {
    const response = await request(list, { ...NEWEST, per_page: "10" }).catch(() => undefined);
    const { data = response?.body } = Object(response?.body) as { data?: unknown };
    if (response) observe(response);
    if (Array.isArray(data) && data.length === 0) newest ??= { rank: 0, ids: [] };
  }

  function claim(record: Json): void {
    claimed.set(idOf(record), rankOf(record));
    if (claimed.size <= MOST_REMEMBERED) return;
    const oldest = Math.min(...Array.from(open, ({ watermark }) => watermark?.rank ?? Number.POSITIVE_INFINITY));
    for (const [id, rank] of claimed) if (rank < oldest) claimed.delete(id);
  }

  /** Whether a report is of the page that an open request was sent for, and newer than the request's watermark. */
  function mayBe(record: Json, { address, watermark }: Entry): boolean {
    const { key } = addressOf(record);
    return (
      watermark !== undefined &&
      isAfter(record, watermark) &&
      (key === address.key || key === redirects.get(address.key)?.key)
    );
  }

  /** All reports after a watermark, newest first. Rejects if the list is not sorted, or one may have been missed. */
  async function readAfter(list: string, mark: Watermark): Promise<{ records: Json[]; listed: Response | undefined }> {
    const records: Json[] = [];
    let listed: Response | undefined;
    let last = Number.POSITIVE_INFINITY;
    let most = 0;
    for await (const { records: page, total = most, response } of pages(list, { ...NEWEST, per_page: "25" })) {
      listed = response;
      if (total < most) throw new SeoError("SEO_RESPONSE", "The list of reports became shorter while it was read.");
      most = total;
      for (const record of page as Json[]) {
        const rank = rankOf(record);
        if (!(rank <= last)) throw new SeoError("SEO_RESPONSE", "The list of reports is not sorted by date.");
        last = rank;
        if (isAfter(record, mark)) records.push(record);
      }
      if (last < mark.rank) break;
    }
    return { records, listed };
  }

  /** The report in the shape of a store's response, with the privacy that was requested. */
  async function present({ lookup, input }: Entry, record: Json, listed: Response | undefined): Promise<Response> {
    const reportId = idOf(record);
    const { privacy, password } = input;
    if (lookup.change && privacy !== undefined && Number(record.privacy ?? 0) !== Number(privacy))
      return request(lookup.change, { reportId, privacy, ...(password !== undefined && { password }) });
    return request(lookup.show, { reportId }).catch((error: unknown) => {
      if (listed) return { ...listed, body: { data: record } };
      throw error;
    });
  }

  /** Finds the page's report after the watermark. If there is none, each of the others must be known to be another's. */
  async function lookInList(search: Search, list: string, read: typeof readAfter, decides: boolean) {
    const { entry } = search;
    const { watermark } = entry;
    if (!watermark) return undecided([]);
    const before = newest;
    const { records, listed } = await read(list, decides ? watermark : (search.seen ?? watermark));
    search.seen = before;
    const unclaimed = () => records.filter((record) => isAfter(record, watermark) && !claimed.has(idOf(record)));
    const matches = (record: Json) => mayBe(record, entry);
    if (!decides && !unclaimed().some(matches)) return undefined;
    // A page that is in flight may redirect to this one: its response says whose report it is.
    const others = [...open].filter(({ address: { key } }) => !redirects.has(key));
    await Promise.all(others.map(({ answered }) => answered));
    if (!open.has(entry)) return undefined;
    const found = unclaimed().findLast(matches);
    if (found) {
      claim(found);
      return present(entry, found, listed).catch(() => undecided([found]));
    }
    if (!decides) return undefined;
    const unexplained = unclaimed().filter((record) => ![...open].some((other) => mayBe(record, other)));
    return unexplained.length > 0 ? undecided(unexplained) : ({ was: "not carried out" } as const);
  }

  /** Shows the report: its date moved from the known one, past the time of sending, or between two looks. */
  async function lookAtReport({ entry }: Search, decides: boolean) {
    const response = await request(entry.lookup.show, { reportId: String(entry.input.reportId) });
    const [record = {}] = reportsIn(response.body);
    const at = String(record.generated_at);
    const trusted = skew !== undefined && Math.abs(skew) <= MOST_SKEW;
    const past = trusted && Date.parse(at) >= entry.sentDate + Number(skew) - DATE_STEP;
    const known = entry.generatedAt ?? entry.seenAt;
    entry.seenAt ??= at;
    if ((known !== undefined && at !== known) || (entry.generatedAt === undefined && past)) return response;
    if (!decides) return undefined;
    return entry.generatedAt !== undefined || trusted ? ({ was: "not carried out" } as const) : undecided([record]);
  }

  /** One look, which may end the search. */
  async function look(search: Search, read: typeof readAfter): Promise<void> {
    const { entry, again } = search;
    const { list } = entry.lookup;
    const decides = search.due.length === 1;
    const resolve = (outcome: Outcome) => {
      searches.delete(search);
      search.resolve(outcome);
    };
    search.looking = true;
    try {
      const result = await (list ? lookInList(search, list, read, decides) : lookAtReport(search, decides));
      search.looks++;
      search.due.shift();
      if (!result) return;
      const reconciled = { looks: search.looks, after: Math.round(now() - entry.sentAt) };
      if ("body" in result) resolve({ was: "carried out", response: result, reconciled });
      else resolve(result.was === "undecided" ? result : { was: "not carried out", again });
    } catch {
      // A look that failed proves nothing.
      if (!decides) search.due.shift();
      else if (++search.failures < MOST_FAILURES) search.due = [now() + REPEAT];
      else resolve(undecided([]));
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
      const marks = due.flatMap(
        ({ seen, due, entry: { watermark } }) => (due.length > 1 ? seen : undefined) ?? watermark ?? [],
      );
      const [oldest] = marks.sort((a, b) => a.rank - b.rank);
      let reading: ReturnType<typeof readAfter> | undefined;
      const read: typeof readAfter = (list, mark) => {
        reading ??= readAfter(list, oldest ?? mark);
        return reading;
      };
      for (const search of due) void look(search, read);
      await reading?.catch(() => {});
    }
    looking = false;
  }

  return {
    observe,

    /** Opens a request for a page or a report. Restored from its `intent`, it counts as sent now. */
    open(lookup: Lookup, input: Record<string, string>, intent?: Intent): Ticket {
      const address = readAddress(String(lookup.list ? input.url : input.reportId));
      const ended = deferred();
      const names: string[] = [];
      /** Waits for those that came before for the same page, and has those that come later wait. */
      async function queueUp(name: string | undefined): Promise<void> {
        if (name === undefined || names.includes(name)) return;
        names.push(name);
        const before = lastOf.get(name);
        const all = Promise.all([before, ended.promise]).then(() => {
          if (lastOf.get(name) === all) lastOf.delete(name);
        });
        lastOf.set(name, all);
        await before;
      }
      const entry: Entry = { lookup, input, address, sentAt: now(), sentDate: date(), ...intent };
      let answered = deferred();
      let search: Search | undefined;
      open.add(entry);
      const answer = () => {
        entry.answered = undefined;
        answered.resolve();
      };
      return {
        async ready() {
          await queueUp(address.key);
          await queueUp(redirects.get(address.key)?.key);
          if (newest || !lookup.list) return;
          finding ??= findNewest(lookup.list).finally(() => {
            finding = undefined;
          });
          await finding;
        },
        sending() {
          answered = deferred();
          const watermark = lookup.list ? newest : undefined;
          const generatedAt = lookup.list ? undefined : generated.get(String(input.reportId));
          Object.assign(entry, { sentAt: now(), sentDate: date(), answered: answered.promise, watermark, generatedAt });
          return { watermark, generatedAt };
        },
        succeeded(response) {
          const [record] = reportsIn(response.body);
          if (record && lookup.list) {
            claim(record);
            remember(redirects, address.key, addressOf(record));
          }
          answer();
        },
        lost({ details: { statusCode, body } }, horizon) {
          answer();
          const rejected = statusCode === 500 && typeof body === "object";
          const decides = rejected ? now() + AFTER_ANSWER : Math.max(now(), entry.sentAt + horizon);
          const due = LOOKS.map((delay) => now() + delay).filter((time) => !rejected && time < decides);
          return new Promise((resolve) => {
            const progress = { seen: undefined, looks: 0, failures: 0, looking: false };
            search = { entry, due: [...due, decides], again: !rejected, ...progress, resolve };
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

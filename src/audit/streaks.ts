import type { Code } from "../errors.js";
import type { Ended, Streak } from "./store.js";

/** After so many failures in a row with the same code, the batch stops. */
export const STREAK = 5;

const notByPages: (string | undefined)[] = [
  "SEO_UNAUTHORIZED",
  "SEO_FORBIDDEN",
  "SEO_RATE_LIMITED",
  "SEO_NETWORK",
] satisfies Code[];

/** A failure that no page causes, and that had no effect. */
const isBlameless = ({ ended, error }: Ended) => ended === "failed" && notByPages.includes(error?.code);

interface Held {
  /** How the pages ended that were not told yet. */
  ended: ReadonlyMap<number, Ended>;
  /** The pages whose requests are in flight. */
  inFlight(): number[];
  /** A page is told. */
  tell(page: number): void;
  /** A page is requested again. */
  again(page: number): void;
}

/** The failures in a row. Their pages are held, as long as the failures may be the account's. */
export function createStreaks({ ended, inFlight, tell, again }: Held) {
  let streak: Streak | undefined;
  /** Pages that were requested again after they were held, which happens once. */
  const repeats = new Set<number>();
  /** Requests that were sent, in the order of the log, which counts them. */
  let requests = 0;
  const first = new Map<number, number>();
  const last = new Map<number, number>();
  /** The last request that has succeeded. */
  let worked = 0;

  const holds = (page: number) => streak?.pages.includes(page) ?? false;

  function drop(page: number): void {
    if (streak) streak.pages = streak.pages.filter((other) => other !== page);
  }

  function repeat(page: number): void {
    again(page);
    repeats.add(page);
  }

  /** Ends the streak: held pages are told, or requested again: all, or those that did not cause the failure that has stopped the batch. */
  function resolve(all = false): void {
    const { pages = [], before } = streak ?? {};
    streak = undefined;
    for (const page of pages) {
      const again = before && isBlameless(ended.get(page) as Ended) && !repeats.has(page);
      if (all || again) repeat(page);
      else tell(page);
    }
  }

  /**
   * It is the page's own failure, and no evidence against the account: a request has succeeded that was sent after the page's
   * first one. Broken pages end late, because they are retried and looked up.
   */
  const isOwn = (page: number) => !isBlameless(ended.get(page) as Ended) && Number(first.get(page)) < worked;

  function fail(page: number, error: Ended["error"]): void {
    if (!streak?.before && isOwn(page)) return;
    if (streak && !streak.before && streak.error?.code !== error?.code) resolve();
    streak ??= { pages: [], error };
    streak.pages.push(page);
    streak.error = error;
    if (streak.before && streak.probe === page) {
      const { pages } = streak;
      streak = undefined;
      pages.forEach(tell);
    } else if (!streak.before && streak.pages.length >= STREAK) streak.before = new Set(inFlight());
  }

  /**
   * Ends the streak if this process sent the request, rather than found the effect of one that another process sent. A probe
   * also shows that the account can be used, so that no page has to be held.
   */
  function succeed(page: number, sent: boolean): void {
    if (sent) worked = Math.max(worked, last.get(page) ?? 0);
    first.delete(page);
    if (streak && !streak.before?.has(page) && (streak.before || sent)) resolve(streak.probe === page);
  }

  return {
    streak: () => streak,
    held: (): readonly number[] => streak?.pages ?? [],
    holds,

    sent(page: number): void {
      streak?.before?.delete(page);
      last.set(page, ++requests);
      if (!first.has(page)) first.set(page, requests);
    },
    end(page: number, { error, attempts }: Ended): void {
      if (error) fail(page, error);
      else succeed(page, attempts > 0);
      last.delete(page);
      streak?.before?.delete(page);
    },

    /** A page is requested again, as the probe. */
    probe(page: number): void {
      if (streak && holds(page)) streak.probe = page;
      drop(page);
      repeat(page);
    },

    told(page: number): void {
      repeats.delete(page);
      // The batch was reset, and tells its failures at once.
      if (streak && holds(page)) streak.before = undefined;
      drop(page);
    },

    /** Held pages are told, or requested again. */
    letGo: () => resolve(),
  };
}

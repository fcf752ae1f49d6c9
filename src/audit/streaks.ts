import type { Code } from "../errors.js";
import type { Ended, Streak } from "./store.js";

/** After so many failures in a row with the same code, a machine stops. */
export const STREAK = 5;

const notByPages: (string | undefined)[] = [
  "SEO_UNAUTHORIZED",
  "SEO_FORBIDDEN",
  "SEO_RATE_LIMITED",
  "SEO_NETWORK",
] satisfies Code[];

/** A failure that no page causes, and that had no effect. */
const isBlameless = ({ ended, error }: Ended) => ended === "failed" && notByPages.includes(error?.code);

/** The owner of the streaks of machines that are gone. A batch in files has one machine, which has this name. */
export const NOBODY = "";

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

/** Each machine's failures in a row. Their pages are held, as long as the failures may be the account's. */
export function createStreaks({ ended, inFlight, tell, again }: Held) {
  const streaks = new Map<string, Streak>();
  /** Pages that were requested again after they were held, which happens once. */
  const repeats = new Set<number>();
  /** Requests that were sent, in the order of the log, which counts them. */
  let requests = 0;
  const first = new Map<number, number>();
  const last = new Map<number, number>();
  /** By machine, the last request that has succeeded. */
  const worked = new Map<string, number>();

  const holderOf = (page: number) => [...streaks.values()].find((streak) => streak.pages.includes(page));

  /** Returns the streak that held the page. */
  function drop(page: number): Streak | undefined {
    const streak = holderOf(page);
    if (streak) streak.pages = streak.pages.filter((other) => other !== page);
    return streak;
  }

  function repeat(page: number): void {
    again(page);
    repeats.add(page);
  }

  /** The machine's own, or that of machines that are gone, as long as no success of this one is known. */
  function streakOf(machine: string): Streak | undefined {
    return streaks.get(machine) ?? (worked.has(machine) ? undefined : streaks.get(NOBODY));
  }

  /** Held pages are told, or requested again: all, or those of a machine that has stopped which did not cause their failure. */
  function resolve(streak: Streak, all = false): void {
    for (const page of streak.pages.splice(0)) {
      const again = streak.before && isBlameless(ended.get(page) as Ended) && !repeats.has(page);
      if (all || again) repeat(page);
      else tell(page);
    }
  }

  /**
   * It is the page's own failure, and no evidence against the account: the machine has succeeded with a request that it sent
   * after the page's first one. Broken pages end late, because they are retried and looked up.
   */
  const isOwn = (page: number, machine: string) =>
    !isBlameless(ended.get(page) as Ended) && Number(first.get(page)) < Number(worked.get(machine));

  function fail(page: number, error: Ended["error"], machine: string): void {
    let streak = streaks.get(machine);
    if (!streak?.before && isOwn(page, machine)) return;
    if (!streak) {
      streak = streakOf(machine);
      if (streak) streaks.delete(NOBODY);
    }
    if (streak && !streak.before && streak.error?.code !== error?.code) {
      resolve(streak);
      streak = undefined;
    }
    streak ??= { pages: [], error };
    streaks.set(machine, streak);
    streak.pages.push(page);
    streak.error = error;
    if (streak.before && streak.probe === page) {
      streaks.delete(machine);
      streak.pages.forEach(tell);
    } else if (!streak.before && streak.pages.length >= STREAK) streak.before = new Set(inFlight());
  }

  /**
   * Ends the machine's streak if it sent the request, rather than found the effect of one that another process sent. A probe
   * also shows that the account can be used, so that no page has to be held.
   */
  function succeed(page: number, machine: string, sent: boolean): void {
    if (sent) worked.set(machine, Math.max(worked.get(machine) ?? 0, last.get(page) ?? 0));
    first.delete(page);
    for (const [owner, streak] of streaks) {
      if (streak.before?.has(page) || !(streak.before || (sent && owner === machine))) continue;
      resolve(streak, streak.probe === page);
      if (owner === machine || owner === NOBODY) streaks.delete(owner);
    }
  }

  /** What becomes of the page from now on was not sent before a machine stopped. */
  function forget(page: number): void {
    for (const { before } of streaks.values()) before?.delete(page);
  }

  return {
    streakOf,
    held: () => [...streaks.values()].flatMap((streak) => streak.pages),
    holds: (page: number) => holderOf(page) !== undefined,
    /** The machines that have a streak. */
    machines: () => [...streaks.keys()].filter((machine) => machine !== NOBODY),

    sent(page: number): void {
      forget(page);
      last.set(page, ++requests);
      if (!first.has(page)) first.set(page, requests);
    },
    end(page: number, { error, attempts }: Ended, machine: string): void {
      if (error) fail(page, error, machine);
      else succeed(page, machine, attempts > 0);
      last.delete(page);
      forget(page);
    },

    /** A page is requested again, as the probe. */
    probe(page: number): void {
      const streak = drop(page);
      if (streak) streak.probe = page;
      repeat(page);
    },

    told(page: number): void {
      repeats.delete(page);
      // The batch was reset, and tells its failures at once.
      const streak = drop(page);
      if (streak) streak.before = undefined;
    },

    /** Held pages are told, or requested again by a machine that has not stopped. */
    letGo(): void {
      for (const [owner, streak] of streaks) {
        resolve(streak);
        if (!streak.before || owner === NOBODY) streaks.delete(owner);
      }
    },

    /** A machine is gone. If it had stopped, it stays open whose failures these are. */
    gone(machine: string): void {
      const streak = streaks.get(machine);
      streaks.delete(machine);
      if (!streak) return;
      const other = streaks.get(NOBODY);
      if (!streak.before) resolve(streak);
      else if (other) other.pages.push(...streak.pages);
      else if (streak.pages.length > 0) streaks.set(NOBODY, streak);
    },
  };
}

import { pageKey } from "../../src/address.js";
import type { Json } from "../../src/json.js";
import type { Requester } from "../../src/reconcile/list.js";
import type { Time } from "../../src/reconcile/look.js";
import { createReconciler } from "../../src/reconcile/reconcile.js";
import type { Fate } from "../../src/reconcile/search.js";
import { EPOCH, HORIZON, quiet, type Rule, type Store, simulate, type World } from "../../test/support/simulation.js";

/**
 * `npm run bench:reconcile`: 30,000 stores in simulated time. 8% take 30 to 150 s, a proxy gives up after 60 s, a tenth
 * of the messages repeat a page, 11% of the pages redirect, and somebody else uses the account, too. It compares the
 * rules of docs/decisions/reconcile.md with those that were rejected.
 */
const STORES = 30_000;

/** The same sequence in each run. */
function createRandom(seed: number) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function makeWorld(lost: number): World {
  const random = createRandom(1);
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const redirects: Record<string, string> = {};
  const pages: string[] = [];
  const stores = Array.from({ length: STORES }, (_, i): Store => {
    const repeated = random() < 0.1 ? pages[between(0, pages.length - 1)] : undefined;
    const page = repeated ?? `site${i % 40}.example/${i}`;
    pages.push(page);
    if (!repeated && random() < 0.11) redirects[page] = `site${i % 40}.example/to/${i}`;
    const slow = random() < 0.08;
    const takes = slow ? between(30, 150) : between(1, 9);
    return { page, after: 1, takes, responds: 0, fate: takes >= 60 && random() < lost ? "request lost" : "answered" };
  });
  const foreign = Array.from({ length: 30 }, (_, i): [number, string] => [i * 1000, `other.example/${i}`]);
  return { ...quiet, stores, foreign, redirects, ids: "numbers" };
}

/** A rule that decides when a response is lost, and needs to know nothing before. `sentAt` is in milliseconds. */
const whenLost =
  (decide: (requester: Requester, time: Time, page: string, sentAt: number) => Promise<Fate>): Rule =>
  (requester, time) => ({
    observe() {},
    track(_, { url = "" }) {
      let sentAt = 0;
      return {
        turn: () => undefined,
        newest: () => undefined,
        beforeAttempt: () => ({}),
        sent() {
          sentAt = time.now();
        },
        afterAttempt() {},
        lost: () => decide(requester, time, pageKey(url), sentAt),
        end() {},
      };
    },
  });

const retry: Fate = { was: "not carried out", again: true };

/** Looks for a report of the page that was created since, by this computer's clock. Without one, the request is retried. */
async function lookOnce({ pages }: Requester, { now }: Time, page: string, sentAt: number): Promise<Fate> {
  const since = EPOCH + Math.floor(sentAt / 1000) * 1000;
  for await (const { records, response } of pages("seo-report-list", { per_page: "25" }))
    for (const record of records as Json[]) {
      if (Date.parse(String(record.created_at)) < since) return retry;
      const reconciled = { looks: 1, after: now() - sentAt };
      if (pageKey(String(record.url)) === page)
        return { was: "carried out", response: { ...response, body: { data: record } }, reconciled };
    }
  return retry;
}

const afterHorizon = whenLost(async (requester, time, page, sentAt) => {
  await time.sleep(sentAt + HORIZON - time.now());
  return lookOnce(requester, time, page, sentAt);
});

const contenders: [name: string, rule: Rule, lost: number, world?: Partial<World>][] = [
  ["report the error", whenLost(async () => ({ was: "undecided", candidates: [] })), 0],
  ["retry", whenLost(async () => retry), 0],
  ["look once, else retry", whenLost(lookOnce), 0],
  ["the same after 5 minutes", afterHorizon, 0],
  ["the same, server's clock 10 minutes slow", afterHorizon, 0, { skew: -600 }],
  ["the rules", createReconciler, 0],
  ["the rules, 30% really lost", createReconciler, 0.3],
];

const rows = [];
for (const [rule, create, lost, more] of contenders) {
  const { ends, reports, gets, lost: responses } = await simulate({ ...makeWorld(lost), ...more }, create);
  const by = new Map<number, number>();
  for (const report of reports) if (report.by !== undefined) by.set(report.by, (by.get(report.by) ?? 0) + 1);
  rows.push({
    rule,
    "responses lost": responses,
    "created twice": [...by.values()].filter((count) => count > 1).length,
    "left uncertain": ends.filter((end) => "uncertain" in end).length,
    "requests per lost response": (gets.length / responses).toFixed(1),
  });
}
console.table(rows);

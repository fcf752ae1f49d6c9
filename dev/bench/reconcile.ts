import { HORIZON, type Store, simulate, type World } from "../../test/support/simulation.js";

/**
 * `npm run bench:reconcile`: 30,000 stores in simulated time. 8% take 30 to 150 s, a proxy gives up after 60 s, a tenth
 * of the messages repeat a page, 11% of the pages redirect, and somebody else uses the account, too.
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
  return {
    stores,
    foreign,
    redirects,
    skew: 0,
    ids: "numbers",
    unsorted: false,
    unpaged: 0,
    empty: [0, 0],
    existing: [],
    latency: 0.2,
    failing: 0,
    outage: [0, 0],
    horizon: HORIZON,
  };
}

const rows = [];
for (const lost of [0, 0.3]) {
  const world = makeWorld(lost);
  const { ends, reports, gets, lost: responses } = await simulate(world);
  const by = new Map<number, number>();
  for (const report of reports) if (report.by !== undefined) by.set(report.by, (by.get(report.by) ?? 0) + 1);
  rows.push({
    "requests really lost": `${lost * 100}%`,
    "responses lost": responses,
    "created twice": [...by.values()].filter((count) => count > 1).length,
    "left uncertain": ends.filter((end) => "uncertain" in end).length,
    "requests per lost response": ((gets.length - 1) / responses).toFixed(1),
  });
}
console.table(rows);

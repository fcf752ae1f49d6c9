import { setTimeout as sleep } from "node:timers/promises";
import { receivers, send } from "../driver.js";
import { boot, serviceNode, startService } from "../runtime.js";
import type { Counts } from "../service.js";
import { add, conclude, hasGrown, heap, moreThanOnce } from "./results.js";

/**
 * `npm run soak -- messages [count [reconcile]]`: a fifth of the messages create a report, the others list reports. One request
 * in a hundred meets a fault of the sandbox. `reconcile` is in seconds; blank is off.
 */
const TENTHS = 10;
const IN_FLIGHT = 2000;
/** If no message has ended for so many milliseconds, the remaining ones are lost. */
const PATIENCE = 120_000;
const PROJECT = "created.example.com";

const total = Math.ceil(Number(process.argv[3] ?? 200_000) / TENTHS) * TENTHS;
const reconcile = process.argv[4] ?? "";
const service = await startService({ fail: 1 });
const node = { output: "data", wires: [["ends"]] };
await boot([
  serviceNode(service, { concurrency: 32, queue: IN_FLIGHT, timeout: 2, reconcile }),
  { id: "store", type: "seo-report-store", ...node },
  { id: "list", type: "seo-report-list", ...node },
  { id: "catch", type: "catch", scope: null, wires: [["ends"]] },
]);

const [LOST, SUCCEEDED, FAILED, UNCERTAIN] = [0, 1, 2, 3];
/** By message, outside of the measured heap: how often it ended, and its last outcome. */
const times = new Uint8Array(total);
const ends = new Uint8Array(total);
const outcomes: Counts = {};
let mixedUp = 0;
let reconciled = 0;
let ended = 0;
let lastEnd = performance.now();

const isStore = (message: number) => message % 5 === 0;
const pageOf = (message: number) => `${PROJECT}/${message}`;

receivers.set("ends", ({ message, payload, seo, error }) => {
  const number = message as number;
  const { error: failure, reconciled: wasLost } = seo as {
    error?: { code: string; uncertain: boolean };
    reconciled?: object;
  };
  const isWrong = isStore(number) ? (payload as { url: string }).url !== pageOf(number) : !Array.isArray(payload);
  if (!error && isWrong) mixedUp++;
  if (wasLost) reconciled++;
  add(outcomes, error ? `${failure?.code}${failure?.uncertain ? ", uncertain" : ""}` : "output");
  ends[number] = error ? (failure?.uncertain ? UNCERTAIN : FAILED) : SUCCEEDED;
  times[number] = (times[number] ?? 0) + 1;
  if (times[number] === 1) ended++;
  lastEnd = performance.now();
});

function sendOne(message: number): void {
  if (isStore(message)) send("store", { message, payload: `https://${pageOf(message)}` });
  else send("list", { message, payload: { project: PROJECT } });
}

const heaps: number[] = [];
let sent = 0;
for (let tenth = 1; tenth <= TENTHS; tenth++) {
  const last = (tenth * total) / TENTHS;
  lastEnd = performance.now();
  while (ended < last && performance.now() - lastEnd < PATIENCE) {
    while (sent < last && sent - ended < IN_FLIGHT) sendOne(sent++);
    await sleep(1);
  }
  heaps.push(await heap());
  console.error(`${ended} ended`);
}
// Whatever ends a second time has done so by then.
await sleep(5000);
const { effects } = await service.seen();
const stores = Array.from({ length: total / 5 }, (_, nth) => nth * 5).map((message) => ({
  end: ends[message],
  effects: effects[pageOf(message)] ?? 0,
}));
conclude(
  {
    messages: total,
    ...outcomes,
    "found after a lost response": reconciled,
    "heap MB after each tenth": heaps.join(" "),
  },
  {
    lost: ends.filter((end) => end === LOST).length,
    "ended more than once": moreThanOnce(times),
    "reports created twice": moreThanOnce(stores.map(({ effects }) => effects)),
    "wrong outcomes": stores.filter(({ end, effects }) => end === (effects > 0 ? FAILED : SUCCEEDED)).length,
    "responses to another message": mixedUp,
    "heap has grown": hasGrown(heaps),
  },
);

import { setTimeout as sleep } from "node:timers/promises";
import { driver, drivers, type Message } from "../driver.js";
import { conclude } from "../markdown.js";
import { boot, memory, startService } from "../runtime.js";

/**
 * `npm run soak -- messages [count [reconcile]]`: a fifth of the messages create a report, the others list reports. One request
 * in a hundred meets a fault of the sandbox. `reconcile` is in seconds; blank is off.
 */
const MB = 2 ** 20;
const TENTHS = 10;
const IN_FLIGHT = 2000;
/** If no message has ended for so many milliseconds, the remaining ones are lost. */
const PATIENCE = 120_000;
const GROWTH = 1.2;
const PROJECT = "created.example.com";

const total = Math.ceil(Number(process.argv[3] ?? 200_000) / TENTHS) * TENTHS;
const reconcile = process.argv[4] ?? "";
const service = await startService({ fail: 1 });
const { url: baseUrl, apiKey } = service;
const limits = { concurrency: 32, queue: IN_FLIGHT, timeout: 2, reconcile };
const node = { service: "service", output: "data", wires: [["ends"]] };
await boot([
  { id: "service", type: "seo-service", baseUrl, ...limits, credentials: { apiKey } },
  { id: "store", type: "seo-report-store", ...node },
  { id: "list", type: "seo-report-list", ...node },
  { id: "catch", type: "catch", scope: null, wires: [["ends"]] },
  driver("to-store", "store"),
  driver("to-list", "list"),
  driver("ends"),
]);

// The back-off is a fiftieth.
const random = Math.random;
Math.random = () => random() / 50;

const [LOST, SUCCEEDED, FAILED, UNCERTAIN] = [0, 1, 2, 3];
/** By message, outside of the measured heap: how often it ended, and its last outcome. */
const times = new Uint8Array(total);
const ends = new Uint8Array(total);
const outcomes: Record<string, number> = {};
let mixedUp = 0;
let reconciled = 0;
let ended = 0;
let lastEnd = performance.now();

const isStore = (message: number) => message % 5 === 0;
const pageOf = (message: number) => `${PROJECT}/${message}`;

function received({ message, payload, seo, error }: Message): void {
  const number = message as number;
  const { error: failure, reconciled: wasLost } = seo as {
    error?: { code: string; uncertain: boolean };
    reconciled?: object;
  };
  const isWrong = isStore(number) ? (payload as { url: string }).url !== pageOf(number) : !Array.isArray(payload);
  if (!error && isWrong) mixedUp++;
  if (wasLost) reconciled++;
  const outcome = error ? `${failure?.code}${failure?.uncertain ? ", uncertain" : ""}` : "output";
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  ends[number] = error ? (failure?.uncertain ? UNCERTAIN : FAILED) : SUCCEEDED;
  times[number] = (times[number] ?? 0) + 1;
  if (times[number] === 1) ended++;
  lastEnd = performance.now();
}

function send(message: number): void {
  const [to, payload] = isStore(message) ? ["store", `https://${pageOf(message)}`] : ["list", { project: PROJECT }];
  drivers.get(`to-${to}`)?.({ message, payload, received });
}

const heaps: number[] = [];
let sent = 0;
for (let tenth = 1; tenth <= TENTHS; tenth++) {
  const last = (tenth * total) / TENTHS;
  lastEnd = performance.now();
  while (ended < last && performance.now() - lastEnd < PATIENCE) {
    while (sent < last && sent - ended < IN_FLIGHT) send(sent++);
    await sleep(1);
  }
  heaps.push((await memory()).heapUsed / MB);
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
    "heap MB after each tenth": heaps.map((each) => each.toFixed(1)).join(" "),
  },
  {
    lost: ends.filter((end) => end === LOST).length,
    "ended more than once": times.filter((often) => often > 1).length,
    "reports created twice": stores.filter(({ effects }) => effects > 1).length,
    "wrong outcomes": stores.filter(({ end, effects }) => end === (effects > 0 ? FAILED : SUCCEEDED)).length,
    "responses to another message": mixedUp,
    "heaps that grew": Number((heaps.at(-1) ?? 0) > (heaps[0] ?? 0) * GROWTH),
  },
);

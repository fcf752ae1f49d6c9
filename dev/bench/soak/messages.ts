import { setTimeout as sleep } from "node:timers/promises";
import { type Message, receivers, send } from "../driver.js";
import { boot, serviceNode, startService } from "../runtime.js";
import { conclude, hasGrown, heap, Ledger } from "./results.js";

/**
 * `npm run soak -- messages [count [reconcile]]`: a fifth of the messages create a report, the others list reports. One request
 * in a hundred meets a fault of the sandbox. `reconcile` is in seconds; blank is off.
 */
const TENTHS = 10;
const IN_FLIGHT = 2000;
/** If no message has ended for so many milliseconds, the remaining ones are lost. A lost response is looked for up to five minutes. */
const PATIENCE = 400_000;
const PROJECT = "created.example.com";

const total = Math.ceil(Number(process.argv[3] ?? 200_000) / TENTHS) * TENTHS;
const reconcile = process.argv[4] ?? "";
const service = await startService({ fail: 1 });
await boot([
  serviceNode(service, { concurrency: 32, queue: 2 * IN_FLIGHT, timeout: 2, reconcile }),
  { id: "store", type: "seo-report-store", output: "data", wires: [["stored"]] },
  { id: "list", type: "seo-report-list", output: "data", wires: [["listed"]] },
  { id: "catch", type: "catch", scope: null, wires: [["caught"]] },
]);

const ledger = new Ledger();
const open = new Set<number>();
let endedTwice = 0;
let reconciled = 0;
let lastEnd = performance.now();

const receive = (id: string, read: (msg: Message) => void) =>
  receivers.set(id, (msg) => {
    read(msg);
    if (!open.delete(msg.message as number)) endedTwice++;
    if ((msg.seo as { reconciled?: object }).reconciled) reconciled++;
    lastEnd = performance.now();
  });
receive("stored", (msg) => ledger.stored(msg));
receive("caught", (msg) => ledger.failed(msg));
receive("listed", ({ payload }) => {
  if (!Array.isArray(payload)) ledger.mixedUp++;
});

function sendOne(message: number): void {
  open.add(message);
  const page = `${PROJECT}/${message}`;
  if (message % 5 === 0) {
    ledger.sent(page);
    send("store", { message, payload: page, page });
  } else send("list", { message, payload: { project: PROJECT } });
}

const heaps: number[] = [];
let sent = 0;
for (let tenth = 1; tenth <= TENTHS; tenth++) {
  const last = (tenth * total) / TENTHS;
  lastEnd = performance.now();
  while ((sent < last || open.size > 0) && performance.now() - lastEnd < PATIENCE) {
    while (sent < last && open.size < IN_FLIGHT) sendOne(sent++);
    await sleep(1);
  }
  ledger.settle(await service.effects());
  heaps.push(await heap());
  console.error(`${sent - open.size} ended`);
}
// Whatever ends a second time has done so by then.
await sleep(5000);
ledger.settle(await service.effects());
conclude(
  {
    messages: total,
    ...ledger.events,
    "found after a lost response": reconciled,
    "heap MB after each tenth": heaps.join(" "),
  },
  { lost: open.size, "ended more than once": endedTwice, ...ledger.problems(), "heap has grown": hasGrown(heaps) },
);

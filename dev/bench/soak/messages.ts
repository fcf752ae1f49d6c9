import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { nodeRed } from "../../nodered.js";
import { driver, drivers, type Message } from "../driver.js";
import { table } from "../markdown.js";
import { boot, memory } from "../runtime.js";
import type { Seen } from "./service.js";

/**
 * `npm run soak [-- messages [reconcile]]`; docs/performance.md has its results. Every fifth message stores a report and the others
 * list reports, in one Node-RED, from a service that fails one request in twelve. The running Node selects the Node-RED.
 */
const MB = 2 ** 20;
const TENTHS = 10;
const IN_FLIGHT = 2000;
/** If no message has ended for so long, the remaining ones are lost. Ten looks that fail take five minutes. */
const PATIENCE = 360_000;
/** The heap after the last tenth may be this multiple of the heap after the first. */
const GROWTH = 1.5;

/** With a reconcile time, the share of the lost responses that can stay uncertain. */
const MOST_UNCERTAIN = 0.01;

const total = Math.ceil(Number(process.argv[2] ?? 200_000) / TENTHS) * TENTHS;
/** Seconds; blank is off. */
const reconcile = process.argv[3] ?? "";
if (!globalThis.gc || !(total > 0))
  throw new Error("Usage: node --expose-gc dist/dev/bench/soak/soak.js [messages [reconcile]]");

/** Each store has a connection of its own, and takes several times as long as a list. */
const isStore = (message: number) => message % 5 === 0;

const [LOST, SUCCEEDED, FAILED, UNCERTAIN] = [0, 1, 2, 3];
/** By message, outside of the measured heap: how often it ended, and its last outcome. */
const times = new Uint8Array(total);
const ends = new Uint8Array(total);
/** Messages by error code. */
const outcomes: Record<string, number> = {};
/** Messages with the response to another. */
let mixedUp = 0;
/** Messages whose report was found after its response was lost. */
let found = 0;
let ended = 0;
let resume = () => {};

function received({ message, payload, error, seo }: Message): void {
  const number = message as number;
  const failure = error === undefined ? undefined : (seo as { error?: { code: string; uncertain: boolean } }).error;
  if (error === undefined) {
    const { data } = Object(payload) as { data?: { url: string } | { url: string }[] };
    const [record] = [data].flat();
    if (record?.url !== `example.com/${number}`) mixedUp++;
    if (Object(seo).reconciled) found++;
  }
  const outcome = error === undefined ? "output" : (failure?.code ?? "no code");
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  ends[number] = error === undefined ? SUCCEEDED : failure?.uncertain ? UNCERTAIN : FAILED;
  if (times[number] === 0) ended++;
  times[number] = (times[number] ?? 0) + 1;
  resume();
}

/** Sends the messages from `first` on, `IN_FLIGHT` at a time, and waits until all have ended. */
function send(first: number, count: number): Promise<void> {
  const before = ended;
  let sent = 0;
  return new Promise((resolve) => {
    let known = ended;
    const patience = setInterval(() => {
      if (ended === known) finish();
      known = ended;
    }, PATIENCE);
    function finish(): void {
      clearInterval(patience);
      resume = () => {};
      resolve();
    }
    resume = () => {
      while (sent < count && sent - (ended - before) < IN_FLIGHT) {
        const message = first + sent++;
        const store = isStore(message);
        const payload = store ? `https://example.com/${message}` : { search: `message/${message}` };
        drivers.get(store ? "to-store" : "to-list")?.({ _msgid: `soak-${message}`, message, payload, received });
      }
      if (ended - before === count) finish();
    };
    resume();
  });
}

const flow = (baseUrl: string) => {
  const node = { service: "service", output: "body", wires: [["ends"]] };
  const service = {
    concurrency: 32,
    queue: IN_FLIGHT,
    retries: 3,
    timeout: 2,
    reconcile,
    credentials: { apiKey: "soak-key" },
  };
  return [
    { id: "service", type: "seo-service", baseUrl, ...service },
    { id: "store", type: "seo-report-store", ...node },
    { id: "list", type: "seo-report-list", ...node },
    { id: "catch", type: "catch", scope: null, wires: [["ends"]] },
    driver("to-store", "store"),
    driver("to-list", "list"),
    driver("ends"),
  ];
};

/** Stores with a wrong outcome: success without a report, or certain failure with one. */
const isWrong = (message: number, stores: number) =>
  isStore(message) && (stores === 0 ? ends[message] === SUCCEEDED : ends[message] === FAILED);

const counts = (of: Record<string, number>) =>
  Object.entries(of)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

const userDir = mkdtempSync(join(tmpdir(), "seo-soak-"));
const service = fork(new URL("service.js", import.meta.url), reconcile ? ["loses"] : [], { execArgv: [] });
const [port] = (await once(service, "message")) as [number];
await boot(userDir, flow(`http://127.0.0.1:${port}`));

// A fiftieth of the back-off, which would otherwise be most of the duration.
const random = Math.random;
Math.random = () => random() / 50;

const heaps: number[] = [];
const began = performance.now();
const usage = process.cpuUsage();
for (let tenth = 0; tenth < TENTHS; tenth++) {
  await send((tenth * total) / TENTHS, total / TENTHS);
  heaps.push((await memory()).heapUsed / MB);
  console.error(`${ended} ended after ${((performance.now() - began) / 1000).toFixed(0)} s`);
}
const seconds = (performance.now() - began) / 1000;
const { user, system } = process.cpuUsage(usage);
// Anything that ends a second time has done so by then.
await setTimeout(5000);
service.send("tell");
const [seen] = (await once(service, "message")) as [Seen];
service.disconnect();
rmSync(userDir, { recursive: true });

const problems = {
  lost: ends.filter((end) => end === LOST).length,
  "ended more than once": times.filter((often) => often > 1).length,
  "stored twice": seen.stores.filter((often) => often > 1).length,
  "with a wrong outcome": times.filter((_, message) => isWrong(message, seen.stores[message] ?? 0)).length,
  "with the response to another": mixedUp,
};
const uncertain = ends.filter((end) => end === UNCERTAIN).length;
const growth = (heaps.at(-1) ?? Number.NaN) / (heaps[0] ?? Number.NaN);
const rows = {
  messages: `${total}, a fifth of them stores`,
  seconds: seconds.toFixed(0),
  "processor seconds": ((user + system) / 1e6).toFixed(0),
  ended,
  ...problems,
  "heap MB after each tenth": heaps.map((each) => each.toFixed(1)).join(" "),
  "last tenth relative to first": growth.toFixed(2),
  "stores whose response was lost": seen.lost,
  ...(reconcile && {
    "of these found": found,
    "left uncertain": uncertain,
    "requests that look, for each": (seen.looks / seen.lost).toFixed(2),
  }),
  requests: seen.requests,
  "requests with a fault": counts(seen.faults),
  outcomes: counts(outcomes),
};
console.log(`Node-RED ${nodeRed().version}, Node ${process.versions.node}\n`);
console.log(
  table(
    ["", ""],
    Object.entries(rows).map(([name, value]) => [name, String(value)]),
  ),
);
const isClear = !reconcile || uncertain < seen.lost * MOST_UNCERTAIN;
const sound = Object.values(problems).every((count) => count === 0) && growth <= GROWTH && isClear;
if (!sound) console.error("\nThe soak failed.");
process.exit(sound ? 0 : 1);

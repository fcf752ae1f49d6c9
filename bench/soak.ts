import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { linkPackage } from "../dev/nodered.js";
import { driver } from "./contenders.js";
import { drivers, type Message } from "./driver.js";
import { key } from "./page.js";
import { boot, nodeRedVersion } from "./runtime.js";
import type { Seen } from "./soak-service.js";
import { table } from "./tables.js";

/**
 * The soak: `npm run soak`, or `node --expose-gc dist/bench/soak.js [messages]`; docs/soak.md says what it found. Every
 * fifth message stores a report and the others list, in one Node-RED, against a service of which one answer in twelve
 * has a fault. The running Node decides which Node-RED it is.
 */
const MB = 2 ** 20;
const TENTHS = 10;
const IN_FLIGHT = 2000;
/** After so long without any message's end, those that are left are lost. */
const PATIENCE = 60_000;
/** How much of the first tenth's heap there may be after the last. */
const GROWTH = 1.5;

const total = Math.ceil(Number(process.argv[2] ?? 200_000) / TENTHS) * TENTHS;
const collect = globalThis.gc;
if (!collect || !(total > 0)) throw new Error("Run it as node --expose-gc dist/bench/soak.js [messages].");

/** Each store has a connection of its own, and takes several times as long as a list. */
const isStore = (message: number) => message % 5 === 0;

const NO_END = 0;
const OUTPUT = 1;
/** Caught, and told that the service has not done it, or that it may have. */
const FAILED = 2;
const UNCERTAIN = 3;

/** By message, outside of the heap that is measured: how often it ended, and how at last. */
const times = new Uint8Array(total);
const ends = new Uint8Array(total);
/** How many ended in which way, by the failure's code. */
const outcomes: Record<string, number> = {};
/** Messages that got the answer of another. */
let strayed = 0;
let ended = 0;
let resume = () => {};

function answered({ message, payload, error, seo }: Message): void {
  const number = message as number;
  const failure = error === undefined ? undefined : (seo as { error?: { code: string; uncertain: boolean } }).error;
  if (error === undefined) {
    const { data } = Object(payload) as { data?: { id: number } | { id: number }[] };
    const [record] = [data].flat();
    if (record?.id !== number) strayed++;
  }
  const outcome = error === undefined ? "output" : (failure?.code ?? "no code");
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  ends[number] = error === undefined ? OUTPUT : failure?.uncertain ? UNCERTAIN : FAILED;
  if (times[number] === 0) ended++;
  times[number] = (times[number] ?? 0) + 1;
  resume();
}

/** Sends the messages from `first` on, as many at a time as may be on their way, and waits for the end of all. */
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
        drivers.get(store ? "to-store" : "to-list")?.({ _msgid: `soak-${message}`, message, payload, answered });
      }
      if (ended - before === count) finish();
    };
    resume();
  });
}

/** The heap when nothing is on its way. Twice, with a pause: what waited for a finaliser goes with the second. */
async function heap(): Promise<number> {
  for (let i = 0; i < 2; i++) {
    collect?.();
    await setTimeout(100);
  }
  return process.memoryUsage().heapUsed / MB;
}

const flow = (baseUrl: string) => {
  const node = { service: "service", output: "body", wires: [["ends"]] };
  const service = { concurrency: 32, queue: IN_FLIGHT, retries: 3, timeout: 2, credentials: { apiKey: key } };
  return [
    { id: "service", type: "seo-service", baseUrl, ...service },
    { id: "store", type: "seo-report-store", ...node },
    { id: "list", type: "seo-report-list", ...node },
    { id: "catch", type: "catch", scope: null, wires: [["ends"]] },
    driver("to-store", "store"),
    driver("to-list", "list"),
    { id: "ends", type: "bench-driver", wires: [] },
  ];
};

/** Messages that were told what is not so: stored without a store, or certainly failed with one. */
const misled = (stores: number[]) =>
  ends.reduce((sum, end, message) => {
    const done = stores[message] ?? 0;
    return sum + Number(isStore(message) && ((end === OUTPUT && done === 0) || (end === FAILED && done > 0)));
  }, 0);

const counts = (of: Record<string, number>) =>
  Object.entries(of)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

const userDir = mkdtempSync(join(tmpdir(), "seo-soak-"));
const service = fork(new URL("soak-service.js", import.meta.url), { execArgv: [] });
const [port] = (await once(service, "message")) as [number];
linkPackage(userDir);
await boot(userDir, flow(`http://127.0.0.1:${port}`));

// A fiftieth of the back-off, which would else be most of what the soak waits for.
const random = Math.random;
Math.random = () => random() / 50;

const heaps: number[] = [];
const began = performance.now();
const usage = process.cpuUsage();
for (let tenth = 0; tenth < TENTHS; tenth++) {
  await send((tenth * total) / TENTHS, total / TENTHS);
  heaps.push(await heap());
  console.error(`${ended} ended after ${((performance.now() - began) / 1000).toFixed(0)} s`);
}
const seconds = (performance.now() - began) / 1000;
const { user, system } = process.cpuUsage(usage);
// Whatever would come a second time has come by then.
await setTimeout(5000);
service.send("tell");
const [seen] = (await once(service, "message")) as [Seen];
service.disconnect();
rmSync(userDir, { recursive: true });

const lost = ends.filter((end) => end === NO_END).length;
const endedTwice = times.filter((often) => often > 1).length;
const doubled = seen.stores.filter((often) => often > 1).length;
const wrong = misled(seen.stores);
const growth = (heaps.at(-1) ?? Number.NaN) / (heaps[0] ?? Number.NaN);

console.log(`Node-RED ${nodeRedVersion}, Node ${process.versions.node}\n`);
console.log(
  table(
    ["", ""],
    [
      ["messages", `${total}, a fifth of which create a report`],
      ["seconds", seconds.toFixed(0)],
      ["processor seconds", ((user + system) / 1e6).toFixed(0)],
      ["ended", String(ended)],
      ["lost", String(lost)],
      ["ended more than once", String(endedTwice)],
      ["duplicate reports", String(doubled)],
      ["wrong outcome", String(wrong)],
      ["response to another message", String(strayed)],
      ["heap MB after each tenth", heaps.map((each) => each.toFixed(1)).join(" ")],
      ["last tenth to first", growth.toFixed(2)],
      ["requests", String(seen.requests)],
      ["injected errors", counts(seen.faults)],
      ["outcomes", counts(outcomes)],
    ],
  ),
);
const sound = lost + endedTwice + doubled + wrong + strayed === 0 && growth <= GROWTH;
if (!sound) console.error("\nThe soak test failed.");
process.exit(sound ? 0 : 1);

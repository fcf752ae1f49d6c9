import { Session } from "node:inspector/promises";
import { setTimeout } from "node:timers/promises";
import { linkPackage } from "../dev/nodered.js";
import { contenders } from "./contenders.js";
import { drivers } from "./driver.js";
import { measure, type Span } from "./measure.js";
import { PAGES, path, query } from "./page.js";
import { boot, load, loadCore } from "./runtime.js";

/** The part of the bench that runs in the process that is measured. Started by instance.ts, which asks for one task at a time. */

const collect = async () => {
  // Twice, with a pause: what was weakly held, or waited for a finaliser, goes with the second.
  for (let i = 0; i < 2; i++) {
    globalThis.gc?.();
    await setTimeout(50);
  }
  return process.memoryUsage();
};

/** The heap once nothing changes any more. */
async function settled(): Promise<number> {
  for (let last = Number.NaN; ; await setTimeout(500)) {
    const { heapUsed } = await collect();
    if (Math.abs(heapUsed - last) < 100_000) return heapUsed;
    last = heapUsed;
  }
}

/** Reads records: milliseconds, how many they were, and the most heap that was seen above what there was before. */
async function watched(read: () => Promise<number>) {
  const { heapUsed } = await collect();
  let most = heapUsed;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().heapUsed);
  }, 10);
  const began = performance.now();
  const records = await read();
  clearInterval(watch);
  return { ms: performance.now() - began, records, heap: most - heapUsed };
}

/** What can be loaded, by name. */
const libraries = {
  "at the start": load,
  "with the first message": async () => {
    await import("../src/client.js");
    await import("../src/schema.js");
  },
  "both together": async () => {
    await libraries["at the start"]();
    await libraries["with the first message"]();
  },
  "undici and zod": async () => {
    await import("undici");
    await import("zod");
  },
  "http request's libraries": loadCore,
};

export type Library = keyof typeof libraries;

const tasks = {
  async boot({ userDir, flow }: { userDir: string; flow: object[] }) {
    linkPackage(userDir);
    await boot(userDir, flow);
  },

  async measure({ name, origin, inFlight, span }: { name: string; origin: string; inFlight: number; span: Span }) {
    const contender = contenders[name];
    if (!contender) throw new Error(`There is no contender ${name}.`);
    return measure(await contender.ask(origin, inFlight), inFlight, span);
  },

  /** The same, with the profile that the inspector takes of it, by microsecond. */
  async profile(input: { name: string; origin: string; inFlight: number; span: Span }) {
    const session = new Session();
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: 200 });
    await session.post("Profiler.start");
    const figures = await tasks.measure(input);
    const { profile } = await session.post("Profiler.stop");
    return { figures, profile };
  },

  /** Heap that each waiting message takes beside the message, in bytes. */
  async queue({ id, count }: { id: string; count: number }) {
    const answers: unknown[] = [];
    const answered = (msg: unknown) => answers.push(msg);
    const send = (_msgid: string) => ({ _msgid, payload: { ...query }, answered });
    // The first is on its way for ever, and has the client loaded.
    drivers.get(id)?.(send("first"));
    await setTimeout(1000);
    const messages = Array.from({ length: count }, (_, index) => send(`message ${index}`));
    const before = await settled();
    for (const msg of messages) drivers.get(id)?.(msg);
    const after = await settled();
    if (answers.length > 0) throw new Error(`${answers.length} messages did not wait.`);
    return (after - before) / messages.length;
  },

  /** What it takes a Node-RED that has started without it to load something: milliseconds, and bytes of heap and of the process. */
  async load({ userDir, name }: { userDir: string; name: Library }) {
    await boot(userDir, [], ["21-httprequest.js"]);
    linkPackage(userDir);
    const before = await collect();
    const began = performance.now();
    await libraries[name]();
    const ms = performance.now() - began;
    const after = await collect();
    return { ms, heap: after.heapUsed - before.heapUsed, rss: after.rss - before.rss };
  },

  /** Reads a list to its end, and counts its records. */
  pages: ({ id }: { id: string }) =>
    watched(
      () =>
        new Promise<number>((resolve) => {
          let records = 0;
          drivers.get(id)?.({
            answered({ payload, parts }) {
              records += Array.isArray(payload) ? payload.length : 1;
              const { index, count } = (parts ?? { index: 0, count: 1 }) as { index: number; count?: number };
              if (index + 1 === count) resolve(records);
            },
          });
        }),
    ),

  /** The same pages by bare undici, which parses them and forgets them. */
  barePages: ({ origin, connections }: { origin: string; connections: number }) =>
    watched(async () => {
      const { Pool } = await import("undici");
      const { origin: service, pathname } = new URL(origin);
      const pool = new Pool(service, { connections });
      let asked = 0;
      let records = 0;
      const read = async () => {
        while (asked < PAGES) {
          asked++;
          const { body } = await pool.request({ method: "GET", path: `${pathname}${path}?page=${asked}` });
          records += ((await body.json()) as { data: unknown[] }).data.length;
        }
      };
      await Promise.all(Array.from({ length: connections }, read));
      await pool.close();
      return records;
    }),
};

export type Tasks = typeof tasks;

process.on("message", ({ task, input }: { task: keyof Tasks; input: never }) => {
  tasks[task](input).then(
    (value: unknown) => process.send?.({ value }),
    (cause: unknown) => process.send?.({ error: String((cause as Error)?.stack ?? cause) }),
  );
});
process.on("disconnect", () => process.exit());

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startSandbox } from "../../sandbox/server.js";
import { pageKey } from "../../src/address.js";
import { deferred } from "../../src/turns.js";
import type { Orders, Said } from "./machine.js";

const MACHINE = fileURLToPath(new URL("./machine.js", import.meta.url));
/** How many requests of a machine are in flight at most. */
export const SHARE = 4;
export const LEASE = { lockDuration: 1500, stalledInterval: 400 };

/** Machines that share an audit or work alone, the service they use, and what they said. */
export async function startFleet(
  queue: string,
  { latency = 60, ...options }: { latency?: number } & Partial<Orders> = {},
) {
  const node = `node-${randomBytes(4).toString("hex")}`;
  const begun = new Map<string, number>();
  /** When each report was requested, in milliseconds. */
  const times: number[] = [];
  let held: Promise<void> | undefined;
  let waiting = 0;
  const sandbox = await startSandbox({
    reports: 0,
    async latency({ method, body }) {
      const url = new URLSearchParams(body).get("url");
      if (method !== "POST" || url === null) return 5;
      // A rejected request has no effect.
      if (sandbox.requests.at(-1)?.status === 401) return 5;
      const key = pageKey(url);
      begun.set(key, (begun.get(key) ?? 0) + 1);
      times.push(performance.now());
      waiting++;
      await held;
      waiting--;
      return latency * (0.5 + Math.random());
    },
  });
  const children = new Set<ChildProcess>();
  const said: Said[] = [];
  const results = () => said.flatMap((one) => ("result" in one ? [one.result] : []));

  function spawnMachine(pages?: string[], more: Partial<Orders> = {}): ChildProcess {
    const orders: Orders = {
      queue,
      service: sandbox.url,
      apiKey: sandbox.apiKey,
      node,
      batch: "spring",
      share: SHARE,
      lease: LEASE,
      ...options,
      ...more,
      ...(pages && { pages }),
    };
    const child = spawn(process.execPath, [MACHINE, JSON.stringify(orders)], { stdio: ["pipe", "pipe", "inherit"] });
    children.add(child);
    child.once("exit", () => children.delete(child));
    createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on("line", (line) => {
      said.push(JSON.parse(line));
    });
    return child;
  }

  /** Waits until something holds. */
  async function until(holds: () => boolean, what: string, most = 150_000): Promise<void> {
    for (const end = Date.now() + most; !holds(); await sleep(20))
      if (Date.now() > end)
        throw new Error(
          `Timed out waiting until ${what}: ${results().length} results, ${JSON.stringify(said.slice(-3))}`,
        );
  }

  return {
    sandbox,
    said,
    results,
    times,
    children,
    spawn: spawnMachine,
    /** Pages that were requested more than once. */
    twice: () => [...begun].filter(([, count]) => count > 1).map(([url]) => url),
    requested: () => begun.size,
    /** The messages that a batch is finished, or those of them that do not say that they may be repeated. */
    finals: (which: "all" | "first" = "all") =>
      said.filter((one) => "finished" in one && one.finished && (which === "all" || !one.repeated)).length,
    errors: () => said.flatMap((one) => ("error" in one ? [one.error] : [])),
    async kill(child: ChildProcess) {
      if (child.exitCode !== null || child.signalCode !== null) return;
      // Then all that it said was read.
      const ended = once(child, "close");
      child.kill("SIGKILL");
      await ended;
    },
    until,
    /** Does something at a moment at which no machine is about to send: so many requests are all that can be in flight. */
    async whileAllWait(count: number, act: () => void): Promise<void> {
      const { promise, resolve } = deferred();
      held = promise;
      await until(() => waiting === count, "all requests are in flight");
      act();
      held = undefined;
      resolve();
    },
    async stop() {
      for (const child of children) {
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }
      await sandbox.close();
    },
  };
}

export type Fleet = Awaited<ReturnType<typeof startFleet>>;

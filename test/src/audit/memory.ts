import { setTimeout as sleep } from "node:timers/promises";
import type { AuditOptions } from "../../../src/audit/audit.js";
import type { Clock } from "../../../src/audit/clock.js";
import { isUnfinished } from "../../../src/audit/shared/letter.js";
import type { Lease, Queue, Server } from "../../../src/audit/shared/server.js";
import { createShared, type SharedOptions } from "../../../src/audit/shared/shared.js";
import { inQueue } from "./fake.js";

interface Job {
  id: string;
  data: unknown;
  progress?: unknown;
  state: "wait" | "prioritized" | "active";
  logs: string[];
  /** Who has it, and until when. */
  token?: string;
  until?: number;
}

/** What becomes of a command: it is carried out; it is lost; its response is; it is carried out after its sender gave up. */
export type Way = "answered" | "lost" | "mute" | "late";

/** So many times faster than real time passes. */
const FASTER = 1000;
export const fastClock: Clock = {
  now: () => performance.now() * FASTER,
  later(ms, run) {
    const timer = setTimeout(run, ms / FASTER);
    return () => clearTimeout(timer);
  },
};

/** Milliseconds after which a command has failed that is not answered. */
const PATIENCE = 40;
/** Milliseconds for which a message waits. */
const MESSAGE = 2000;
/** Milliseconds after that until a late command is carried out, at most. */
const LATEST = 100;
const MISSING = Object.assign(new Error("there is no such job"), { code: -1 });
const timedOut = () => Object.assign(new Error("timed out"), { code: "ETIMEDOUT" });

/**
 * The part of BullMQ's queues that audits use, in this process: its connections fail whenever a test wants them to. The same
 * contract holds for it as for Redis and PostgreSQL, in `stores.test.ts`.
 */
export function createMemory(patience = MESSAGE) {
  const queues = new Map<string, Map<string, Job>>();

  function jobsOf(name: string): Map<string, Job> {
    const jobs = queues.get(name) ?? new Map<string, Job>();
    queues.set(name, jobs);
    return jobs;
  }

  /**
   * A machine's connection. `way` says what becomes of a command, `pause` how many milliseconds it takes, or when it is carried
   * out. Both get the line that it appends, the ID of the job whose lines it reads, the name of the queue whose next job it
   * takes, or `jobs` if it reads their IDs.
   */
  function connect(
    way: (what: string) => Way = () => "answered",
    pause: (what: string) => number | Promise<unknown> = () => 0,
  ): Server {
    async function call<Value>(command: () => Value, what = ""): Promise<Value> {
      const how = way(what);
      const before = how === "answered" ? pause(what) : 0;
      await (typeof before === "number" ? sleep(before) : before);
      if (how === "answered") return command();
      if (how === "mute") command();
      await sleep(PATIENCE);
      // Nobody is left whom its error concerns.
      if (how === "late") setTimeout(() => attempt(command), Math.random() * LATEST);
      throw timedOut();
    }

    function queue(name: string): Queue {
      const jobs = jobsOf(name);
      const find = (id: string) => {
        const job = jobs.get(id);
        if (!job) throw MISSING;
        return job;
      };
      const shown = (job: Job | undefined) =>
        job && {
          ...job,
          updateData: (data: unknown) =>
            call(() => {
              find(job.id).data = data;
            }),
          updateProgress: (progress: unknown) =>
            call(() => {
              find(job.id).progress = progress;
            }),
          moveToWait: (token: string) =>
            call(() => {
              if (find(job.id).token !== token) throw new Error("missing lock");
              Object.assign(find(job.id), { state: "wait", token: "" });
            }),
        };
      return {
        getBackend: () => ({
          addLog: (id: string, text: string) => call(() => find(id).logs.push(text), text),
          changePriority: (id: string, priority: number) =>
            call(() => {
              find(id).state = priority > 0 ? "prioritized" : "wait";
            }),
        }),
        add: (_: string, data: unknown, { jobId: id }: { jobId: string }) =>
          call(() => {
            if (!jobs.has(id)) jobs.set(id, { id, data, state: "wait", logs: [] });
          }),
        getJob: (id: string) => call(() => shown(jobs.get(id))),
        getJobLogs: (id: string, from: number, to: number) =>
          call(() => {
            const { logs = [] } = jobs.get(id) ?? {};
            return { logs: logs.slice(from, to + 1 || undefined), count: logs.length };
          }, id),
        getRanges: (states: string[], from: number, to: number, oldestFirst: boolean) =>
          call(() => {
            const all = states.flatMap((one) => [...jobs.values()].filter(({ state }) => state === one));
            const ids = all.map(({ id }) => id).slice(from, to + 1 || undefined);
            return oldestFirst ? ids : ids.reverse();
          }, "jobs"),
        remove: (id: string) => call(() => Number(jobs.delete(id))),
        getNextJob: (token: string, lease: Lease) =>
          call(() => {
            const job = [...jobs.values()].find(({ state }) => state === "wait");
            if (job) Object.assign(job, { state: "active", token, until: performance.now() + lease.lockDuration });
            return shown(job);
          }, name),
        extendJobLocks: (ids: string[], tokens: string[], duration: number) =>
          call(() =>
            ids.filter((id, index) => {
              const job = jobs.get(id);
              if (job?.token !== tokens[index] || (job?.until ?? 0) < performance.now()) return true;
              if (job) job.until = performance.now() + duration;
              return false;
            }),
          ),
        checkStalled: () =>
          call(() => {
            for (const job of jobs.values())
              if (job.state === "active" && (job.until ?? 0) < performance.now()) {
                job.state = "wait";
                job.token = "";
              }
          }),
      } as unknown as Queue;
    }
    const timers = new Set<NodeJS.Timeout>();
    return {
      version: "memory",
      warning: undefined,
      queue,
      worker(name, lease) {
        const all = queue(name) as unknown as Record<string, (...parameters: unknown[]) => Promise<unknown>>;
        return {
          getNextJob: (token: string) => all.getNextJob?.(token, lease),
          extendJobLocks: all.extendJobLocks,
          async startStalledCheckTimer() {
            timers.add(setInterval(() => all.checkStalled?.().catch(() => {}), lease.stalledInterval).unref());
          },
        } as unknown as ReturnType<Server["worker"]>;
      },
      async close() {
        for (const timer of timers) clearInterval(timer);
      },
    };
  }

  /** The work that is left to machines: letters without a reply, and batches that have not finished. */
  const unfinished = () =>
    [...(queues.get("service")?.values() ?? [])].filter(({ logs }) =>
      isUnfinished(logs.map((text) => JSON.parse(text))),
    );

  /** One of its machines, by its own connection. */
  const shareBy = (lease: Lease, server: () => Server) =>
    createShared({ url: "redis://memory" }, { lease, patience, connect: async () => server() });

  /** One of its machines. */
  const share = (lease: Lease, ...connection: Parameters<typeof connect>) =>
    shareBy(lease, () => connect(...connection));

  /** An audit of one of its machines, for `createBench`. */
  const auditing =
    (lease: Lease, more: Partial<SharedOptions> = {}, ...connection: Parameters<typeof connect>) =>
    (options: AuditOptions) =>
      inQueue(share(lease, ...connection), more)(options);

  return { connect, share, shareBy, auditing, unfinished, queues };
}

function attempt(command: () => unknown): void {
  try {
    command();
  } catch {
    // The sender has given up.
  }
}

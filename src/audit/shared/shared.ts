/**
 * How several machines share their batches (docs/decisions/machines.md has the reasons):
 *
 * 1. Each process has a member (member.ts) per queue and SEO service, and a host (host.ts) per audit node. server.ts,
 *    driver.ts, redis.ts and postgres.ts connect to the queue, faults.ts explains its exceptions. link.ts has its jobs.
 * 2. The member that holds the lock of the job `lead` leads for a term (term.ts): its hosts work on the batches, and it
 *    publishes their progress. The other members stand by: their hosts show this progress.
 * 3. A machine posts each message as a letter (post.ts, letter.ts), even if it leads, and waits for the reply.
 * 4. The lead takes letters over in order. store.ts does what they say with the node's audit, and saves the replies.
 *    The job of a list becomes the batch, and its log (log.ts) the journal. Only the last machine that took the job
 *    over can add entries that count.
 * 5. If the lead is killed, its lock expires. Another member begins a term, takes all open jobs over, and continues.
 */
import type { Audit } from "../audit.js";
import { clock as realClock } from "../clock.js";
import type { FindJournals } from "../failures.js";
import type { State } from "../state.js";
import { Host, type SharedOptions } from "./host.js";
import { type Command, idsIn, type JobEntry, readJob } from "./letter.js";
import type { QueueSettings } from "./link.js";
import { readLines } from "./log.js";
import { Member } from "./member.js";
import { post } from "./post.js";
import { connect, type Lease, type Place, type Queue } from "./server.js";

export type { Lease, Place, SharedOptions };

/** A machine that was killed is noticed after 20 s at most. */
const LEASE: Lease = { lockDuration: 10_000, stalledInterval: 3000 };
const usual = { lease: LEASE, patience: 30_000, connect };

/** The state of a batch that has a journal; undefined if the job has none, or a damaged one. */
async function readBatch(queue: Queue, id: string): Promise<State | undefined> {
  // A fault of the server is not the state of the journal.
  const lines = await readLines<JobEntry>(queue, id);
  try {
    const { is, state } = readJob(lines);
    return is === "batch" || is === "kept" ? state : undefined;
  } catch {
    return undefined;
  }
}

/** A queue that several machines share. Nothing is loaded or connected before the first audit. */
export function createShared(place: Place, settings: Partial<QueueSettings> = {}) {
  /** By service. */
  const members = new Map<string, Member>();

  return {
    /** The journals of a node, whose audit was created before: any machine can read the logs of its jobs. */
    journals: (node: string, service: string): FindJournals =>
      async function* (name) {
        const queue = members.get(service)?.jobs();
        if (!queue) throw new Error("The queue is not connected.");
        // Open ones first, which are newer.
        const ids = await idsIn(queue, node, name === undefined ? ["prioritized"] : ["wait", "prioritized"], name);
        for (const id of ids) {
          const { count } = await queue.getJobLogs(id, 0, 0);
          yield { key: `${id} ${count}`, read: () => readBatch(queue, id) };
        }
      },

    /** The audit of a node, on whatever machine its batches are worked on. */
    createAudit({ clock = realClock, ...options }: SharedOptions): Audit {
      const { node, service, warn = () => {} } = options;
      const member = members.get(service) ?? new Member(place, service, { ...usual, ...settings, clock, warn });
      members.set(service, member);
      const host = new Host({ ...options, clock }, member);
      member.join(host);
      const send = (command: Command) => post(member, node, command);
      return {
        add: ({ batch: name, settings, rows }) => send({ do: "list", name, settings, rows }),
        pause: (name) => send({ do: "pause", name }),
        resume(name) {
          member.repaired();
          return send({ do: "resume", name });
        },
        retry: (name) => send({ do: "retry", name }),
        reset: (name) => send({ do: "reset", name }),
        latest: host.latest,
        progress: host.progress,
        drain: host.drain,
        async close() {
          const waiting = await host.end();
          const left = member.leave(host);
          if (member.hosts.size === 0) members.delete(service);
          await left;
          return waiting;
        },
      };
    },
  };
}

export type Shared = ReturnType<typeof createShared>;

/** Checks that the queue can be used. Returns its server, such as `Redis 7.0.15`. Rejects with SEO_CONFIG or SEO_NETWORK. */
export async function testQueue(place: Place): Promise<string> {
  const server = await connect(place);
  await server.close();
  return server.version;
}

import type { Clock } from "../clock.js";
import { lostData } from "./faults.js";
import { newName } from "./log.js";
import type { connect, Lease, Place, QueueJob } from "./server.js";

export interface QueueSettings {
  lease: Lease;
  /** Milliseconds for which a message waits for the server, and the first connection until that is an error. */
  patience: number;
  connect: typeof connect;
}

export interface MemberOptions extends QueueSettings {
  clock: Clock;
  /** Gets a sentence if the server should be set otherwise. */
  warn(sentence: string): void;
}

/** The data of the job `lead`: what the machine that leads says of its nodes. */
export interface News {
  holder: string;
  /** JSON: by node, its batches. */
  progress: string;
  /** Another machine can have the lead. It requests the lead by the name of the holder, as the progress of the job. */
  offered?: boolean;
  padding?: string | undefined;
}

export type LeadJob = QueueJob & { data: News };

const LEAD = "lead";

/** A queue's name; no colon is allowed. */
const named = (id: string, what = "") => `${id.replace(/[^\w-]/g, "_")}${what}`;

/** Connects to the queues of a service: the letters and batches, and the job `lead`, whose lock makes a machine the lead. */
export async function openLink(place: Place, service: string, { lease, connect, warn }: MemberOptions) {
  const server = await connect(place);
  const token = newName();
  try {
    if (server.warning) warn(server.warning);
    const leads = server.queue(named(service, "-lead"));
    const worker = server.worker(named(service, "-lead"), lease);
    const none: News = { holder: "", progress: "{}" };
    await leads.add(LEAD, none, { jobId: LEAD });
    await worker.startStalledCheckTimer();
    return {
      /** The letters and batches of all nodes. */
      jobs: server.queue(named(service)),
      close: server.close,

      async lead() {
        const job = await leads.getJob(LEAD);
        if (!job) throw lostData;
        return job as LeadJob;
      },

      /** Acquires the lock if it is free. Returns how to release it. */
      async acquire() {
        const lead = await worker.getNextJob(token, { block: false });
        return lead && (() => lead.moveToWait(token));
      },

      /** Whether the lock was still this machine's. */
      async renew(): Promise<boolean> {
        const lost = await worker.extendJobLocks([LEAD], [token], lease.lockDuration);
        return lost.length === 0;
      },
    };
  } catch (cause) {
    await server.close();
    throw cause;
  }
}

export type Link = Awaited<ReturnType<typeof openLink>>;

import type { SeoError } from "../../errors.js";
import { type Audit, type AuditOptions, createAudit } from "../audit.js";
import { clock as realClock } from "../clock.js";
import type { Progress } from "../progress.js";
import { type Host, Member, type MemberOptions } from "./lead.js";
import { textOf } from "./letter.js";
import { connect as connectTo, type Lease, type Place } from "./server.js";
import type { QueueStore } from "./store.js";

export type { Lease, Place };

/** An audit whose batches are in a queue. */
export interface SharedOptions extends Omit<AuditOptions, "open"> {
  /** The audit node and its SEO service node, by their IDs, which are the same on all machines. */
  node: string;
  service: string;
  /** Another machine leads: what it says of the batches, and those of them that have changed. */
  standBy(all: readonly Progress[], changed: readonly Progress[]): void;
  /** Gets a sentence if the server should be set otherwise. */
  warn?(sentence: string): void;
}

export interface QueueOptions {
  lease?: Lease;
  /** Milliseconds for which a message, or the first connection, waits for the server. */
  patience?: number;
  connect?: typeof connectTo;
}

const PATIENCE = 30_000;
/** A machine that was killed is noticed after 20 s at most. */
const LEASE: Lease = { lockDuration: 10_000, stalledInterval: 3000 };
/** Failures that another machine may not have: those of the key, and of the network. */
const OWN: readonly string[] = ["SEO_UNAUTHORIZED", "SEO_FORBIDDEN", "SEO_NETWORK", "SEO_TIMEOUT"];

/** A queue that several machines share. Nothing is loaded or connected before the first audit. */
export function createShared(place: Place, options: QueueOptions = {}) {
  const { lease = LEASE, patience = PATIENCE, connect = connectTo } = options;
  /** By service. */
  const members = new Map<string, { member: Member; audits: number }>();

  function enter(service: string, options: Pick<MemberOptions, "clock" | "warn">): Member {
    const known = members.get(service) ?? {
      member: new Member(place, service, { ...options, lease, patience, connect }),
      audits: 0,
    };
    known.audits++;
    members.set(service, known);
    return known.member;
  }

  async function leave(service: string, node: string): Promise<void> {
    const known = members.get(service);
    if (known && --known.audits === 0) members.delete(service);
    await known?.member.leave(node);
  }

  return {
    /** The audit of a node, on whatever machine its batches are worked on. */
    createAudit({ node, service, standBy, warn = () => {}, clock = realClock, ...options }: SharedOptions): Audit {
      const member = enter(service, { clock, warn });
      /** As long as this machine leads. */
      let work: { audit?: Audit; store?: QueueStore } = {};
      let shown = new Map<string, string>();
      /** The code of the last error of the queue, and of each batch. */
      let told: string | undefined;
      const toldOf = new Map<string, string>();

      function failed(error: SeoError, batch?: string): void {
        const before = batch === undefined ? told : toldOf.get(batch);
        if (batch === undefined) told = error.code;
        else toldOf.set(batch, error.code);
        if (before !== error.code) options.failed(error, batch);
      }

      function recovered(opened: boolean): void {
        told = undefined;
        options.recovered?.(opened);
      }

      const host: Host = {
        begin(open) {
          const mine: typeof work = {};
          work = mine;
          mine.audit = createAudit({
            ...options,
            clock,
            failed,
            recovered,
            stopped({ code }) {
              if (OWN.includes(code)) member.handOver();
            },
            result(result) {
              if (!result.error) toldOf.delete(result.batch);
              options.result(result);
            },
            progress(progress) {
              if (progress.finished) toldOf.delete(progress.batch);
              member.tell(node, progress);
              options.progress(progress);
            },
            async open() {
              mine.store = await open();
              return mine.store;
            },
          });
        },
        async handle(ids, answer) {
          const { audit, store } = work;
          if (!audit || !store) return;
          for (const id of ids) answer(id, await store.handle(id, audit));
          await store.clean();
        },
        drain: async () => work.audit?.drain(),
        async end(why) {
          const { audit } = work;
          work = {};
          shown = new Map();
          await audit?.close(why);
        },
        show(all) {
          const now = new Map(all.map((one) => [one.batch, JSON.stringify(one)]));
          const changed = all.filter(({ batch }) => shown.get(batch) !== now.get(batch));
          shown = now;
          for (const { batch, paused } of all) if (paused === false) toldOf.delete(batch);
          standBy(all, changed);
        },
        failed,
        recovered() {
          if (told !== undefined) recovered(false);
        },
      };
      member.join(node, host);
      const post = member.post;

      return {
        add: ({ batch: name, settings, rows }) => post.send(node, { do: "list", name, settings, rows: textOf(rows) }),
        pause: (name) => post.send(node, { do: "pause", name }),
        resume: (name) => post.send(node, { do: "resume", name }),
        retry: (name) => post.send(node, { do: "retry", name }),
        reset: (name) => post.send(node, { do: "reset", name }),
        progress: async () => work.audit?.progress() ?? [...member.progress(node)],
        drain: host.drain as Audit["drain"],
        async close() {
          const waiting = member.progress(node).reduce((sum, one) => sum + (one.finished ? 0 : one.waiting), 0);
          await host.end();
          await leave(service, node);
          return waiting;
        },
      };
    },
  };
}

export type Shared = ReturnType<typeof createShared>;

/** Checks that the queue can be used. Returns its server, such as `Redis 7.0.15`. Rejects with SEO_CONFIG or SEO_NETWORK. */
export async function testQueue(place: Place): Promise<string> {
  const server = await connectTo(place);
  await server.close();
  return server.version;
}

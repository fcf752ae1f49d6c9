import { cancelled, type SeoError } from "../../errors.js";
import type { Gate } from "../requests.js";
import type { Hooks, Store } from "../store.js";
import { Trouble } from "../trouble.js";
import { fromServer, isLoss } from "./faults.js";
import { openGate } from "./gate.js";
import { connect, type Lease, type Place } from "./server.js";
import { openStore } from "./store.js";

export type { Lease, Place };

/** Whose jobs they are. */
export interface Owner {
  /** The audit node, by its ID, which is the same on all machines. */
  node: string;
  /** The SEO service node, by its ID. All audit nodes of it share its rate. */
  service: string;
  /** Requests per minute of all machines together; blank or Infinity for no limit. */
  rate?: unknown;
  /** Gets a sentence if the server should be set otherwise. */
  warn?(sentence: string): void;
}

/** Jobs that several machines share. Nothing is loaded or connected before `open`. */
export interface Shared {
  /** For `createAudit`. Waits up to 30 s for the server. Rejects with SEO_CONFIG or SEO_NETWORK. */
  open(hooks: Hooks): Promise<Store>;
  /** For `requestsOf`. */
  gate: Gate;
}

const PATIENCE = 30_000;
/** A machine that was killed is noticed after 20 s at most. */
const LEASE: Lease = { lockDuration: 10_000, stalledInterval: 4000 };

/** A queue's name; no colon is allowed. */
const named = (id: string, what: string) => `${id.replace(/[^\w-]/g, "_")}${what}`;

/** Describes the jobs of an audit node in a queue that several machines share. */
export function createShared(
  place: Place,
  { node, service, rate, warn }: Owner,
  lease: Lease = LEASE,
  patience = PATIENCE,
): Shared {
  let gate: Promise<Gate> = Promise.reject(cancelled);
  gate.catch(() => {});
  let lost: Hooks["lost"] = () => {};
  let store: Store | undefined;
  /** A server that rejects the connection, or has lost data, stops everything before a batch or a page fails by that. */
  function toError(cause: unknown): SeoError {
    const names = new Set(store?.batches.map(({ name }) => name));
    const error = fromServer(cause, new URL(place.url), [...names]);
    if (isLoss(cause) || (error !== cause && !(error instanceof Trouble))) lost(error);
    return error;
  }
  const limit = Number(rate) > 0 && Number.isFinite(Number(rate)) ? Number(rate) : undefined;

  return {
    async open(hooks) {
      lost = hooks.lost;
      const server = await connect(place, patience);
      try {
        gate = openGate(server, named(service, "-rate"), limit, lease);
        await gate;
        if (server.warning) warn?.(server.warning);
        store = await openStore(server, named(node, ""), lease, toError, hooks);
        return store;
      } catch (cause) {
        await server.close();
        throw toError(cause);
      }
    },
    gate: {
      permit: () =>
        gate
          .then((open) => open.permit())
          .catch((cause) => {
            const error = toError(cause);
            throw error instanceof Trouble ? error : cancelled;
          }),
      paused(ms) {
        gate.then((open) => open.paused(ms)).catch(() => {});
      },
    },
  };
}

/** Checks that the queue can be used. Returns its server, such as `Redis 7.0.15`. Rejects with SEO_CONFIG or SEO_NETWORK. */
export async function testQueue(place: Place): Promise<string> {
  const server = await connect(place);
  await server.close();
  return server.version;
}

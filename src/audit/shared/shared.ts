import type { Store } from "../store.js";
import { connect, type Lease, type Place } from "./server.js";

/** Whose jobs they are. */
export interface Owner {
  /** The audit node, by its ID, which is the same on all machines. */
  node: string;
  /** The SEO service node, by its ID. All audit nodes of it share its rate. */
  service: string;
  /** Requests per minute of all machines together; blank for no limit. */
  rate?: unknown;
}

/** Holds requests back, so that all machines together keep to the rate and to the service's pauses. */
export interface Gate {
  /** Resolves when a request can be sent. */
  permit(): Promise<void>;
  /** The service asked for a pause of so many milliseconds. */
  paused(ms: number): void;
}

/** Jobs that several machines share. Nothing is loaded or connected before `open`. */
export interface Shared {
  /** For `createAudit`. */
  open: (lost: (error: import("../trouble.js").Trouble) => void) => Promise<Store>;
  /** For `requestsOf`. */
  gate: Gate;
}

/** Checks that the queue can be used. Returns its server, such as `Redis 7.0.15`. Rejects with SEO_CONFIG or SEO_NETWORK. */
export async function testQueue(place: Place): Promise<string> {
  const server = await connect(place);
  await server.close();
  return server.version;
}

export type { Lease, Place };

import type { ConnectionOptions } from "node:tls";
import type { BackendFactory } from "bullmq";
import { SeoError } from "../../errors.js";

/** The server of a queue: `redis://`, `rediss://` or `postgres://`. */
export interface Place {
  url: string;
  /** Begins the names of all keys in Redis; in PostgreSQL the name of the schema. */
  prefix?: string | undefined;
  tls?: ConnectionOptions | undefined;
}

/** A connection to a server of one kind. */
export interface Driver {
  version: string;
  /** A setting that a user should change, although the server works. */
  warning?: string | undefined;
  factory: BackendFactory;
  close(): Promise<unknown>;
  destroy(): void;
}

/** Milliseconds that a connection, or a command, can take. */
export const PATIENCE = 4000;
/** Milliseconds that the end of a connection can take. */
export const GOODBYE = 2000;
export const DEFAULT_PREFIX = "seo-reports";

/** Loads bullmq and its client, which may not be installed. */
export async function load<Client>(
  name: string,
  client: () => Promise<Client>,
): Promise<[typeof import("bullmq"), Client]> {
  try {
    return [await import("bullmq"), await client()];
  } catch (cause) {
    const { code, message } = Object(cause) as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw cause;
    const missing = message.includes("'bullmq'") ? "bullmq" : name;
    // All machines need the same version of bullmq.
    const command = `npm install --save-exact bullmq@6.7.0 ${name}`;
    const sentence = `The package ${missing} is not installed: run "${command}" in the Node-RED user directory, and restart Node-RED.`;
    throw new SeoError("SEO_CONFIG", sentence, { stage: "package", values: { command } });
  }
}

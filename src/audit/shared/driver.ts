import type { BackendFactory } from "bullmq";
import type { TlsOptions } from "../../config.js";
import { missing } from "./faults.js";

/** Where the jobs are kept: `redis://`, `rediss://` or `postgres://`. */
export interface Place {
  url: string;
  /** Begins the names of all keys in Redis; in PostgreSQL the name of the schema. */
  prefix?: string | undefined;
  tls?: TlsOptions | undefined;
}

/** A connection to a server of one kind. */
export interface Driver {
  version: string;
  /** What a user should change, although it works. */
  warning?: string | undefined;
  factory: BackendFactory;
  close(): Promise<unknown>;
  destroy(): void;
}

/** Milliseconds that a connection, or a command, can take, and that a connection is tried again after. */
export const PATIENCE = 4000;
export const BETWEEN = 1000;
/** Milliseconds that the end of a connection can take. */
export const GOODBYE = 2000;
export const DEFAULT_PREFIX = "seo-reports";

/** A module that may not be installed. `client`: the package that is needed besides bullmq. */
export const load = <Module>(name: string, client: string, module: Promise<Module>): Promise<Module> =>
  module.catch((cause) => {
    throw missing(name, client, cause);
  });

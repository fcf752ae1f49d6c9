import type { SeoError } from "../errors.js";
import type { Store } from "./batch.js";
import type { Clock } from "./clock.js";
import type { Ended } from "./entries.js";
import type { Progress } from "./progress.js";
import type { Requests } from "./requests.js";

/** One row's result. */
export interface Result extends Omit<Ended, "report"> {
  batch: string;
  index: number;
  /** The row as it was given, without a password. */
  input: unknown;
  /** The report, or null. */
  record: unknown;
  /** The result may have been sent before, by a process that died. */
  repeated?: true;
}

export interface AuditOptions {
  /** Opens the place of the journals. `lost` is called if they are taken over. */
  open(lost: (error: SeoError) => void): Promise<Store>;
  /** Makes the requests that are canceled together; `changed` is called when a response is lost or found. */
  connect(changed: () => void): Requests;
  /** So many requests are in flight at most. */
  share: number;
  result(result: Result): void;
  /** How far a batch is, and with it all that `latest` returns. */
  progress(progress: Progress, all: readonly Progress[]): void;
  /** An error that a person must see; it is reported once. */
  failed(error: SeoError, batch?: string): void;
  /** The journals can be written again. `opened`: they were read again, and some batches may be gone. */
  recovered?(opened: boolean): void;
  /** Gets each failure that has a batch wait. */
  stopped?(error: SeoError): void;
  /** The latest figures of an earlier audit of the node. */
  earlier?: readonly Progress[];
  clock?: Clock;
}

export type Options = Omit<AuditOptions, "progress"> & { readonly clock: Clock; progress(progress: Progress): void };

import type { SeoError } from "../errors.js";
import type { Intent } from "../reconcile/look.js";
import type { List, Settings } from "./list.js";
import type { Outcome, State } from "./pages.js";
import type { Row } from "./rows.js";

/** The report of a page that is to be regenerated. */
export interface Plan {
  report: string;
  /** When it was generated, which shows whether a request whose response is lost took effect. */
  generatedAt?: string | undefined;
}

/** A request is about to be sent. */
export interface Sent extends Pick<Plan, "generatedAt"> {
  sent: "create" | "regenerate";
  /** The report to regenerate. */
  report?: string | undefined;
  /** What finds the request's effect, unless it is known to have none. */
  intent?: Intent | undefined;
}

/** How a page ended. */
export interface Ended {
  ended: Outcome;
  /** The report's ID. */
  report?: string | undefined;
  attempts: number;
  reconciled?: { looks: number; after: number } | undefined;
  /** `SeoError.toJSON()`, without the response's body. */
  error?: { code: string; message: string } | undefined;
}

/** Failures in a row. */
export interface Streak {
  /** Those that are held: neither told, nor requested again. */
  pages: number[];
  /** The last one. */
  error: Ended["error"];
  /** Set if they have stopped the batch: the pages that were in flight then. The success of any other page is a probe's. */
  before?: Set<number> | undefined;
  /** The page that was requested again as a probe, because no other was left. */
  probe?: number;
}

/** A page that is worked on. It is its first row. */
export interface Claim {
  page: number;
  url: string;
  settings: Settings;
  /** What was sent before, or the plan. If it has an intent, its effect is looked for first. */
  request: Sent;
  /** How it ended, if it only has to be told. */
  ended?: Ended | undefined;
  /** It ended in an earlier process, so that it may have been told. */
  repeated: boolean;
}

/** One batch. Whatever resolves is on disk, or in the queue. Rejects with a Trouble, or as `taken` if another machine leads. */
export interface Batch {
  readonly name: string;
  /** The IDs of the reports that it got in earlier processes, in order: any can be newer than an old lost request. */
  readonly reports: readonly string[];
  /** Rows, by state; a row counts as done once it was told. */
  readonly counts: Record<State, number>;
  total(): number;
  paused(): boolean;
  /** It was reset: what waits is dropped. */
  dropped(): boolean;
  /** Failures that are not told yet, because they may be the account's. */
  held(): readonly number[];
  /** The last failures in a row. */
  streak(): Streak | undefined;

  /** The next page that was begun before or only has to be told (`begun`), or the next new one. */
  take(which: "begun" | "new"): Promise<Claim | undefined>;
  /** The next row that is invalid. */
  takeInvalid(): number | undefined;
  /** Nobody works on the page any more. If it is not done, it is taken again. */
  release(page: number): void;

  sent(page: number, sent: Sent): Promise<void>;
  ended(page: number, ended: Ended): Promise<void>;
  /** The rows of a page that were not told. */
  untold(page: number): number[];
  input(row: number): Promise<{ input: unknown; error?: string }>;
  told(row: number): void;
  /** The page waits again. */
  again(page: number): Promise<void>;
  /** Nothing but held failures is left. */
  letGo(): Promise<void>;

  /** The next list that has no plan, and how many of its pages need one. */
  unplanned(): { list: List; pages: number } | undefined;
  /** The page of a key, if it needs a plan. */
  find(list: List, key: string): number | undefined;
  plan(page: number, plan: Plan): void;
  planned(list: List): void;

  /** Adds the pages that are new. Returns how many rows that are. */
  join(settings: Settings, rows: Iterable<Row>): Promise<number>;
  pause(paused: boolean): Promise<void>;
  /** Failed and uncertain pages wait again. Returns how many rows that are. */
  retry(): Promise<number>;
  /** What waits is dropped. */
  reset(): Promise<void>;
  /** Resolves if the end can be told. `repeated`: a process that died may have told it. */
  last(): Promise<{ repeated: boolean }>;
  /** Closes the batch, and keeps it so that it can be opened again. */
  finish(): Promise<void>;
  remove(): Promise<void>;
  /** Nothing more is noted. */
  close(): Promise<void>;
}

/** Where the jobs of one node are kept. */
export interface Store {
  /** Those that are not finished, the oldest first. */
  readonly batches: readonly Batch[];
  /** Batches that cannot be read. */
  readonly broken: readonly { name: string; error: SeoError }[];
  /** Adds a batch. One of the same name that has finished is removed. */
  create(name: string, settings: Settings, rows: Iterable<Row>): Promise<Batch>;
  /** Opens finished batches again, one or all: their failed and uncertain pages wait. Throws at the first that cannot be opened. */
  reopen(name?: string): AsyncIterable<Batch>;
  /** Removes finished batches, and those that cannot be read. Returns how many. */
  forget(name?: string): Promise<number>;
  /** Rejects if nothing can be saved. */
  probe(): Promise<void>;
  /** Milliseconds until the next probe, if it is not a minute. */
  readonly between?: number;
  close(): Promise<void>;
}

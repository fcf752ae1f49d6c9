import type { Existing } from "../existing.js";
import type { Intent } from "../reconcile/watermark.js";
import type { Moment } from "./clock.js";
import type { Row } from "./rows.js";

/** How a page can end. */
export const outcomes = ["created", "regenerated", "fresh", "failed", "uncertain"] as const;

export type Outcome = (typeof outcomes)[number];

/** How a message controls batches. */
export const controls = ["pause", "resume", "retry", "reset"] as const;

export type Control = (typeof controls)[number];

/** The settings of the pages of a list. */
export interface Settings {
  existing: Existing;
  /** In days. */
  maxAge?: number | undefined;
  privacy?: string | undefined;
}

/** The request for a page. */
export interface PageRequest {
  action: "create" | "regenerate";
  /** The report to regenerate. */
  report?: string | undefined;
  /** When it was generated, which shows whether a request whose response is lost took effect. */
  generatedAt?: string | undefined;
  /** Finds the request's effect, unless it is known to have none. */
  intent?: Intent | undefined;
  /** A moment before which it was sent. */
  sentBefore?: Moment | undefined;
  /** Why its outcome was uncertain when it was last looked for. */
  error?: Ended["error"];
}

/** How a page ended. */
export interface Ended {
  outcome: Outcome;
  /** The report's ID. */
  report?: string | undefined;
  attempts: number;
  reconciled?: { looks: number; after: number } | undefined;
  /** `SeoError.toJSON()`, without the response's body. */
  error?: { code: string; message: string } | undefined;
}

/** The report of a page that is to be regenerated. */
export interface Plan {
  page: number;
  /** The list whose settings it follows. */
  list: number;
  report: string;
  generatedAt?: string | undefined;
}

/** The format of journals and letters. A version of this package reads no other one. */
export const FORMAT = 1;

/** An entry of a journal, in this order. A page is the number of its first row. */
export type Entry =
  | { type: "batch"; format: number; name: string }
  /** Rows of a list, which counts once its last entry, `list`, follows. `from`: how many of them came before. */
  | { type: "rows"; from: number; rows: readonly Row[] }
  /** `pages`: those known before that take the settings of this list. */
  | { type: "list"; settings: Settings; rows: number; pages: readonly number[] }
  | { type: "plan"; pages: readonly Plan[] }
  | { type: "planned"; lists: readonly number[] }
  | ({ type: "sent"; page: number } & PageRequest)
  /** A process has opened the journal: nobody sends the requests before it any more. `service`: the place of its SEO service. */
  | ({ type: "opened"; service: string } & Partial<Moment>)
  /** The request for the page has certainly had no effect. */
  | { type: "waits"; page: number }
  | ({ type: "ended"; page: number } & Ended)
  | { type: "delivered"; page: number }
  | { type: Control | "finished" };

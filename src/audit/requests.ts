import type { SeoError } from "../errors.js";
import type { Intent } from "../reconcile/look.js";

/** A response, and what it took to get it. */
export interface Answer {
  body: unknown;
  attempts: number;
  reconciled?: { looks: number; after: number } | undefined;
}

/** A page of the account's list of reports. */
export interface ListPage {
  records: unknown[];
  response: { headers: Record<string, unknown> };
}

export interface SendOptions {
  /** Of a request that an earlier process sent: its effect is looked for first, and it is sent only if it has none. */
  intent?: Intent | undefined;
  /** Awaited before each attempt is sent. If it rejects, nothing is sent. */
  sending?(intent: Intent): Promise<void>;
  /** The response was lost. Until `sending` is called again, the request is not in flight. */
  lost?(): void;
}

/** What an audit needs of the service. All requests keep to its budget. Rejects with an SeoError. */
export interface Requests {
  send(type: string, input: Record<string, string>, options?: SendOptions): Promise<Answer>;
  /** Reads a list, a page at a time, each only when it is needed. */
  pages(type: string, input: Record<string, string>): AsyncIterable<ListPage>;
  /** Ends everything that is in flight or waits, with SEO_CANCELLED. */
  cancel(): void;
}

/** An error as it is told and kept. The response's body is not kept. */
export function toJSON(error: SeoError): { code: string; message: string } {
  const { body: _, ...rest } = error.toJSON();
  return rest;
}

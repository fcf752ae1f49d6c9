import type { Durable } from "../call.js";
import type { Client } from "../client.js";
import type { SeoError } from "../errors.js";
import type { ListPage } from "../lists.js";
import type { CallResponse } from "../responses.js";
import { createLane, createTask, type Task } from "../scheduler.js";

/** The part of a response that an audit needs. */
export type DurableResponse = Pick<CallResponse, "body" | "attempts" | "reconciled">;

/** The part of a page of the account's list of reports that an audit needs. */
export type PageOfReports = Pick<ListPage<Pick<CallResponse, "headers" | "body">>, "records" | "response"> &
  Partial<Pick<ListPage, "total" | "truncated">>;

export interface DurableOptions extends Durable {
  /** The step of the request. It becomes the task of the request, on which the scheduler marks a lost response. */
  task?: Pick<Task, "isLost"> | undefined;
}

/** The service, as an audit needs it. All requests keep to its budget. Rejects with an SeoError. */
export interface Requests {
  /** The place of the service: origin and path. */
  readonly service: string;
  request(type: string, input: Record<string, string>, options?: DurableOptions): Promise<DurableResponse>;
  /** Reads a list, a page at a time, each only when it is needed. */
  pages(type: string, input: Record<string, string>): AsyncIterable<PageOfReports>;
  /** Says that reports belong to pages since `age` milliseconds at least: no lost request created them. */
  claim(ids: readonly string[], age: number): void;
  /** Says that reports will be claimed. Returns what says that they are. */
  announceClaims(): () => void;
  /** Milliseconds for which no request can start; 0 while one is in flight. */
  waitingFor(): number;
  /** Ends everything that is in flight or waits, with SEO_CANCELLED. */
  cancel(): void;
}

export const STORE = "seo-report-store";
export const LIST = "seo-report-list";

/**
 * The requests of a client, of which `share` are in flight at most. They belong to one lane, whose end cancels them, and need no
 * admission. `changed` is called when a response is lost or found.
 */
export function requestsOf(client: Client, share: number, changed: () => void): Requests {
  const lane = createLane(share);
  lane.changed = changed;
  return {
    service: client.base,
    request: (type, input, { task = {}, ...durable } = {}) =>
      client.request(type, input, { task: Object.assign(task, createTask(lane)), durable }),
    pages: (type, input) => client.pages(type, input, { task: createTask(lane) }),
    claim: client.claim,
    announceClaims: client.announceClaims,
    waitingFor: () => (lane.running > 0 ? 0 : Math.max(0, client.waitingFor(lane))),
    cancel: () => client.cancel(lane),
  };
}

/** An error as it is reported and kept. The response's body is not kept. */
export function toJSON(error: SeoError): { code: string; message: string } {
  const { body: _, ...rest } = error.toJSON();
  return rest;
}

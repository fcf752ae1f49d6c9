/** Every code that a failure can have, with the status (remedy first, at most 40 characters) and what it means. */
export const codes = {
  SEO_CONFIG: {
    status: "complete the service node",
    help: "The service node is missing or incomplete: no base URL, no API key, an environment variable that is not set, or a value that is not allowed.",
  },
  SEO_INPUT: {
    status: "check the message",
    help: "A parameter has a value that it may not have. Nothing was sent.",
  },
  SEO_UNAUTHORIZED: {
    status: "check the API key",
    help: "The service does not know the API key (401). Copy it again from the account, or see whether a proxy drops the Authorization header.",
  },
  SEO_FORBIDDEN: {
    status: "check the plan and the owner",
    help: "The account may not do this (403): its plan has no API, or the report is not its own.",
  },
  SEO_NOT_FOUND: {
    status: "check the id and the base URL",
    help: "There is no such report or project (404), or the base URL is not the service's.",
  },
  SEO_REJECTED: {
    status: "see msg.seo.error.fields",
    help: "The service refused the request (422 or another 4xx); fields holds its messages by field. It also says so when the account's quota is used up.",
  },
  SEO_RATE_LIMITED: {
    status: "wait, or lower the rate",
    help: "Too many requests (429). retryAfter is the number of seconds that the service asked to wait.",
  },
  SEO_SERVER: {
    status: "try later: the service failed",
    help: "The service or a server in front of it failed (5xx). A store may fail so because its page could not be fetched.",
  },
  SEO_NETWORK: {
    status: "check the network and the base URL",
    help: "The service could not be reached, or the connection broke: name, connection, TLS, proxy or reset.",
  },
  SEO_TIMEOUT: {
    status: "raise the time-out or try later",
    help: "An attempt took longer than the time-out allows. If uncertain is true, look before you send it again.",
  },
  SEO_RESPONSE: {
    status: "check the base URL",
    help: "The answer is not what the service gives: no JSON, a redirect, too large, or too deep.",
  },
  SEO_QUEUE_FULL: {
    status: "send slower: the queue is full",
    help: "More messages wait than the service node's queue allows. Nothing was sent.",
  },
  SEO_CANCELLED: {
    status: "cancelled",
    help: "A redeploy ended the request while it was running.",
  },
} as const satisfies Record<string, { status: string; help: string }>;

export type Code = keyof typeof codes;

/** What is known of a failure beside its code and message. */
export interface Details {
  /** The HTTP status, where there was an answer. */
  statusCode?: number;
  /** The service's messages by field (both shapes of a 422). */
  fields?: Record<string, string[]>;
  /** Seconds that the service asked to wait. */
  retryAfter?: number;
  /** Requests that were sent for it. */
  attempts?: number;
  /** The service may have done what was asked although it failed. */
  uncertain?: boolean;
  /** The service's answer: JSON, or the beginning of a text. */
  body?: unknown;
}

/** The one error of this package. Built fresh: it has no cause, no headers and no address with a query. */
export class SeoError extends Error {
  override readonly name = "SeoError";
  readonly code: Code;
  readonly details: Details;

  constructor(code: Code, message: string, details: Details = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }

  /** Node-RED shows `String(error)`; the class's name would only stand in the way. */
  override toString(): string {
    return this.message;
  }

  with(details: Details): SeoError {
    return new SeoError(this.code, this.message, { ...this.details, ...details });
  }
}

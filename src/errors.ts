/** Every code that a failure can have, with the status (remedy first, at most 40 characters) and what it means. */
export const codes = {
  SEO_CONFIG: {
    status: "complete the service node",
    help: "The service node is missing or incomplete: no base URL, no API key, an environment variable that is not set, or a value that is not allowed.",
  },
  SEO_INPUT: {
    status: "check the message",
    help: "A parameter, or the message itself, cannot be used. If attempts is 0, nothing was sent.",
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
    status: "see msg.seo.error",
    help: "The service refused the request (422 or another 4xx); fields holds its messages by field. It also says so when the account's quota is used up.",
  },
  SEO_RATE_LIMITED: {
    status: "wait, or lower the rate",
    help: "Too many requests (429). retryAfter is the number of seconds that the service asked to wait.",
  },
  SEO_SERVER: {
    status: "try later, the service failed",
    help: "The service or a server in front of it failed (5xx). Storing a report may fail so because its page could not be fetched.",
  },
  SEO_NETWORK: {
    status: "check the network and the base URL",
    help: "The service could not be reached, or the connection broke. The cause is its name, the network, TLS or a proxy.",
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
    status: "send slower, the queue is full",
    help: "More messages wait than the service node's queue allows. Nothing was sent.",
  },
  SEO_CANCELLED: {
    status: "cancelled",
    help: "A redeploy ended the request while it was running.",
  },
} as const satisfies Record<string, { status: string; help: string }>;

export type Code = keyof typeof codes;

/** Where a request can stop, each with what to do about it. */
export const stages = {
  config: "Complete the service's node.",
  name: "Check the host name in the base URL.",
  connect: "Check the host and the port in the base URL, and whether the service runs.",
  tls: "Check https and http in the base URL, or choose a TLS configuration that knows the certificate.",
  proxy: "Check the proxy's address, user name and password.",
  time: "Try again later, or raise the time-out.",
  redirect: "Write the base URL as the service wants it: https, host and path.",
  key: "Check the API key, and whether the account's plan includes the API.",
  path: "Check the path in the base URL: it is what comes before /api/v1.",
  answer: "Check the base URL: what answers there is not the service.",
  service: "Try again later: the address and the key are not the cause.",
  done: "The service answers, and knows the key.",
} as const;

export type Stage = keyof typeof stages;

/** What is known of a failure beside its code and message. */
export interface Details {
  /** The HTTP status, where there was an answer. */
  statusCode?: number | undefined;
  /** The service's messages by field (both shapes of a 422). */
  fields?: Record<string, string[]> | undefined;
  /** Seconds that the service asked to wait. */
  retryAfter?: number | undefined;
  /** Requests that were sent for it. */
  attempts?: number | undefined;
  /** The service may have done what was asked although it failed. */
  uncertain?: boolean | undefined;
  /** The service's answer: JSON, or the beginning of a text. */
  body?: unknown;
  /** Another attempt may succeed. */
  transient?: boolean | undefined;
  stage?: Stage | undefined;
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

  /** What a flow reads as `msg.seo.error`. */
  toJSON() {
    const { statusCode, fields, retryAfter, attempts = 0, uncertain = false, body } = this.details;
    return { code: this.code, message: this.message, statusCode, fields, retryAfter, attempts, uncertain, body };
  }
}

export const cancelled = new SeoError("SEO_CANCELLED", "The request was cancelled by a redeploy.");

type Fault = [code: Code, sentence: string, details: Details];

const notSent = { transient: true, uncertain: false };
const broken: Fault = ["SEO_NETWORK", "the connection broke", { stage: "connect", transient: true, uncertain: true }];
const unreachable: Fault = ["SEO_NETWORK", "no way leads there", { stage: "connect", ...notSent }];
const unknownName: Fault = ["SEO_NETWORK", "its name cannot be looked up", { stage: "name", ...notSent }];
const malformed = (sentence: string): Fault => ["SEO_RESPONSE", sentence, { stage: "answer", uncertain: true }];

/** What undici and Node call a fault, and what it means: whether it was sent, and whether to try again. */
const faults = new Map<unknown, Fault>(
  Object.entries({
    ECONNREFUSED: ["SEO_NETWORK", "nothing listens there", { stage: "connect", ...notSent }],
    ENOTFOUND: unknownName,
    EAI_AGAIN: unknownName,
    ENETUNREACH: unreachable,
    EHOSTUNREACH: unreachable,
    EADDRNOTAVAIL: unreachable,
    UND_ERR_CONNECT_TIMEOUT: [
      "SEO_TIMEOUT",
      "it did not accept a connection in time",
      { stage: "connect", ...notSent },
    ],
    UND_ERR_PRX_CONN: ["SEO_NETWORK", "the proxy does not connect to it", { stage: "proxy", ...notSent }],
    ECONNRESET: broken,
    EPIPE: broken,
    ETIMEDOUT: broken,
    UND_ERR_SOCKET: broken,
    UND_ERR_HEADERS_TIMEOUT: [
      "SEO_TIMEOUT",
      "it did not answer in time",
      { stage: "time", transient: true, uncertain: true },
    ],
    UND_ERR_HEADERS_OVERFLOW: malformed("its answer's headers are too large"),
    UND_ERR_RES_EXCEEDED_MAX_SIZE: malformed("its answer is larger than 16 MiB"),
    UND_ERR_RES_CONTENT_LENGTH_MISMATCH: malformed("its answer has another length than it says"),
    ERR_BUFFER_TOO_LARGE: malformed("its answer is larger than 64 MiB when decoded"),
  } satisfies Record<string, Fault>),
);

/** The same where there are more names than can be listed: by the error's name and code. */
const patterns: [pattern: RegExp, fault: Fault][] = [
  [/^HTTPParserError/, malformed("it does not speak HTTP")],
  [/\b(Z_|ERR__|ERR_BROTLI)/, malformed("its answer cannot be decoded")],
  [
    /CERT|SSL|TLS|SELF_SIGNED|\bUNABLE_TO|EPROTO/,
    [
      "SEO_NETWORK",
      "its TLS certificate or protocol is not accepted; choose a TLS configuration, or check http and https",
      { stage: "tls" },
    ],
  ],
];

/** Turns whatever was thrown while asking `origin` into a SeoError. Never quotes the cause, which may hold secrets. */
export function fromCause(cause: unknown, origin: string): SeoError {
  if (cause instanceof SeoError) return cause;
  const { code, name } = Object(cause) as { code?: unknown; name?: unknown };
  const said = [name, code].filter((part) => typeof part === "string").join(" ");
  const known = faults.get(code) ?? patterns.find(([pattern]) => pattern.test(said))?.[1];
  const [seoCode, sentence, details] = known ?? broken;
  const reason = typeof code === "string" && /^[A-Z_]{3,40}$/.test(code) ? ` (${code})` : "";
  return new SeoError(seoCode, `The service at ${origin} could not be asked: ${sentence}${reason}.`, details);
}

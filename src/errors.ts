/** Every error code, with its status (condition first, at most 40 characters) and its meaning. */
export const codes = {
  SEO_CONFIG: {
    status: "configuration invalid, open the node",
    help: "A setting is missing or invalid, such as the API key, an environment variable, or a package that a queue needs.",
  },
  SEO_INPUT: {
    status: "invalid input",
    help: "A parameter, the message, a folder or a context store cannot be used. If attempts is 0, no request was sent.",
  },
  SEO_UNAUTHORIZED: { status: "invalid API key, enter it again", help: "The service rejected the API key (401)." },
  SEO_FORBIDDEN: {
    status: "not allowed, check plan and ownership",
    help: "The account's plan does not include the API, or the report belongs to another account (403).",
  },
  SEO_NOT_FOUND: {
    status: "not found, check input and base URL",
    help: "The report or project does not exist (404), or the base URL is wrong.",
  },
  SEO_REJECTED: {
    status: "rejected, see msg.seo.error",
    help: "The service rejected the request (4xx), also because of an exhausted quota. fields has its messages.",
  },
  SEO_RATE_LIMITED: {
    status: "rate limited, retry later",
    help: "Too many requests (429). retryAfter has the seconds to wait, if the service returned them.",
  },
  SEO_SERVER: {
    status: "service error, retry later",
    help: "The service failed (5xx), for example because it could not fetch the page.",
  },
  SEO_NETWORK: {
    status: "connection failed, check the service",
    help: "The service or the server of a queue could not be reached, or the connection was lost.",
  },
  SEO_TIMEOUT: { status: "timed out, retry later", help: "No response in time." },
  SEO_RESPONSE: {
    status: "unexpected response, check base URL",
    help: "The response is not valid: not JSON, a redirect, too large, or nested too deeply.",
  },
  SEO_QUEUE_FULL: {
    status: "queue full, send more slowly",
    help: "The queue of the SEO service node is full. No request was sent.",
  },
  SEO_CANCELLED: { status: "canceled", help: "A redeploy stopped the request." },
} as const satisfies Record<string, { status: string; help: string }>;

export type Code = keyof typeof codes;

type SetupStage = "config" | "variable" | "stored" | "node" | "package" | "version" | "clock";
type RequestStage = "name" | "connect" | "tls" | "proxy" | "time" | "redirect" | "key" | "path" | "answer" | "service";
/** The stages that a connection test can reach. The editor has a sentence for each, by config node. */
export type Stage = SetupStage | RequestStage | "unknown" | "done";

/** The client's own facts about an error. They decide what happens next, and are never redacted. */
interface Facts {
  /** The HTTP status, if there was a response. */
  statusCode?: number | undefined;
  /** Seconds to wait, as the service returned them. */
  retryAfter?: number | undefined;
  /** Requests that were sent. */
  attempts?: number | undefined;
  /** The request may have taken effect although it failed. */
  uncertain?: boolean | undefined;
  /** The reports that may be the one that was requested, if that is uncertain. */
  candidates?: { id: unknown; url: unknown; created_at: unknown }[] | undefined;
  /** The service itself, and not a server in front of it, says that the record does not exist. */
  missing?: boolean | undefined;
  /** Another attempt can succeed. */
  transient?: boolean | undefined;
  /** The names of the invalid parameters, in the order of the message. */
  params?: string[] | undefined;
  stage?: Stage | undefined;
  /** The type of the config node that is incomplete or invalid. */
  place?: string | undefined;
  /** The placeholders of the editor's sentence about the stage: a variable's name, the target of a redirect. */
  values?: Record<string, string> | undefined;
}

/** The service's words, as is the message of its errors: redacted once, where they enter (http/response.ts). */
interface Words {
  /** Its messages by field (both shapes of a 422). */
  fields?: Record<string, string[]> | undefined;
  /** The response: JSON, or the beginning of a text. */
  body?: unknown;
}

export interface Details extends Facts, Words {}

/** A text without what could forge a line of a log, or the order of its words: control characters become spaces. */
export const oneLine = (text: string) => text.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu, " ");

/** The one error of this package. It is built anew: without a cause, headers, or a URL with a query. */
export class SeoError extends Error {
  override readonly name = "SeoError";

  constructor(
    readonly code: Code,
    message: string,
    readonly details: Details = {},
  ) {
    super(oneLine(message));
  }

  /** Node-RED shows `String(error)`, which would begin with the class's name. */
  override toString(): string {
    return this.message;
  }

  with(details: Details): SeoError {
    return new SeoError(this.code, this.message, { ...this.details, ...details });
  }

  get statusCode() {
    return this.details.statusCode;
  }
  get fields() {
    return this.details.fields;
  }
  get retryAfter() {
    return this.details.retryAfter;
  }
  get attempts() {
    return this.details.attempts ?? 0;
  }
  get uncertain() {
    return this.details.uncertain ?? false;
  }
  get candidates() {
    return this.details.candidates;
  }
  get body() {
    return this.details.body;
  }

  /** The value of `msg.seo.error`. */
  toJSON() {
    const { code, message, statusCode, fields, retryAfter, attempts, uncertain, candidates, body } = this;
    return { code, message, statusCode, fields, retryAfter, attempts, uncertain, candidates, body };
  }
}

/** The error of invalid parameters: a sentence for each. */
export const invalidParams = (sentences: Record<string, string>, code: Code = "SEO_INPUT") =>
  new SeoError(code, Object.values(sentences).join(" "), { params: Object.keys(sentences) });

export const cancelled = new SeoError("SEO_CANCELLED", "The request was canceled: its node or client was closed.");

/** Ends a text as a sentence, because the service's own may have no period. */
export const sentenceOf = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);

type Meaning = [code: Code, sentence: string, details: Details];

const connecting = { stage: "connect", transient: true } as const;
const lost: Meaning = ["SEO_NETWORK", "the connection was lost", connecting];
const connectTimeout: Meaning = ["SEO_TIMEOUT", "timed out while connecting", connecting];
const malformed = (sentence: string): Meaning => ["SEO_RESPONSE", sentence, { stage: "answer" }];

/** The meanings of errors of undici and Node, by their names and codes. The connection was lost if there is none. */
const meanings: [pattern: RegExp, meaning: Meaning][] = [
  [/ECONNREFUSED/, ["SEO_NETWORK", "connection refused", connecting]],
  [/ENOTFOUND|EAI_AGAIN/, ["SEO_NETWORK", "the host name could not be resolved", { stage: "name", transient: true }]],
  [/ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL/, ["SEO_NETWORK", "the host is unreachable", connecting]],
  [/UND_ERR_CONNECT_TIMEOUT/, connectTimeout],
  [
    /UND_ERR_PRX_CONN/,
    ["SEO_NETWORK", "could not connect through the proxy", { stage: "proxy", transient: true, uncertain: false }],
  ],
  [/UND_ERR_HEADERS_OVERFLOW/, malformed("the response headers are too large")],
  [/UND_ERR_RES_EXCEEDED_MAX_SIZE/, malformed("the response is larger than 16 MiB")],
  [/UND_ERR_RES_CONTENT_LENGTH_MISMATCH/, malformed("the length of the response does not match its Content-Length")],
  [/ERR_BUFFER_TOO_LARGE/, malformed("the decompressed response is larger than 16 MiB")],
  [/^HTTPParserError/, malformed("the response is not valid HTTP")],
  [/\b(Z_|ERR__|ERR_BROTLI)/, malformed("the response could not be decompressed")],
  [
    /CERT|SSL|TLS|SELF_SIGNED|\bUNABLE_TO|EPROTO/,
    ["SEO_NETWORK", "the TLS certificate or protocol was not accepted", { stage: "tls" }],
  ],
];

/**
 * Turns whatever was thrown by a request to `origin` into an SeoError. Never quotes the cause, which can hold secrets. `begun`:
 * the connection was made, and the request may have been sent. The same code can come before and after.
 */
export function fromCause(cause: unknown, origin: string, begun = false): SeoError {
  if (cause instanceof SeoError) return cause;
  const { code, name, syscall, errors } = Object(cause) as Record<string, unknown>;
  const said = [name, code].filter((part) => typeof part === "string").join(" ");
  // If a host has several addresses, Node collects their errors and omits the system call.
  const isConnecting = syscall === "connect" || Array.isArray(errors);
  const known =
    code === "ETIMEDOUT" && isConnecting ? connectTimeout : meanings.find(([pattern]) => pattern.test(said))?.[1];
  const [seoCode, sentence, details] = known ?? lost;
  // The codes of undici add nothing to the sentence; those of the system and of TLS do.
  const isCode = typeof code === "string" && /^(?!UND_|ERR_BUFFER)[A-Z_]{3,40}$/.test(code);
  const reason = isCode ? ` (${code})` : "";
  return new SeoError(seoCode, `The request to ${origin} failed: ${sentence}${reason}.`, {
    uncertain: begun,
    ...details,
  });
}

export type Headers = Record<string, string | string[] | undefined>;

/** A success. */
export interface Response {
  statusCode: number;
  headers: Headers;
  /** The JSON of the response; null if it is empty. */
  body: unknown;
}

/** A response, and what it took to get it. */
export interface CallResponse extends Response {
  /** Requests that were sent, those that looked for an existing report included. */
  attempts: number;
  /** Milliseconds from the call to the response, and those of them in which no attempt was in flight. */
  duration: number;
  waited: number;
  /** The response was lost, and the outcome was looked up: looks that it took, and milliseconds since the request was sent. */
  reconciled?: { looks: number; after: number };
  /** A delete found nothing to delete after an attempt whose outcome was unknown. */
  alreadyDeleted?: true;
  /** The outcome of `seo-report-store`. */
  outcome?: "created" | "regenerated" | "fresh";
}

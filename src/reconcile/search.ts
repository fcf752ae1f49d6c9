import type { Details, SeoError } from "../errors.js";
import type { Response } from "../http/transport.js";
import { isObject, type Json } from "../json.js";
import type { Lookup } from "../operations.js";
import { REPEAT, type Verdict } from "./verdict.js";
import type { Intent, Watermark } from "./watermark.js";

/** An open request: not sent yet, in flight, or with its response lost. */
export interface OpenRequest extends Intent {
  lookup: Lookup;
  input: Record<string, string>;
  /** The page, or the report of an update. */
  page: string;
  /** When it was sent, in milliseconds that only rise. */
  sentAt: number;
  /** Resolves when the response of what is in flight arrived or was lost. */
  settled?: Promise<void>;
  /** From when the service does not work on it any more; known once its response was lost. */
  horizonAt?: number;
}

/** The reports that may be the one that was requested. */
type Candidates = NonNullable<Details["candidates"]>;

/** The verdict of a look, with the response if the report was found. */
export type LookResult = Exclude<Verdict, { was: "carried out" }> | { was: "carried out"; response: Response };

/** The end of a request whose response was lost. `after`: milliseconds since it was sent. */
export type Fate =
  | { was: "carried out"; response: Response; reconciled: { looks: number; after: number } }
  /** `again` is false if the service itself rejected the page: the same request would fail again. */
  | { was: "not carried out"; again: boolean }
  | { was: "undecided"; candidates: Candidates };

const SECOND = 1000;
/** When to look, after a response was lost. */
const LOOKS = [5, 15, 30, 60, 120].map((seconds) => seconds * SECOND);
/** An application that has responded no longer works on the request. */
const AFTER_RESPONSE = 2 * SECOND;
/** A deciding look takes place so often if it fails or is put off. */
const MOST_FAILURES = 10;

const MOST_CANDIDATES = 10;

export const toCandidates = (records: Json[]): Candidates =>
  records.slice(-MOST_CANDIDATES).map(({ id, url, created_at }) => ({ id, url, created_at }));

/** The search for what became of one request: when to look, and what the looks so far have shown. */
export class Search {
  readonly request: OpenRequest;
  /** The newest report before the last look: the next one reads only newer reports. The deciding look reads everything. */
  seen: Watermark | undefined;
  /** The addresses for which the decision was put off. */
  doubted: ReadonlySet<string> | undefined;
  /** The date of an updated report at the first look. */
  dateAtFirst: string | undefined;
  readonly fate: Promise<Fate>;
  isOver = false;
  /** The service itself rejected the page. */
  readonly #isRejected: boolean;
  #resolve!: (fate: Fate) => void;
  /** When to look, soonest first; the last look decides. */
  #due: number[];
  #looks = 0;
  #failures = 0;
  #isLooking = false;

  constructor(request: OpenRequest, { details: { statusCode, body } }: SeoError, horizon: number, now: number) {
    this.request = request;
    this.fate = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#isRejected = statusCode === 500 && isObject(body);
    const last = this.#isRejected ? now + AFTER_RESPONSE : Math.max(now, request.sentAt + horizon);
    const early = this.#isRejected ? [] : LOOKS.map((delay) => now + delay).filter((time) => time < last);
    this.#due = [...early, last];
    request.horizonAt = last;
  }

  /** The next look began after the horizon, so it can prove that the request had no effect. */
  get decides(): boolean {
    return this.#due.length === 1;
  }

  /** The newest report that the next look need not read. */
  get readTo(): Watermark | undefined {
    return (this.decides ? undefined : this.seen) ?? this.request.watermark;
  }

  /** Begins a look if one is due; of several, the last one. */
  begin(now: number): boolean {
    if (this.#isLooking || Number(this.#due[0]) > now) return false;
    while (Number(this.#due[1]) <= now) this.#due.shift();
    this.#isLooking = true;
    return true;
  }

  /** Ends a look. */
  apply(result: LookResult, now: number): void {
    this.#isLooking = false;
    this.#looks++;
    this.#due.shift();
    if (result.was === "carried out") {
      const reconciled = { looks: this.#looks, after: Math.round(now - this.request.sentAt) };
      this.#end({ ...result, reconciled });
    } else if (result.was === "undecided") this.#end({ was: "undecided", candidates: toCandidates(result.records) });
    // A rejected request is not retried: its error need not wait.
    else if (result.was === "put off" && !this.#isRejected) this.#repeat(result.until);
    else if (result.was === "not carried out" || result.was === "put off")
      this.#end({ was: "not carried out", again: !this.#isRejected });
  }

  /** Ends a look that failed, which proves nothing. */
  fail(now: number): void {
    this.#isLooking = false;
    if (this.decides) this.#repeat(now + REPEAT);
    else this.#due.shift();
  }

  #repeat(at: number): void {
    if (++this.#failures < MOST_FAILURES) this.#due = [at];
    else this.#end({ was: "undecided", candidates: [] });
  }

  #end(fate: Fate): void {
    this.isOver = true;
    this.#resolve(fate);
  }
}

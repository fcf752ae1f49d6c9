import type { Details, SeoError } from "../errors.js";
import { isObject, type Json } from "../json.js";
import type { Response } from "../responses.js";
import { isRestored, type Knowledge, look, type Search, type TrackedRequest } from "./look.js";
import { REPEAT } from "./verdict.js";

/** The reports that may be the one that was requested. */
type Candidates = NonNullable<Details["candidates"]>;

/** The end of a request whose response was lost. `after`: milliseconds since it was sent. */
export type Fate =
  | { was: "carried out"; response: Response; reconciled: { looks: number; after: number } }
  /** `again` is false if the service itself rejected the page: the same request would fail again. */
  | { was: "not carried out"; again: boolean }
  | { was: "undecided"; candidates: Candidates };

const SECOND = 1000;
/** When to look, after a response was lost. */
const FIRST = 5 * SECOND;
const LOOKS = [FIRST, ...[15, 30, 60, 120].map((seconds) => seconds * SECOND)];
/** An application that has responded no longer works on the request. */
const AFTER_RESPONSE = 2 * SECOND;
/** A deciding look takes place so often if it fails or is put off. */
const MOST_FAILURES = 10;
/** The request can end meanwhile, and a timer has a longest time. */
const LONGEST_SLEEP = 10 * SECOND;

const MOST_CANDIDATES = 10;

export const toCandidates = (records: Json[]): Candidates =>
  records.slice(-MOST_CANDIDATES).map(({ id, url, created_at }) => ({ id, url, created_at }));

/** The service itself rejected the page. Such a request is not retried: its error need not wait. */
export const isRejection = ({ details: { statusCode, body } }: SeoError): boolean =>
  statusCode === 500 && isObject(body);

/**
 * Looks for what became of a request until that is known, or the request has ended. `error` says why its response was lost, `horizon`
 * is in milliseconds after sending.
 */
export async function searchFor(
  knowledge: Knowledge,
  request: TrackedRequest,
  error: SeoError,
  horizon: number,
): Promise<Fate> {
  const { tracked, now, sleep, claimed } = knowledge;
  const isRejected = isRejection(error);
  const isEarlier = isRestored(request);
  if (isEarlier) {
    // Such a request may have taken effect long ago, and so may those of others: without their claims, its horizon begins anew.
    const late = sleep(Math.min(FIRST, horizon)).then(() => true);
    if (await Promise.race([claimed().then(() => false), late])) request.sentAt = now();
  }
  const lostAt = now();
  const horizonAt = isRejected ? lostAt + AFTER_RESPONSE : Math.max(lostAt, request.sentAt + horizon);
  const delays = isEarlier ? [0, ...LOOKS] : LOOKS;
  const early = isRejected ? [] : delays.map((delay) => lostAt + delay).filter((time) => time < horizonAt);
  request.horizonAt = horizonAt;
  const search: Search = { request };
  const due = [...early, horizonAt];
  let looks = 0;
  for (let failures = 0; failures < MOST_FAILURES; ) {
    const left = () => Number(due[0]) - now();
    for (let ms = left(); tracked.has(request) && ms > 0; ms = left()) await sleep(Math.min(ms, LONGEST_SLEEP));
    if (!tracked.has(request)) break;
    // Of several that are due, only the last look takes place.
    while (Number(due[1]) <= now()) due.shift();
    due.shift();
    const decides = due.length === 0;
    const verdict = await look(knowledge, search, decides).catch(() => undefined);
    if (verdict) looks++;
    if (verdict?.was === "carried out")
      return { ...verdict, reconciled: { looks, after: Math.round(now() - request.sentAt) } };
    if (verdict?.was === "undecided") return { was: "undecided", candidates: toCandidates(verdict.records) };
    if (verdict?.was === "not carried out" || (verdict?.was === "put off" && isRejected))
      return { was: "not carried out", again: !isRejected };
    if (!decides) continue;
    failures++;
    due.push(verdict?.was === "put off" ? verdict.until : now() + REPEAT);
  }
  return { was: "undecided", candidates: [] };
}

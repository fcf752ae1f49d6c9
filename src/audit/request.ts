import { SeoError } from "../errors.js";
import { idOf, isReport, reportsIn, unwrap } from "../records.js";
import { type Requests, STORE, toJSON } from "./requests.js";
import type { Claim, Ended, Sent } from "./store.js";
import { Trouble } from "./trouble.js";

/** What happens to a request until its outcome is known. */
interface RequestHooks {
  /** It waits to be sent, also once more after its response was lost. */
  permit(): Promise<void>;
  /** It is about to be sent. If this rejects, it is not. */
  sending(sent: Sent): Promise<void>;
  /** Its response was lost. */
  lost(): void;
}

/** How a page's request ended, and the report. */
export interface End {
  ended: Ended;
  record: unknown;
}

const UPDATE = "seo-report-update";
const SHOW = "seo-report-show";

function reportOf(body: unknown): object | null {
  return reportsIn(body)[0] ?? (unwrap(body) as object | null) ?? null;
}

/** Sends a page's request, or looks for one that was sent before. Rejects only as `sending` does. */
export async function sendRequest(requests: Requests, claim: Claim, hooks: RequestHooks): Promise<End> {
  const { url, settings, request } = claim;
  const { privacy } = settings;
  const { sent, report, generatedAt } = request;
  const creates = sent === "create";
  const input = creates ? { url } : { reportId: String(report), update: "1" };
  let refused: unknown;
  async function sending(intent: Sent["intent"]): Promise<void> {
    await hooks.sending({ sent, report, generatedAt, intent }).catch((cause) => {
      refused = cause;
      throw cause;
    });
  }
  try {
    const options = { intent: request.intent, generatedAt, permit: hooks.permit, lost: hooks.lost, sending };
    const answer = await requests.send(creates ? STORE : UPDATE, { ...input, ...(privacy && { privacy }) }, options);
    const { body, attempts, reconciled } = answer;
    const record = reportOf(body);
    const id = isReport(record) ? idOf(record) : report;
    return { ended: { ended: creates ? "created" : "regenerated", report: id, attempts, reconciled }, record };
  } catch (cause) {
    if (refused !== undefined) throw refused;
    if (!(cause instanceof SeoError) || cause instanceof Trouble) throw cause;
    // The report was deleted since the plan was made.
    if (!creates && cause.details.missing)
      return sendRequest(requests, { ...claim, request: { sent: "create" } }, hooks);
    const { attempts = 0, uncertain = false } = cause.details;
    return { ended: { ended: uncertain ? "uncertain" : "failed", attempts, error: toJSON(cause) }, record: null };
  }
}

/** Gets the report of a page that ended in an earlier process; null if it was deleted. */
export async function showReport(requests: Requests, { report, error }: Ended): Promise<unknown> {
  if (report === undefined || error) return null;
  try {
    return reportOf((await requests.send(SHOW, { reportId: report })).body);
  } catch (cause) {
    if (cause instanceof SeoError && cause.details.missing) return null;
    throw cause;
  }
}

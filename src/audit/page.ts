import { setImmediate as breathe } from "node:timers/promises";
import { SeoError } from "../errors.js";
import type { Json } from "../json.js";
import { idOf, reportIn } from "../records.js";
import { isAccounts } from "./breaker.js";
import type { Ended, PageRequest } from "./entries.js";
import { type DurableOptions, type Requests, STORE, toJSON } from "./requests.js";
import { Refusal } from "./trouble.js";

/** How a page ended, and its report or null. */
export interface End {
  ended: Ended;
  record: unknown;
}

const UPDATE = "seo-report-update";
const SHOW = "seo-report-show";

/**
 * Sends a page's request, or looks for one that was sent before. `beforeAttempt` is awaited before it is sent. Rejects as
 * that does, or if the request is canceled.
 */
export async function requestPage(
  requests: Requests,
  { url, privacy }: { url: string; privacy: string | undefined },
  request: PageRequest,
  { task, beforeAttempt }: { task: DurableOptions["task"]; beforeAttempt(request: PageRequest): Promise<void> },
): Promise<End> {
  const { action, report, generatedAt, intent } = request;
  const creates = action === "create";
  const input = creates ? { url } : { reportId: String(report), update: "1" };
  try {
    const { body, attempts, reconciled } = await requests.request(
      creates ? STORE : UPDATE,
      { ...input, ...(privacy && { privacy }) },
      {
        task,
        intent,
        generatedAt,
        beforeAttempt: (intent) => beforeAttempt({ action, report, generatedAt, intent }),
      },
    );
    // The client counts a response without one as lost.
    const record = reportIn(body) as Json;
    const outcome = creates ? "created" : "regenerated";
    return { ended: { outcome, report: idOf(record), attempts, reconciled }, record };
  } catch (cause) {
    if (!(cause instanceof SeoError) || cause instanceof Refusal || cause.code === "SEO_CANCELLED") throw cause;
    // The report was deleted since the plan was made.
    if (!creates && cause.details.missing)
      return requestPage(requests, { url, privacy }, { action: "create" }, { task, beforeAttempt });
    const { attempts = 0, uncertain = false } = cause.details;
    // If nothing was sent, it is as uncertain as before, and only the error of that time says why.
    const known = uncertain && attempts === 0 && request.error;
    const { candidates } = cause;
    const error = { ...toJSON(cause), ...known, ...(candidates && { candidates }) };
    return { ended: { outcome: uncertain ? "uncertain" : "failed", attempts, error }, record: null };
  }
}

/** The end of a page that was sent to another service, where nobody looks for it any more. */
export function endElsewhere(): End {
  const sentence = "The base URL was changed before the response was received. msg.retry requests the page again.";
  const error = toJSON(new SeoError("SEO_NETWORK", sentence, { uncertain: true }));
  return { ended: { outcome: "uncertain", attempts: 0, error }, record: null };
}

/**
 * Gets the report of a page that has ended before; null if there is none, or it cannot be read. Rejects if that is because of
 * the account.
 */
export async function showReport(requests: Requests, { report, error }: Ended): Promise<unknown> {
  if (report === undefined || error) {
    // There can be thousands of them.
    await breathe();
    return null;
  }
  try {
    return reportIn((await requests.request(SHOW, { reportId: report })).body) ?? null;
  } catch (cause) {
    if (cause instanceof SeoError && (cause.code === "SEO_CANCELLED" || isAccounts(cause))) throw cause;
    return null;
  }
}

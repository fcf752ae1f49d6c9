import { cancelled, SeoError, sentenceOf } from "../src/errors.js";
import { type ListPage, readPages, type Shape } from "../src/lists.js";
import type { Operation } from "../src/operations.js";
import type { CallResponse } from "../src/responses.js";
import type { MessageTask } from "./handler.js";

/** The place of a response in a list. */
type Position = Partial<Pick<Shape, "page" | "pages" | "total"> & Pick<ListPage, "truncated">>;

/** The attempts of a message, and milliseconds since it was received, and those of them without a request in flight. */
type Effort = Pick<CallResponse, "attempts" | "duration" | "waited">;

/** `msg.seo`. */
export type Metadata = Partial<Effort> & Record<string, unknown>;

/** The `msg.seo` of a response, with its place in a list if that is known. */
export function metadata(operation: string, response: CallResponse, effort: Effort, position: Position = {}) {
  const { attempts, duration, waited } = effort;
  const { statusCode, headers, outcome, reconciled, alreadyDeleted } = response;
  const { page, pages, total, truncated } = position;
  // Without spreads, because an object that consists of others is slow to create and slow to read.
  const seo: Metadata = { operation, statusCode, headers, attempts, duration, waited };
  if (outcome !== undefined) seo.outcome = outcome;
  if (reconciled !== undefined) seo.reconciled = reconciled;
  if (alreadyDeleted !== undefined) seo.alreadyDeleted = alreadyDeleted;
  if (page !== undefined) seo.page = page;
  if (pages !== undefined) seo.pages = pages;
  if (total !== undefined) seo.total = total;
  if (truncated !== undefined) seo.truncated = truncated;
  return seo;
}

/**
 * Reads every page of a list, each with the `msg.seo` of all pages so far, those of an earlier reading included, and shows the progress
 * in the status.
 */
export async function* readAllPages(
  task: MessageTask,
  type: string,
  row: Operation,
  { attempts = 0, waited = task.elapsed() }: Partial<Effort> = {},
): AsyncGenerator<ListPage<CallResponse> & { count: number; seo: Metadata }> {
  const { client, settings, input } = task;
  let count = 0;
  let pages = 0;
  const largest = Object.keys(row.params.per_page?.values ?? {}).at(-1);
  const query = { ...(largest && { per_page: largest }), ...input };
  const get = (extra: Record<string, string>) => client.request(type, query, { task, extra });
  const list = { id: row.list ?? "id", limit: Number(settings.limit ?? 0), ahead: client.concurrency };
  try {
    for await (const page of readPages(get, query, list)) {
      attempts += page.response.attempts;
      waited += page.response.waited;
      // Between pages nothing may be in flight that a cancellation would end.
      if (task.lane.closed) throw cancelled;
      count += page.records.length;
      pages = page.page;
      task.progress(page.page, page.pages, count);
      const duration = task.elapsed();
      // Pages that wait side by side wait once.
      const seo = metadata(type, page.response, { attempts, duration, waited: Math.min(waited, duration) }, page);
      yield { ...page, count, seo };
    }
  } catch (cause) {
    if (!(cause instanceof SeoError)) throw cause;
    const { code, message } = cause;
    const sentence =
      pages > 0 ? `${sentenceOf(message)} Records received before that: ${count} (pages: ${pages}).` : message;
    const details = { ...cause.details, attempts: attempts + (cause.details.attempts ?? 0) };
    throw new SeoError(code, sentence, details);
  }
}

import { readAddress } from "./address.js";
import type { Answer, Client, SendOptions } from "./client.js";
import { SeoError } from "./errors.js";
import { type Existing, isNewer, type Need, needOf } from "./existing.js";
import type { Json } from "./json.js";
import { rowOf } from "./operations.js";
import { readPages } from "./pages.js";

/** What became of a page; `fresh`: its report is recent enough, and nothing was created or regenerated. */
export type Outcome = "created" | "regenerated" | "fresh";

type Send = Client["send"];

const outcomes: Record<Need, Outcome> = { create: "created", regenerate: "regenerated", fresh: "fresh" };
const NEWEST = { search_by: "url", sort_by: "generated_at", sort: "desc", per_page: "100" };
/** A longer text is not searched for: the host alone finds more. */
const LONGEST_SEARCH = 200;

/** Finds the page's report: the one that was generated last. Resolves with it, and the service's time in milliseconds. */
async function find(send: Send, list: string, url: string): Promise<{ record: Json | undefined; now: number }> {
  const { key, host } = readAddress(url);
  const query = { ...NEWEST, search: key.length > LONGEST_SEARCH ? host : key };
  let record: Json | undefined;
  let now = Date.now();
  for await (const { records, answer } of readPages((extra) => send(list, query, { extra }))) {
    const date = Date.parse(String(answer.headers.date));
    if (!Number.isNaN(date)) now = date;
    for (const one of records as Json[])
      if (readAddress(String(one.url)).key === key && (!record || isNewer(one, record))) record = one;
    if (record) break;
  }
  return { record, now };
}

/**
 * Creates a page's report, or regenerates or returns the one that it has, as `existing` and `maxAge` (days) say.
 * Rejects as `client.send` does; two submissions of one page run one after the other.
 */
export async function submit(
  client: Client,
  type: string,
  { existing = "create", maxAge, ...input }: Record<string, string>,
  options: SendOptions = {},
): Promise<Answer & { outcome: Outcome }> {
  const { lookup } = rowOf(type);
  const { url = "" } = input;
  const spent = { attempts: 0, duration: 0, waited: 0 };
  const send: Send = async (operation, values, more) => {
    const answer = await client.send(operation, values, { ...options, ...more }).catch((cause: unknown) => {
      if (!(cause instanceof SeoError)) throw cause;
      throw cause.with({ attempts: spent.attempts + (cause.details.attempts ?? 0) });
    });
    spent.attempts += answer.attempts;
    spent.duration += answer.duration;
    spent.waited += answer.waited;
    return answer;
  };
  if (existing === "create" || !lookup?.list || !lookup.change)
    return { ...(await client.send(type, input, options)), outcome: "created" };
  const { list, show, change } = lookup;
  return client.inTurn(readAddress(url).key, options.task, async () => {
    const { record, now } = await find(send, list, url);
    const need = needOf(existing as Existing, maxAge === undefined ? undefined : Number(maxAge), record, now);
    const reportId = String(record?.id);
    const { url: _, ...access } = input;
    const sends = {
      create: () => send(type, input),
      regenerate: () => send(change, { ...access, reportId, update: "1" }),
      fresh: () => send(show, { reportId }),
    };
    const answer = await sends[need]();
    return { ...answer, ...spent, outcome: outcomes[need] };
  });
}

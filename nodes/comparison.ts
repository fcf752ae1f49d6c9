import type { Node, NodeAPI } from "node-red";
import { type Change, conditions, reports, type Subject } from "../src/changes.js";
import { checks } from "../src/checks.js";
import type { SeoError } from "../src/errors.js";
import { isObject } from "../src/json.js";
import { operations } from "../src/operations.js";
import type { Job, StatusText, Work } from "./handler.js";
import { readAllPages } from "./pages.js";
import type { State } from "./state.js";

const LIST = "seo-report-list";
const CHECKS = "checks";

/** What is saved beside a state: the service and filters that it is of, and when, in milliseconds. */
export interface Saved {
  of: string;
  at?: number;
}

const isSaved = (value: unknown): value is Saved =>
  isObject(value) && typeof value.of === "string" && (reports.isState(value) || checks.isState(value));

/** Lists the reports and sends a message for each change. The new state is saved only after all of them were sent. */
async function sendChanges<S extends object>(
  RED: NodeAPI,
  node: Node,
  state: State,
  subject: Subject<S>,
  of: string,
  job: Job,
): Promise<StatusText> {
  const { settings, msg } = job;
  const { changes: kinds = "", only = "", below } = settings;
  const kept = await state.read();
  if (kept !== undefined && !isSaved(kept)) node.warn(RED._("seo-reports.status.overwritten"));
  const known = isSaved(kept) && kept.of === of && subject.isState(kept) ? kept : undefined;
  const comparison = subject.compare(known, Number(settings.threshold ?? 0));
  const found: Change[] = [];
  // The text of the status is kept until the next run, and with it all that is used here in a function.
  const baseline = known === undefined;
  const wanted = (one: Change) =>
    (baseline ? settings.first === "created" : ["all", CHECKS, one.change].includes(kinds)) &&
    conditions[only]?.(one, Number(below));
  let seo: { attempts?: number } = {};
  let whole = true;
  let most = 0;
  for await (const page of readAllPages(job, LIST, operations[LIST])) {
    ({ seo } = page);
    // A list that was cut, or that changed while it was read, can lack reports that still exist.
    most = Math.max(most, page.total ?? 0);
    whole = !page.truncated && page.count >= most;
    for (const record of page.records) found.push(...comparison.compare(record).filter(wanted));
  }
  // From here to the last message nothing waits: a redeploy, which would lose changes, cannot come between.
  if (whole) for (const change of comparison.deleted()) if (wanted(change)) found.push(change);
  const { payload: _, ...rest } = msg;
  const counts = Object.fromEntries(subject.kinds.map((kind) => [kind, 0]));
  for (const { change, payload, details } of found) {
    counts[change] = Number(counts[change]) + 1;
    job.send({
      ...RED.util.cloneMessage({ ...rest, seo: { ...seo, operation: node.type, change, ...details } }),
      payload,
    });
  }
  await state.write({ ...comparison.state(whole), of, at: Date.now() }).catch((error: SeoError) => {
    throw error.with({ attempts: seo.attempts });
  });
  if (kinds === CHECKS && comparison.found === 0) return () => "seo-reports.status.noChecks";
  if (baseline) return () => "seo-reports.status.baseline";
  return () => RED._(`seo-reports.status.${kinds === CHECKS ? "checks" : "changes"}`, counts);
}

/** What the node does with a message: a run. */
export function createWork(RED: NodeAPI, node: Node, state: State, service: unknown): Work {
  return (job) => {
    const of = [service, job.client.base, Object.entries(job.input)];
    return job.settings.changes === CHECKS
      ? sendChanges(RED, node, state, checks, JSON.stringify([...of, CHECKS]), job)
      : sendChanges(RED, node, state, reports, JSON.stringify(of), job);
  };
}

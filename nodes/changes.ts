import type { Node, NodeAPI } from "node-red";
import { type Change, createComparison, type Snapshot } from "../src/changes.js";
import { SeoError } from "../src/errors.js";
import { changes, operations } from "../src/operations.js";
import { type Config, handleInput, type Job, type StatusText } from "./handler.js";
import { readAllPages } from "./pages.js";
import { reasonOf } from "./sources.js";

const TYPE = "seo-report-changes";
const LIST = "seo-report-list";

/** What the node's context keeps: the reports of the last run, and the service and filters that they are of. */
interface SavedState {
  of: string;
  reports: Snapshot;
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function isSavedState(value: unknown): value is SavedState {
  const { of, reports } = Object(value) as Partial<SavedState>;
  return (
    typeof of === "string" &&
    isObject(reports) &&
    Object.values(reports).every((report) => isObject(report) && "score" in report)
  );
}

/** The node's context, in the store that the node names. Node-RED itself falls back to its default store if there is none of that name. */
function openState(RED: NodeAPI, node: Node, store: string | undefined) {
  const stores = Object.keys((RED.settings as { contextStorage?: object }).contextStorage ?? { memory: {} });
  if (store !== undefined && store !== "default" && !stores.includes(store)) {
    throw new SeoError(
      "SEO_CONFIG",
      `${node.name || TYPE}: the context store "${store}" is not in Node-RED's settings, which have: ${stores.join(", ")}.`,
    );
  }
  const context = node.context();
  const use = (how: (done: (error: unknown, value?: unknown) => void) => void) =>
    new Promise<unknown>((resolve, reject) => how((error, value) => (error ? reject(error) : resolve(value)))).catch(
      (cause) => {
        throw new SeoError("SEO_INPUT", `The context store could not be accessed: ${reasonOf(cause)}`);
      },
    );
  return {
    read: () => use((done) => context.get("reports", store, done)),
    write: (saved: SavedState) => use((done) => context.set("reports", saved, store, done)),
  };
}

/** Lists the reports and sends a message for each change. The new state is saved only after all of them were sent. */
async function compareReports(RED: NodeAPI, node: Node, service: string, job: Job): Promise<StatusText> {
  const { settings, input, msg } = job;
  const row = operations[LIST];
  const state = openState(RED, node, settings.store);
  const of = JSON.stringify([service, job.client.base, Object.entries(input)]);
  const kept = await state.read();
  if (kept !== undefined && !isSavedState(kept)) node.warn(RED._("seo-reports.status.overwritten"));
  const known = isSavedState(kept) && kept.of === of ? kept.reports : undefined;
  const comparison = createComparison(known ?? {}, Number(settings.threshold ?? 0));
  const found: Change[] = [];
  const wanted = (change: Change) =>
    known ? settings.changes === "all" || settings.changes === change.change : settings.first === "created";
  let seo: { attempts?: number } = {};
  let whole = true;
  let most = 0;
  for await (const page of readAllPages(job, LIST, row)) {
    ({ seo } = page);
    // A list that was cut, or that changed while it was read, can lack reports that still exist.
    most = Math.max(most, page.total ?? 0);
    whole = !page.truncated && page.count >= most;
    for (const record of page.records) {
      const change = comparison.compare(record);
      if (change && wanted(change)) found.push(change);
    }
  }
  // From here to the last message nothing waits: a redeploy, which would lose changes, cannot come between.
  if (whole) for (const change of comparison.deleted()) if (wanted(change)) found.push(change);
  const { payload: _, ...rest } = msg;
  const counts = { created: 0, changed: 0, deleted: 0 };
  for (const { change, record, previous, fields } of found) {
    counts[change]++;
    const metadata = { ...seo, operation: TYPE, change, ...(previous && { previous }), ...(fields && { fields }) };
    job.send({ ...RED.util.cloneMessage({ ...rest, seo: metadata }), payload: record });
  }
  const reports = whole ? comparison.seen : { ...known, ...comparison.seen };
  await state.write({ of, reports }).catch((error: SeoError) => {
    throw error.with({ attempts: seo.attempts });
  });
  return () => (known ? RED._("seo-reports.status.changes", counts) : "seo-reports.status.baseline");
}

export function registerChanges(RED: NodeAPI): void {
  RED.nodes.registerType(TYPE, function (this: Node, config: Config) {
    RED.nodes.createNode(this, config);
    // One message at a time: two that compare with the same state would report the same change twice.
    handleInput(RED, this, TYPE, changes, config, (job) => compareReports(RED, this, String(config.service), job), 1);
  });
}

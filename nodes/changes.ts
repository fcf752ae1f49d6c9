import type { Node, NodeAPI } from "node-red";
import { type Change, createComparison, type Snapshot } from "../src/changes.js";
import { cancelled, SeoError } from "../src/errors.js";
import { changes, operations } from "../src/operations.js";
import { collect } from "./collect.js";
import { type Config, type Ending, handleInput, type Job } from "./handler.js";
import { reasonOf } from "./sources.js";

const TYPE = "seo-report-changes";
const LIST = "seo-report-list";

/** What the node's context keeps: the list as it was seen, and of which filters and service it is. */
interface Memory {
  of: string;
  reports: Snapshot;
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function isMemory(value: unknown): value is Memory {
  const { of, reports } = Object(value) as Partial<Memory>;
  return (
    typeof of === "string" &&
    isObject(reports) &&
    Object.values(reports).every((report) => isObject(report) && "score" in report)
  );
}

/** The node's context, in the store that the node names. */
function createMemory(node: Node, store: string | undefined) {
  const context = node.context();
  const use = (how: (done: (error: unknown, value?: unknown) => void) => void) =>
    new Promise<unknown>((resolve, reject) => how((error, value) => (error ? reject(error) : resolve(value)))).catch(
      (cause) => {
        throw new SeoError("SEO_INPUT", `The context store could not be accessed: ${reasonOf(cause)}`);
      },
    );
  return {
    read: () => use((done) => context.get("reports", store, done)),
    write: (memory: Memory) => use((done) => context.set("reports", memory, store, done)),
  };
}

/** Lists the reports and sends a message for each change. What was seen is kept only after all of them were sent. */
async function look(RED: NodeAPI, node: Node, service: string, job: Job): Promise<Ending> {
  const { settings, input, msg, send } = job;
  const row = operations[LIST];
  const memory = createMemory(node, settings.store);
  const of = JSON.stringify([service, job.client.base, Object.entries(input)]);
  const kept = await memory.read();
  if (kept !== undefined && !isMemory(kept)) node.warn(RED._("seo-reports.status.overwritten"));
  const known = isMemory(kept) && kept.of === of ? kept.reports : undefined;
  const comparison = createComparison(known ?? {}, Number(settings.threshold ?? 0));
  const found: Change[] = [];
  const wanted = (change: Change) =>
    known ? settings.changes === "all" || settings.changes === change.change : settings.first === "created";
  let seo: { attempts?: number } = {};
  let whole = true;
  let most = 0;
  for await (const page of collect(job, LIST, row)) {
    ({ seo } = page);
    // A list that is cut, or that changed while it was read, may miss reports that are still there.
    most = Math.max(most, page.total ?? 0);
    whole = !page.truncated && page.count >= most;
    for (const record of page.records) {
      const change = comparison.compare(record);
      if (change && wanted(change)) found.push(change);
    }
  }
  // Nothing could be sent any more, and what is not sent must not be kept as seen.
  if (job.lane.closed) throw cancelled.with({ attempts: seo.attempts });
  if (whole) for (const change of comparison.deleted()) if (wanted(change)) found.push(change);
  const { payload: _, ...rest } = msg;
  const counts = { created: 0, changed: 0, deleted: 0 };
  for (const { change, record, previous, fields } of found) {
    counts[change]++;
    const told = { ...seo, operation: TYPE, change, ...(previous && { previous }), ...(fields && { fields }) };
    send(Object.assign(RED.util.cloneMessage({ ...rest, seo: told } as never) as object, { payload: record }) as never);
  }
  const reports = whole ? comparison.seen : { ...known, ...comparison.seen };
  await memory.write({ of, reports }).catch((error: SeoError) => {
    throw error.with({ attempts: seo.attempts });
  });
  return () => (known ? RED._("seo-reports.status.changes", counts) : "seo-reports.status.baseline");
}

export function registerChanges(RED: NodeAPI): void {
  RED.nodes.registerType(TYPE, function (this: Node, config: Config) {
    RED.nodes.createNode(this, config);
    // One after the other: two looks at the same memory would tell the same change twice.
    handleInput(RED, this, TYPE, changes, config, (job) => look(RED, this, String(config.service), job), 1);
  });
}

import type { Node, NodeAPI } from "node-red";
import { type ById, type Change, conditions, reports, type Subject } from "../src/changes.js";
import { checks } from "../src/checks.js";
import type { SeoError } from "../src/errors.js";
import { isObject } from "../src/json.js";
import { operations } from "../src/operations.js";
import { asReports, idOf } from "../src/records.js";
import type { MessageTask, Process, StatusText } from "./handler.js";
import { type Metadata, readAllPages } from "./reading.js";
import type { StateStore } from "./state.js";

const LIST = "seo-report-list";
const CHECKS = "checks";

/** How many reports the states can have together, unless the last run alone has more. They take about 30 MB. */
const MOST_REPORTS = 100_000;
/** Even a state without reports takes memory: each counts as so many more. */
const LEAST_REPORTS = 100;

/** The state of a run, and what it is of: the service and the filters. */
interface SavedRun {
  of: string;
  /** When it was saved, in milliseconds. */
  at?: number;
  reports: ById<unknown>;
}

/** The saved state: the last run. `others`: the last run of each other combination of filters, newest first. */
export interface Saved extends SavedRun {
  others?: SavedRun[];
}

const isRun = (value: unknown): value is SavedRun =>
  isObject(value) && typeof value.of === "string" && (reports.isState(value) || checks.isState(value));

const isSaved = (value: unknown): value is Saved =>
  isRun(value) && ("others" in value ? Array.isArray(value.others) && value.others.every(isRun) : true);

const sizeOf = (run: SavedRun) => LEAST_REPORTS + Object.keys(run.reports).length;

/** The saved runs of a node, the newest first: one for each combination of filters. */
function createRuns(RED: NodeAPI, node: Node, store: StateStore) {
  let warned = false;
  return {
    /** Reads the runs of the same service, by what `subject` compares; the others are out of date once they are of use again. */
    async read<S extends object>({ isState }: Subject<S>, account: string): Promise<(SavedRun & S)[]> {
      const saved = await store.read();
      if (!isSaved(saved)) {
        if (saved !== undefined) node.warn(RED._("seo-reports.status.overwritten"));
        return [];
      }
      const { others = [], ...newest } = saved;
      return [newest, ...others].filter((run) => run.of.startsWith(account)).filter((run) => isState(run));
    },

    /** Saves a run, and as many of the others as fit beside it. */
    write(run: SavedRun, others: SavedRun[]): Promise<unknown> {
      let size = sizeOf(run);
      const fitting = others.filter((other) => {
        size += sizeOf(other);
        return size <= MOST_REPORTS;
      });
      if (fitting.length < others.length && !warned) {
        warned = true;
        node.warn(RED._("seo-reports.status.runsDropped", { most: MOST_REPORTS.toLocaleString("en-US") }));
      }
      return store.write({ ...run, at: Date.now(), others: fitting });
    },
  };
}

/** The parts that all runs of a node share. */
interface RunContext {
  RED: NodeAPI;
  node: Node;
  runs: ReturnType<typeof createRuns>;
}

/** Lists the reports and sends a message for each change. The new state is saved only after all of them were sent. */
async function sendChanges<S extends Pick<SavedRun, "reports">>(
  { RED, node, runs }: RunContext,
  subject: Subject<S>,
  { account, of }: { account: string; of: string },
  task: MessageTask,
): Promise<StatusText> {
  const { settings } = task;
  const { payload: _, ...rest } = task.msg;
  const { changes = "", only = "", below } = settings;
  const saved = await runs.read(subject, account);
  const known = saved.find((run) => run.of === of);
  const others = saved.filter((run) => run.of !== of);
  const comparison = subject.compare(known, Number(settings.threshold ?? 0));
  const found: Change[] = [];
  // The text of the status is kept until the next run, and with it all that is used here in a function.
  const baseline = known === undefined;
  const wanted = (one: Change) =>
    (baseline ? settings.first === "created" : ["all", CHECKS, one.change].includes(changes)) &&
    conditions[only]?.(one, Number(below));
  let seo: Metadata = {};
  let whole = true;
  const listed = new Set<string>();
  /** Reads the list. Returns whether reports that were missed show only in another reading. */
  async function read(): Promise<boolean> {
    let canMiss = false;
    for await (const page of readAllPages(task, LIST, operations[LIST], seo)) {
      seo = page.seo;
      // A list that was cut, or that changed while it was read, can lack reports that still exist.
      whole &&= !page.truncated;
      canMiss = page.page > 1;
      for (const record of asReports(page)) {
        const id = idOf(record);
        if (!listed.has(id)) found.push(...comparison.compare(record).filter(wanted));
        listed.add(id);
      }
    }
    return canMiss && (baseline || (whole && Object.keys(known.reports).some((id) => !listed.has(id))));
  }
  if (await read()) await read();
  // From here to the last message nothing waits: a redeploy, which would lose changes, cannot come between.
  if (whole) for (const change of comparison.deleted()) if (wanted(change)) found.push(change);
  const counts = Object.fromEntries(subject.changes.map((change) => [change, 0]));
  for (const { change, payload, details } of found) {
    counts[change] = Number(counts[change]) + 1;
    task.send(seo.attempts, () => ({
      ...RED.util.cloneMessage({ ...rest, seo: { ...seo, operation: node.type, change, ...details } }),
      payload,
    }));
  }
  await runs.write({ ...comparison.state(whole), of }, others).catch((error: SeoError) => {
    throw error.with({ attempts: seo.attempts });
  });
  if (comparison.found === 0) return () => "seo-reports.status.noChecks";
  if (baseline) return () => "seo-reports.status.baseline";
  return () => RED._(`seo-reports.status.${changes === CHECKS ? "checks" : "changes"}`, counts);
}

/** Makes the function that processes a message: a run. */
export function createComparison(RED: NodeAPI, node: Node, store: StateStore, service: unknown): Process {
  const context: RunContext = { RED, node, runs: createRuns(RED, node, store) };
  return (task) => {
    const account = `${JSON.stringify([service, task.client.base]).slice(0, -1)},`;
    const filters = JSON.stringify(Object.entries(task.input));
    const run = () =>
      task.settings.changes === CHECKS
        ? sendChanges(context, checks, { account, of: `${account}${filters},"${CHECKS}"]` }, task)
        : sendChanges(context, reports, { account, of: `${account}${filters}]` }, task);
    // Two runs that compare with the same state would report the same change twice. No page's key begins with a space.
    return task.client.inTurn(` changes ${node.id}`, task, run);
  };
}

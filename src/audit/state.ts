import { hash } from "node:crypto";
import { oneLine } from "../errors.js";
import type { Moment } from "./clock.js";
import { type Ended, type Entry, FORMAT, type Outcome, outcomes, type PageRequest, type Settings } from "./entries.js";
import { type Row, rowKey } from "./rows.js";
import { otherVersion } from "./trouble.js";

/** How far a page is. A row that repeats another one of its list is `repeat`. */
export type Phase = "waiting" | "sent" | "ended" | "delivered" | "repeat";

/** The state of a batch. Only `apply` changes it, so that reading the journal again leads to the same state. */
export class State {
  name = "";
  lists: (Settings & { planned: boolean })[] = [];
  /** By row: its input as JSON, until its page has succeeded. */
  inputs: string[] = [];
  /** By row: how far it is. One that waits is not in it. */
  phases = new Map<number, Phase>();
  /** Rows that are no page: they have failed once their list is saved. */
  invalid = new Set<number>();
  /** By row: the number of the list that says what is done with it. */
  listOf: number[] = [];
  /** By page: the rows that repeat it. */
  repeats = new Map<number, number[]>();
  /** The page of a key. */
  pages = new Map<string, number>();
  requests = new Map<number, PageRequest>();
  /** How pages ended, until that is delivered; of failures also after. */
  ended = new Map<number, Ended>();
  /** The reports that the batch got. */
  reports: string[] = [];
  /** The place of the SEO service that has them. */
  service = "";
  /** When the processes of this boot opened the journal, and how many reports it had then. */
  openings: (Moment & { reports: number })[] = [];
  /** Rows whose results are delivered. */
  counts: Record<Outcome, number> = { created: 0, regenerated: 0, fresh: 0, failed: 0, uncertain: 0 };
  paused = false;
  /** The waiting pages were dropped. */
  dropped = false;
  finished = false;
  /** Rows of a list that is not complete. */
  draft: Row[] = [];
}

/** 72 bits of a hash: of a million pages, two are confused in one list of ten billion. Texts this short are copied. */
const digest = (key: string) => hash("sha256", key, "base64url").slice(0, 12);

export const total = ({ inputs }: State): number => inputs.length;
export const done = ({ counts }: State): number => outcomes.reduce((sum, outcome) => sum + counts[outcome], 0);
export const phaseOf = ({ phases }: State, row: number): Phase => phases.get(row) ?? "waiting";
/** Whether a page was sent, or has ended without a result that was delivered. */
export const isBegun = (state: State, page: number): boolean => ["sent", "ended"].includes(phaseOf(state, page));
export const pageOf = ({ pages }: State, key: string): number | undefined => pages.get(digest(key));
export const rowsOf = ({ repeats }: State, page: number): number[] => [page, ...(repeats.get(page) ?? [])];
export const inputOf = ({ inputs }: State, row: number): unknown => JSON.parse(inputs[row] as string);
export const hasFailed = ({ outcome }: Ended): boolean => outcome === "failed" || outcome === "uncertain";
/** The reports of earlier processes, by how many milliseconds ago they got them at least: before an opening, and after the one before. */
export function claimsOf({ reports, openings }: State): [ids: string[], age: number][] {
  const now = openings.at(-1)?.at ?? 0;
  const all = [...openings, { at: now, reports: undefined }];
  return all.map(({ at, reports: end }, index) => [reports.slice(all[index - 1]?.reports ?? 0, end), now - at]);
}
/** The pages that msg.retry is about. */
export const failedPages = ({ ended, invalid }: State): number[] =>
  [...ended].flatMap(([page, one]) => (hasFailed(one) && !invalid.has(page) ? page : []));

function check(state: State, page: number): void {
  if (state.inputs[page] === undefined || phaseOf(state, page) === "repeat") throw new Error("there is no such page");
}

function addRow(state: State, row: Row): void {
  const index = total(state);
  const key = digest(rowKey(row));
  const page = state.pages.get(key) ?? index;
  if (page === index) state.pages.set(key, page);
  else {
    // Not copied, because a list can repeat one page 50,000 times.
    const repeats = state.repeats.get(page) ?? [];
    repeats.push(index);
    state.repeats.set(page, repeats);
    state.phases.set(index, "repeat");
  }
  state.inputs.push(JSON.stringify(row.input));
  state.listOf.push(state.lists.length - 1);
  if (row.error === undefined) return;
  state.invalid.add(index);
  if (page !== index) return;
  // An SeoError would read the stack, which takes a second for 50,000 rows.
  const error = { code: "SEO_INPUT", message: oneLine(row.error), attempts: 0, uncertain: false };
  state.ended.set(page, { outcome: "failed", attempts: 0, error });
  state.phases.set(page, "ended");
}

/** The page waits again. */
function wait(state: State, page: number): void {
  const ended = state.ended.get(page);
  if (ended && phaseOf(state, page) === "delivered") state.counts[ended.outcome] -= rowsOf(state, page).length;
  state.ended.delete(page);
  state.phases.delete(page);
}

const unplanned = (settings: Settings) => ({ ...settings, planned: settings.existing === "create" });

/** The batch goes on at another service, where an ID is that of another report. What was sent before is not looked for. */
function move(state: State): void {
  for (const ended of state.ended.values()) ended.report = undefined;
  state.requests.clear();
  state.reports = [];
  state.openings = [];
  state.lists = state.lists.map(unplanned);
}

type Apply<Type extends Entry["type"]> = (state: State, entry: Extract<Entry, { type: Type }>) => void;

const changes: { [Type in Entry["type"]]: Apply<Type> } = {
  batch(state, { format, name }) {
    state.name = name;
    if (format !== FORMAT) throw new Error(otherVersion);
  },
  rows(state, { from, rows }) {
    // A list that was not completed is followed by another one.
    if (from === 0) state.draft = [];
    if (from !== state.draft.length) throw new Error("rows are missing before it");
    for (const row of rows) state.draft.push(row);
  },
  list(state, { settings, rows, pages }) {
    if (rows !== state.draft.length) throw new Error("rows of the list are missing");
    for (const page of pages) check(state, page);
    // Also if it has joined a batch that had finished, whose retry could not be saved.
    state.finished = false;
    state.lists.push(unplanned(settings));
    for (const row of state.draft) addRow(state, row);
    state.draft = [];
    for (const page of pages) {
      if (phaseOf(state, page) !== "waiting") continue;
      state.listOf[page] = state.lists.length - 1;
      if (!state.requests.get(page)?.intent) state.requests.delete(page);
    }
  },
  plan(state, { pages }) {
    for (const { page } of pages) check(state, page);
    for (const { page, list, ...plan } of pages) {
      // The effect of a lost request is looked for first, and a later list has its own plan.
      const isMeant = phaseOf(state, page) === "waiting" && state.listOf[page] === list;
      if (isMeant && !state.requests.get(page)?.intent) state.requests.set(page, { action: "regenerate", ...plan });
    }
  },
  planned(state, { lists }) {
    if (lists.some((list) => !state.lists[list])) throw new Error("there is no such list");
    for (const list of lists) Object.assign(state.lists[list] ?? {}, { planned: true });
  },
  sent(state, { type: _, page, ...request }) {
    check(state, page);
    state.requests.set(page, request);
    state.phases.set(page, "sent");
  },
  opened(state, { service, boot, at }) {
    if (state.service !== "" && service !== state.service) move(state);
    state.service = service;
    const last = state.openings.at(-1);
    // Saved once more because saving failed at first, it can follow what came later.
    if (boot === undefined || at === undefined || (last?.boot === boot && last.at === at)) return;
    // Otherwise, the machine was reset to an earlier state.
    const isBefore = (one?: Moment): one is Moment => one?.boot === boot && one.at <= at;
    state.openings = [...state.openings.filter(isBefore), { boot, at, reports: state.reports.length }];
    for (const [page, request] of state.requests) {
      if (!request.intent) continue;
      const sentBefore = isBefore(request.sentBefore) ? request.sentBefore : { boot, at };
      const intent = { ...request.intent, age: at - sentBefore.at };
      state.requests.set(page, { ...request, sentBefore, intent });
    }
  },
  waits(state, { page }) {
    check(state, page);
    const request = state.requests.get(page);
    if (request) state.requests.set(page, { ...request, intent: undefined });
    wait(state, page);
  },
  ended(state, { type: _, page, ...ended }) {
    check(state, page);
    if (!outcomes.includes(ended.outcome)) throw new Error("the outcome is unknown");
    const request = state.requests.get(page);
    const known = ended.outcome === "uncertain" ? { error: ended.error } : { intent: undefined };
    if (request) state.requests.set(page, { ...request, ...known });
    state.ended.set(page, ended);
    state.phases.set(page, "ended");
    if (ended.report !== undefined) state.reports.push(ended.report);
  },
  delivered(state, { page }) {
    check(state, page);
    const ended = state.ended.get(page);
    // The note of a result can come after msg.retry.
    if (!ended || phaseOf(state, page) !== "ended") return;
    const rows = rowsOf(state, page);
    state.counts[ended.outcome] += rows.length;
    state.phases.set(page, "delivered");
    if (hasFailed(ended)) return;
    state.ended.delete(page);
    state.requests.delete(page);
    for (const row of rows) state.inputs[row] = "";
  },
  pause(state) {
    state.paused = true;
  },
  resume(state) {
    state.paused = false;
  },
  retry(state) {
    const lists = new Map<number, number>();
    for (const page of failedPages(state)) {
      wait(state, page);
      if (state.requests.has(page)) continue;
      // One that has failed at another service is in no plan that was made since, or is being made.
      const list = state.listOf[page] as number;
      const next = lists.get(list) ?? state.lists.push(unplanned(state.lists[list] as Settings)) - 1;
      lists.set(list, next);
      state.listOf[page] = next;
    }
    // Since then, the account's reports have changed.
    if (state.finished) state.lists = state.lists.map(unplanned);
    state.finished = false;
  },
  reset(state) {
    state.dropped = true;
  },
  finished(state) {
    state.finished = true;
  },
};

/** Throws if the entry cannot follow those before it. */
export function apply(state: State, entry: Entry): void {
  const { type } = Object(entry) as Entry;
  const change = Object.hasOwn(changes, type) && changes[type];
  if (!change) throw new Error("the entry has an unknown type");
  (change as (state: State, entry: Entry) => void)(state, entry);
}

import { setTimeout as sleep } from "node:timers/promises";
import { Access } from "./access.js";
import type { Batch, Store } from "./batch.js";
import type { Clock } from "./clock.js";
import type { AuditOptions, Options } from "./options.js";
import type { Progress } from "./progress.js";
import type { Requests } from "./requests.js";
import { Run } from "./run.js";
import { claimsOf } from "./state.js";

/** For each request in flight, so many lost responses can be looked for. */
const MOST_LOST = 10;
/** Finished batches that are remembered. */
const MOST_FINISHED = 20;
/** Milliseconds: for so long, responses are waited for, and so often they are looked for. */
const DRAIN = 10_000;
const BETWEEN = 50;

/** Works through the batches of a store, the oldest first. */
export class Engine {
  readonly access: Access;
  readonly runs = new Set<Run>();
  #requests: Requests;
  /** How far batches were: those that have finished and, until the store is open, the others. */
  #known: readonly Progress[];
  readonly #working = new Set<Promise<void>>();
  /** Batches whose end is being reported, and which are then removed or kept. */
  readonly #endings = new Map<Run, Promise<void>>();
  #filling = false;

  constructor(options: AuditOptions & { clock: Clock }) {
    this.#requests = this.#connect(options);
    this.#known = options.earlier ?? [];
    const progress = (one: Progress) => {
      if (one.finished)
        this.#known = [...this.#known.filter(({ batch }) => batch !== one.batch), one].slice(-MOST_FINISHED);
      options.progress(one, this.latest());
    };
    this.access = new Access({ ...options, progress }, this);
  }

  #connect({ connect }: Pick<Options, "connect">): Requests {
    return connect(() => {
      for (const run of this.runs) if (run.steps.size > 0) run.reporter.changed();
      this.#fill();
    });
  }

  /** Works on the batches of a store. */
  open({ broken, batches }: Store): void {
    const { failed, recovered } = this.access.options;
    this.#known = this.#known.filter(({ finished }) => finished);
    recovered?.(true);
    for (const { name, error } of broken) failed(error, name);
    // A queue can have a round that was reset behind the new one, which waits for it.
    for (const batch of batches.toSorted((a, b) => Number(b.state.dropped) - Number(a.state.dropped))) this.add(batch);
  }

  announceClaims = () => this.#requests.announceClaims();

  /** Nothing can go on, and the progress says why; or everything can. */
  changed(): void {
    for (const run of this.runs) run.reporter.changed();
    this.#fill();
  }

  /** Ends what is in flight; the next one to open the store looks for its effects. */
  async close(): Promise<void> {
    for (const { batch } of this.runs) batch.isClosing = true;
    this.#requests.cancel();
    await Promise.all(this.#working);
    this.#known = this.latest();
    for (const run of this.runs) run.close();
    this.runs.clear();
    this.#requests = this.#connect(this.access.options);
  }

  /** The batches of a name, or all. One that was reset has no name any more. */
  named(name?: string): Run[] {
    const isNamed = ({ batch: { state } }: Run) => !state.dropped && (name === undefined || state.name === name);
    return [...this.runs].filter(isNamed);
  }

  /** How far the last 20 batches are that have finished, and then all others. */
  latest(): Progress[] {
    const unfinished = [...this.runs].filter(({ reporter }) => !reporter.closed).map(({ reporter }) => reporter.read());
    const names = new Set(unfinished.map(({ batch }) => batch));
    return [...this.#known.filter(({ batch }) => !names.has(batch)), ...unfinished];
  }

  /** Forgets finished batches, one or all. Returns how many. */
  forget(name?: string): number {
    const { length } = this.#known;
    this.#known = this.#known.filter(({ batch }) => (name ?? batch) !== batch);
    return length - this.#known.length;
  }

  /** Works on a batch. */
  add(batch: Batch): void {
    if (!this.access.store) return;
    // One that was reset may still look for lost responses: what is reported from now on is the new round's progress.
    const earlier = [...this.runs].filter((run) => run.batch.state.name === batch.state.name);
    for (const { reporter, batch } of earlier) reporter.end(batch.isUnchanged);
    const run = new Run(batch, this.#requests, this.access, () => this.#fill());
    run.earlier = earlier.map(({ steps }) => steps);
    this.runs.add(run);
    batch.opened(this.#requests.service);
    for (const [ids, age] of claimsOf(batch.state)) this.#requests.claim(ids, age);
    run.changed();
  }

  /** Changes each batch of a name, or all. None is finished before. Returns how many. */
  async change(name: string | undefined, how: (run: Run) => Promise<unknown>): Promise<number> {
    const runs = this.named(name);
    for (const run of runs) run.active++;
    try {
      for (const run of runs) await how(run);
    } finally {
      for (const run of runs) {
        run.active--;
        run.changed();
      }
    }
    return runs.length;
  }

  /** Resolves when batches that are over are removed, or kept. Rejects if that has to wait until something can be saved. */
  async endings(): Promise<void> {
    if (this.#endings.size > 0 && this.access.error) throw this.access.error;
    await Promise.all(this.#endings.values());
  }

  /** Begins nothing more, waits for the responses to what is in flight, and until their delivery is noted. */
  async drain(): Promise<void> {
    const { clock } = this.access.options;
    this.access.isEnding = true;
    for (const end = clock.now() + DRAIN; this.#count().inFlight > 0 && clock.now() < end; ) await sleep(BETWEEN);
    await Promise.all(Array.from(this.runs, ({ batch }) => batch.noted()));
  }

  /** Does work that cannot be rejected. */
  async #start(work: Promise<void>): Promise<void> {
    this.#working.add(work);
    await work;
    this.#working.delete(work);
    this.#fill();
  }

  async #finish(run: Run): Promise<void> {
    await this.access.save(async () => run.batch.journal.check?.());
    // Meanwhile, a list can have been added.
    if (!this.access.store || !run.isOver() || !this.runs.delete(run)) return;
    run.reporter.end(run.batch.isUnchanged);
    run.close();
    await this.access.save(() => run.batch.finish());
  }

  #end(run: Run): void {
    const ending = this.#finish(run)
      .catch((cause: unknown) => run.fail(cause))
      .finally(() => this.#endings.delete(run));
    this.#endings.set(run, ending);
    void this.#start(ending);
  }

  /** How many steps wait for a response, and how many look for one that is lost. */
  #count() {
    let inFlight = 0;
    let lost = 0;
    for (const { steps } of this.runs)
      for (const step of steps)
        if (step.isLost) lost++;
        else if (step.inFlight) inFlight++;
    return { inFlight, lost };
  }

  /** Whether another page can be requested. */
  #hasRoom(): boolean {
    const { share } = this.access.options;
    const { inFlight, lost } = this.#count();
    return inFlight < share && inFlight + lost < share * MOST_LOST;
  }

  /** Begins as much as can be in flight. */
  #fill(): void {
    if (this.#filling) return;
    this.#filling = true;
    queueMicrotask(() => {
      this.#filling = false;
      const { access } = this;
      const canGoOn = () => access.store && !access.error;
      let hasRoom = this.#hasRoom();
      for (const run of this.runs) {
        if (canGoOn() && run.isOver() && !this.#endings.has(run)) this.#end(run);
        while (canGoOn() && !access.isEnding) {
          const step = run.begin(hasRoom);
          if (!step) break;
          void this.#start(run.work(step));
          hasRoom = this.#hasRoom();
        }
      }
    });
  }
}

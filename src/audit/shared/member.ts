import { setTimeout as sleep } from "node:timers/promises";
import { cancelled, type SeoError } from "../../errors.js";
import { createSequence, deferred } from "../../turns.js";
import { type Clock, clock } from "../clock.js";
import type { Progress } from "../progress.js";
import { deposed } from "../trouble.js";
import { GOODBYE } from "./driver.js";
import { fromServer, isHopeless, isLoss } from "./faults.js";
import type { Host } from "./host.js";
import { type LeadJob, type Link, type MemberOptions, openLink } from "./link.js";
import type { Place, Queue } from "./server.js";
import { createTerm, type Term } from "./term.js";

/** How often, in the time that a lock lasts, the lead looks for letters, and others look at the lead. */
const LEADING = 20;
const STANDING_BY = 10;
/** After a machine has offered the lead, another one is the first to take it. */
const AFTER_OFFER = 2;
const MINUTE = 60_000;
/** For so long, a machine that could not do the work offers the lead, and does not request it again. */
const OFFER = 15 * MINUTE;
/** How often another one checks whether it can do the work. */
const CHECK = MINUTE;

/**
 * One of the machines that share the batches of an SEO service. If it holds the lock of the job `lead`, it leads: it works on
 * all batches, and handles the letters of all machines. Otherwise it stands by.
 */
export class Member {
  readonly hosts = new Set<Host>();
  /** Jobs of nodes that this process does not have. It offers the lead once for each that is open. */
  readonly others = new Set<string>();
  readonly sendInOrder = createSequence();
  readonly #running: Promise<void>;
  #link: Link | undefined;
  /** Why the queue cannot be used until it is opened again. */
  #lost: SeoError | undefined;
  /** When it began to open the queue. */
  #began = performance.now();
  /** Set while it leads, and until that has ended. */
  #term: Term | undefined;
  /** When it last offered the lead, by the clock. */
  #offeredAt = Number.NEGATIVE_INFINITY;
  /** When it last checked whether it can do the work, and who led then. */
  #checked = { at: Number.NEGATIVE_INFINITY, holder: "" };
  /** When it last requested the lead, unless it did the work then. */
  #requestedAt = Number.NEGATIVE_INFINITY;
  /** Ends the rest before it works again. */
  wake = () => {};

  constructor(
    readonly place: Place,
    readonly service: string,
    readonly options: MemberOptions,
  ) {
    // Not before its first node has joined.
    this.#running = Promise.resolve().then(() => this.#run());
  }

  /** The queue of letters and batches; undefined as long as it is not connected. Throws why it cannot be. */
  jobs(): Queue | undefined {
    if (this.#lost) throw this.#lost;
    return this.#link?.jobs;
  }

  join(host: Host): void {
    this.hosts.add(host);
    this.#term?.begin(host);
  }

  /** A node is gone. The last one gives the lead back, and ends the connection. */
  async leave(host: Host): Promise<void> {
    this.hosts.delete(host);
    if (this.hosts.size > 0) return;
    this.wake();
    const ended = await Promise.race([this.#running.then(() => true), sleep(GOODBYE, false, { ref: false })]);
    if (!ended) await this.#link?.close();
  }

  /** An exception of the server, as a message gets it. */
  explain(cause: unknown): SeoError {
    const all = [...this.hosts].flatMap((host) => host.latest());
    const names = new Set(all.filter(({ finished }) => !finished).map(({ batch }) => batch));
    return fromServer(cause, new URL(this.place.url), [...names]);
  }

  /** Closes the queue for a minute if an exception shows that it cannot be used. Returns the exception as an engine wants it. */
  fail = (cause: unknown): SeoError => {
    const error = this.explain(cause);
    if (!this.#lost && (isLoss(cause) || isHopeless(error))) {
      this.#lost = error;
      this.wake();
    }
    return error;
  };

  /** Offers the lead to a machine that requests it: this one cannot do the work, because of its key, its network, or a missing node. */
  offer = (): void => {
    this.#offeredAt = this.options.clock.now();
  };

  /** The service carries out what this machine requests. */
  worked = (): void => {
    this.#requestedAt = Number.NEGATIVE_INFINITY;
  };

  /** Perhaps it can do the work again. If it stands by, it requests the lead, once that is offered. */
  repaired(): void {
    if (!this.#term) this.#offeredAt = Number.NEGATIVE_INFINITY;
    this.#checked.at = Number.NEGATIVE_INFINITY;
  }

  isOffering = (): boolean => this.options.clock.now() - this.#offeredAt < OFFER;

  async #run(): Promise<void> {
    while (this.hosts.size > 0) {
      try {
        await this.#work();
      } catch (cause) {
        const latest = this.fail(cause);
        const error = this.#lost ?? latest;
        const isPatient = !this.#link && performance.now() - this.#began < this.options.patience;
        if (error !== deposed && error !== cancelled && !isPatient) for (const host of this.hosts) host.failed(error);
      }
      if (this.hosts.size === 0) break;
      const standingBy = this.isOffering() ? AFTER_OFFER : STANDING_BY;
      const times = this.#term ? LEADING : standingBy;
      if (this.#lost) await this.#recover(this.#lost);
      else await this.#rest(this.options.lease.lockDuration / times, clock);
    }
    await this.#term?.end();
    await this.#link?.close();
  }

  async #work(): Promise<void> {
    if (this.#term?.isOver()) {
      await this.#term.end();
      this.#term = undefined;
      return;
    }
    this.#link ??= await openLink(this.place, this.service, this.options);
    if (this.hosts.size > 0) await (this.#term ? this.#term.work() : this.#standBy(this.#link));
    if (!this.#lost) for (const host of this.hosts) host.recovered();
  }

  /** Shows what the lead says. Leads if nobody does, and requests the lead if it is offered. */
  async #standBy(link: Link): Promise<void> {
    const lead = await link.lead();
    const { progress, offered } = lead.data;
    const news: Record<string, Progress[]> = JSON.parse(progress);
    // If the server cannot write, the news of the lead are not shown: the failure is.
    const release = await link.acquire();
    for (const host of this.hosts) host.show(news[host.options.node] ?? []);
    if (release) {
      this.#offeredAt = Number.NEGATIVE_INFINITY;
      this.#term = createTerm(this, link, release);
    } else if (offered) {
      // Not awaited, because the lead can die meanwhile. If it fails, it is tried again.
      void this.#request(lead).catch(() => {});
    }
  }

  /** Requests the lead, by the name of the holder, if this machine can do the work. */
  async #request(lead: LeadJob): Promise<void> {
    const { holder } = lead.data;
    const at = this.options.clock.now();
    // Reading a page of the list does not prove that pages can be requested.
    if (this.#offeredAt > this.#requestedAt && at - this.#requestedAt < OFFER) return;
    if (holder === this.#checked.holder && at - this.#checked.at < CHECK) return;
    this.#checked = { at, holder };
    const [host] = this.hosts;
    if (!(await host?.canWork())) {
      // Another one is then the first to take it. Meanwhile, this machine can have become the lead.
      if (!this.#term) this.offer();
      return;
    }
    this.#requestedAt = at;
    await lead.updateProgress(holder);
  }

  /** Waits for some milliseconds, or until it is woken. */
  async #rest(ms: number, { later }: Clock): Promise<void> {
    const { promise, resolve } = deferred();
    this.wake = resolve;
    const cancel = later(ms, resolve);
    await promise;
    cancel();
  }

  /** Opens the queue again, a minute later. */
  async #recover(why: SeoError): Promise<void> {
    for (const host of this.hosts) host.failed(why);
    await Promise.all(Array.from(this.hosts, (host) => host.end(why)));
    await this.#term?.end();
    await this.#link?.close();
    this.#link = undefined;
    await this.#rest(MINUTE, this.options.clock);
    this.#began = performance.now();
    this.#lost = undefined;
  }
}

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { cancelled, type SeoError } from "../../errors.js";
import type { Clock } from "../clock.js";
import type { Progress } from "../progress.js";
import { Trouble, taken } from "../trouble.js";
import { fromServer, isHopeless, isLoss, lostData } from "./faults.js";
import { newName } from "./journal.js";
import { type Answer, isOpen, prefixOf } from "./letter.js";
import { createPost } from "./post.js";
import type { connect, Job, Lease, Place } from "./server.js";
import { openStore, type QueueStore } from "./store.js";

/** An audit node of this process. */
export interface Host {
  /** This machine leads: works on the node's batches. */
  begin(open: () => Promise<QueueStore>): void;
  /** Handles those jobs that are letters, in order. */
  handle(ids: readonly string[], answer: (id: string, answer: Answer | undefined) => void): Promise<void>;
  /** Begins nothing more, and waits for the responses to what is in flight. */
  drain(): Promise<unknown>;
  /** Another machine leads; or nobody can, and the progress says why. */
  end(why?: SeoError): Promise<unknown>;
  /** What the lead says of the node's batches. */
  show(progress: readonly Progress[]): void;
  failed(error: SeoError): void;
  recovered(): void;
}

export interface MemberOptions {
  lease: Lease;
  /** Milliseconds for which a message, or the first connection, waits for the server. */
  patience: number;
  clock: Clock;
  connect: typeof connect;
  /** Gets a sentence if the server should be set otherwise. */
  warn(sentence: string): void;
}

/** The data of the job `lead`: what the machine that leads says of its nodes. */
interface News {
  holder: string;
  /** JSON: by node, its batches. */
  progress: string;
  /** It leads only because no other machine does. */
  away?: boolean;
  padding?: string | undefined;
}

/** The time for which a machine leads. Times are in milliseconds. */
interface Term {
  holder: string;
  began: number;
  /** When the others were told the news, and whether there is more. */
  told: number;
  changed: boolean;
  timer: NodeJS.Timeout;
  giveBack(): Promise<unknown>;
}

type Link = Awaited<ReturnType<typeof openLink>>;

const LEAD = "lead";
/** How often, in the time that a lock lasts, the lead looks for letters, others look at the lead, and those that wait for an answer. */
const LEADING = 20;
const STANDING_BY = 10;
const WAITING = 40;
const MINUTE = 60_000;
/** For so long, a machine that has handed over does not lead, unless nobody has taken the lead for some seconds. */
const AWAY = 15 * MINUTE;
const GOODBYE = 2000;
/** Bytes: more than fits into the space that a full disk has left. */
const PADDING = 24_000;

/** A queue's name; no colon is allowed. */
const named = (id: string, what = "") => `${id.replace(/[^\w-]/g, "_")}${what}`;

async function openLink(place: Place, service: string, { lease, patience, connect, warn }: MemberOptions) {
  const server = await connect(place, patience);
  try {
    if (server.warning) warn(server.warning);
    const leads = server.queue(named(service, "-lead"));
    const worker = server.worker(named(service, "-lead"), lease);
    const news: News = { holder: "", progress: "{}" };
    await leads.add(LEAD, news, { jobId: LEAD });
    await worker.startStalledCheckTimer();
    return { server, letters: server.queue(named(service)), leads, worker };
  } catch (cause) {
    await server.close();
    throw cause;
  }
}

/**
 * One of the machines that share the batches of an SEO service. If it holds the lock of the job `lead`, it leads: it works on
 * all batches, and handles the letters of all machines. Otherwise it stands by.
 */
export class Member {
  readonly post: ReturnType<typeof createPost>;
  readonly #open: () => Promise<Link>;
  readonly #place: Place;
  readonly #options: MemberOptions;
  readonly #token = newName();
  readonly #hosts = new Map<string, Host>();
  /** Jobs of nodes that this process does not have. It hands over once for each that is open. */
  readonly #others = new Set<string>();
  #link: Link | undefined;
  /** Why the queue cannot be used until it is opened again. */
  #lost: SeoError | undefined;
  /** Set while it leads. */
  #term: Term | undefined;
  /** By node, what is known of its batches. */
  #news: Record<string, readonly Progress[]> = {};
  #handedOver = Number.NEGATIVE_INFINITY;
  /** The machine that was asked to give the lead back. */
  #asked = "";
  /** Since when nobody leads, as a machine knows that has handed over. */
  #unclaimed: number | undefined;
  #ending: Promise<unknown> = Promise.resolve();
  readonly #running: Promise<void>;
  #closed = false;
  #wake = () => {};

  constructor(place: Place, service: string, options: MemberOptions) {
    this.#place = place;
    this.#options = options;
    this.#open = () => openLink(place, service, options);
    const letters = () => {
      if (this.#lost) throw this.#lost;
      return this.#link?.letters;
    };
    const { patience } = options;
    this.post = createPost({ letters, toError: this.#toError, patience, added: () => this.#wake() });
    this.#running = this.#run();
  }

  join(node: string, host: Host): void {
    this.#hosts.set(node, host);
    if (!this.#term) return;
    this.#news[node] = [];
    host.begin(this.#openStore(node));
  }

  /** A node is gone. The last one gives the lead back, and ends the connection. */
  async leave(node: string): Promise<void> {
    this.#hosts.delete(node);
    delete this.#news[node];
    if (this.#hosts.size > 0) return;
    this.#closed = true;
    this.#wake();
    const ended = await Promise.race([this.#running.then(() => true), sleep(GOODBYE, false, { ref: false })]);
    if (!ended) await this.#link?.server.close(false);
  }

  /** What is known of a node's batches. */
  progress = (node: string): readonly Progress[] => this.#news[node] ?? [];

  /** Has the other machines know how far a batch is. A finished one is known until another one continues. */
  tell(node: string, progress: Progress): void {
    const others = this.progress(node).filter(({ batch, finished }) => batch !== progress.batch && !finished);
    this.#news[node] = [...others, progress];
    if (this.#term) this.#term.changed = true;
  }

  /** This machine cannot do the work: another one is to lead. Not again for a while, because it may be alone. */
  handOver(): void {
    if (!this.#term || this.#isAway()) return;
    this.#handedOver = this.#options.clock.now();
    // Without the key, it is not known which reports are new: what is lost now would stay uncertain.
    void Promise.all(Array.from(this.#hosts.values(), (host) => host.drain())).then(() => this.#stepDown());
  }

  /** It has handed over, and leads only if nobody else does. */
  #isAway = (): boolean => this.#options.clock.now() - this.#handedOver < AWAY;

  #openStore = (node: string) => () => {
    if (!this.#link || !this.#term) throw taken;
    return openStore(this.#link.letters, node, {
      toError: this.#toError,
      gone: this.#gone,
      probe: this.#probe,
      yield: () => {
        if (this.#isAway()) void this.#stepDown();
      },
    });
  };

  /** What went wrong, as an engine wants it. Some of that ends this machine's turn, or the use of the queue. */
  #toError = (cause: unknown): SeoError => {
    const names = Object.values(this.#news).flatMap((all) =>
      all.filter((one) => !one.finished).map((one) => one.batch),
    );
    const error = fromServer(cause, new URL(this.#place.url), [...new Set(names)]);
    if (error === taken) void this.#stepDown();
    else if (!this.#lost && (isLoss(cause) || (error !== cause && !(error instanceof Trouble)))) {
      this.#lost = error;
      this.#wake();
    }
    return error;
  };

  /** Who leads; undefined if the server has lost its data. */
  async #leader(): Promise<string | undefined> {
    return ((await this.#link?.leads.getJob(LEAD))?.data as News | undefined)?.holder;
  }

  #gone = async (): Promise<unknown> => {
    const leader = await this.#leader();
    return leader === undefined || leader === this.#term?.holder ? lostData : taken;
  };

  async #tell(padding?: string): Promise<void> {
    const term = this.#term;
    const job = await this.#link?.leads.getJob(LEAD);
    if (!term) throw taken;
    if (!job) throw lostData;
    Object.assign(term, { told: performance.now(), changed: false });
    const news: News = {
      holder: term.holder,
      progress: JSON.stringify(this.#news),
      away: this.#isAway(),
      padding,
    };
    await job.updateData(news);
  }

  // PostgreSQL would compress a text that repeats.
  #probe = () => this.#tell(randomBytes(PADDING / 2).toString("hex"));

  async #run(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#ending;
        this.#link ??= await this.#open();
        if (this.#closed) break;
        await (this.#term ? this.#lead(this.#link) : this.#standBy(this.#link));
        if (!this.#lost) for (const host of this.#hosts.values()) host.recovered();
      } catch (cause) {
        const error = this.#toError(cause);
        if (!this.#link && isHopeless(error)) this.#lost = error;
        if (error !== taken && error !== cancelled) for (const host of this.#hosts.values()) host.failed(error);
      }
      if (this.#lost && !this.#closed) await this.#recover(this.#lost);
      else if (!this.#closed) await this.#rest();
    }
    await this.#stepDown();
    await this.#link?.server.close();
  }

  async #rest(): Promise<void> {
    const times = this.#term ? LEADING : this.post.isWaiting() ? WAITING : STANDING_BY;
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await Promise.race([woken, sleep(this.#options.lease.lockDuration / times)]);
  }

  async #standBy({ leads, letters, worker }: Link): Promise<void> {
    const job = await leads.getJob(LEAD);
    if (!job) throw lostData;
    const { holder, progress, away } = job.data as News;
    this.#news = JSON.parse(progress);
    for (const [node, host] of this.#hosts) host.show(this.progress(node));
    await this.post.read(letters);
    if (await this.#staysAway(job)) return;
    const lead = await worker.getNextJob(this.#token, { block: false });
    if (lead) this.#begin(lead);
    else if (away && holder !== this.#asked) this.#ask(holder);
  }

  /** A machine that has handed over leads again if nobody else does. */
  async #staysAway(job: Job): Promise<boolean> {
    if (!this.#isAway()) return false;
    this.#unclaimed = (await job.getState()) === "active" ? undefined : (this.#unclaimed ?? performance.now());
    return this.#unclaimed === undefined || performance.now() - this.#unclaimed < this.#options.lease.lockDuration / 2;
  }

  /** Has a machine that leads only because no other one does give the lead back. */
  #ask(holder: string): void {
    this.#asked = holder;
    for (const node of this.#hosts.keys()) this.post.send(node, { do: "work" }).catch(() => {});
  }

  #begin(lead: Job): void {
    this.#term = {
      holder: newName(),
      began: performance.now(),
      told: 0,
      changed: true,
      timer: setInterval(() => void this.#renew().catch(this.#toError), this.#options.lease.lockDuration / 3),
      giveBack: () => lead.moveToWait(this.#token),
    };
    this.#unclaimed = undefined;
    this.#news = Object.fromEntries(Array.from(this.#hosts.keys(), (node) => [node, []]));
    for (const [node, host] of this.#hosts) host.begin(this.#openStore(node));
  }

  /** Redis forgets a lock while it is away: then the job is free, and whoever is first has it. */
  async #renew(): Promise<void> {
    const { worker } = this.#link as Link;
    const [lost] = await worker.extendJobLocks([LEAD], [this.#token], this.#options.lease.lockDuration);
    if (lost === undefined || !this.#term || (await worker.getNextJob(this.#token, { block: false }))) return;
    const leader = await this.#leader();
    if (leader === undefined) throw lostData;
    if (leader !== this.#term.holder) throw taken;
  }

  async #lead({ letters }: Link): Promise<void> {
    const term = this.#term as Term;
    const { lockDuration } = this.#options.lease;
    if (term.changed && performance.now() - term.told > lockDuration / STANDING_BY) await this.#tell();
    const ids = await letters.getRanges(["wait"], 0, -1, true);
    for (const [node, host] of this.#hosts) {
      const own = ids.filter((id) => id.startsWith(prefixOf(node)));
      await host.handle(own, this.post.answer);
    }
    // The nodes of a process do not start at the same moment.
    if (performance.now() - term.began < lockDuration / 2) return;
    const nodes = Array.from(this.#hosts.keys(), (node) => prefixOf(node));
    for (const id of ids) {
      if (this.#others.has(id) || nodes.some((prefix) => id.startsWith(prefix))) continue;
      this.#others.add(id);
      if (await isOpen(letters, id)) this.handOver();
    }
  }

  /** Ends the work of this machine, and lets another one lead. */
  #stepDown(why?: SeoError): Promise<unknown> {
    const term = this.#term;
    if (!term) return this.#ending;
    this.#term = undefined;
    clearInterval(term.timer);
    const ended = Promise.all(Array.from(this.#hosts.values(), (host) => host.end(why)));
    this.#ending = ended.then(term.giveBack).catch(() => {});
    return this.#ending;
  }

  /** Opens the queue again, a minute later. */
  async #recover(why: SeoError): Promise<void> {
    for (const host of this.#hosts.values()) host.failed(why);
    const shown = (one: Progress): Progress => (one.finished ? one : { ...one, paused: why.message });
    if (this.#term) await this.#stepDown(why);
    else for (const [node, host] of this.#hosts) host.show(this.progress(node).map(shown));
    await this.#link?.server.close(false);
    this.#link = undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#options.clock.later(MINUTE, resolve);
    });
    this.#lost = undefined;
  }
}

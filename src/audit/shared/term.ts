import { randomBytes } from "node:crypto";
import type { SeoError } from "../../errors.js";
import { createSequence } from "../../turns.js";
import { deposed } from "../trouble.js";
import { lostData } from "./faults.js";
import type { Host } from "./host.js";
import { isUnfinished, prefixOf } from "./letter.js";
import type { Link, News } from "./link.js";
import { isMissing, newName, readLines } from "./log.js";
import type { Lease } from "./server.js";
import { QueueStore } from "./store.js";

interface Machine {
  hosts: ReadonlySet<Host>;
  options: { lease: Lease };
  fail(cause: unknown): SeoError;
  offer(): void;
  isOffering(): boolean;
  others: Set<string>;
}

/** Bytes: more than fits into the space that a full disk has left. */
const PADDING = 24_000;

const textOf = ({ holder, progress, offered }: News) => JSON.stringify({ holder, progress, offered });

/** The time for which this machine leads: it works on the batches of all nodes that it has, and handles their letters. */
export function createTerm(machine: Machine, link: Link, release: () => Promise<unknown>) {
  const { hosts, others } = machine;
  const { lockDuration } = machine.options.lease;
  const holder = newName();
  const began = performance.now();
  /** The news that the others have. */
  let published = "";
  let ended: Promise<unknown> | undefined;
  const inOrder = createSequence();
  const timer = setInterval(() => void inOrder(renew).catch(fail), lockDuration / 3);

  /** Ends the term if another machine leads. Returns the exception as an engine wants it. */
  function fail(cause: unknown): SeoError {
    const error = machine.fail(cause);
    if (error === deposed) void end();
    return error;
  }

  const reject = (cause: unknown) => Promise.reject(fail(cause));

  function end(): Promise<unknown> {
    clearInterval(timer);
    // A renewal in progress can acquire the lock once more.
    ended ??= Promise.all([inOrder(() => {}), ...Array.from(hosts, (host) => host.end())])
      .then(release)
      .catch(() => {});
    return ended;
  }

  /** Without the key, it is not known which reports are new: what is lost now would stay uncertain. */
  const handOver = () => Promise.all(Array.from(hosts, (host) => host.drain())).then(end);

  /** Whether the news are this machine's. A late write can have replaced them by older ones, so they are read. */
  async function isLed(): Promise<boolean> {
    const { data, progress: requested } = await link.lead();
    if (data.holder === holder) published = textOf(data);
    if (requested === holder && !ended) void handOver();
    return data.holder === holder;
  }

  /** Redis forgets a lock while it is away: then the job is free, and whoever is first has it. */
  async function renew(): Promise<void> {
    if (ended) return;
    const isOurs = (await link.renew()) || ended || (await link.acquire());
    if (!(await isLed()) && !isOurs) throw deposed;
  }

  function news(): News {
    const byNode = Object.fromEntries(Array.from(hosts, (host) => [host.options.node, host.latest()]));
    return { holder, progress: JSON.stringify(byNode), offered: machine.isOffering() };
  }

  async function publish(padding?: string): Promise<void> {
    const job = await link.lead();
    // Another machine may have come after: what it says must stay.
    if (ended || (published !== "" && job.data.holder !== holder)) throw deposed;
    const now = news();
    await job.updateData({ ...now, padding }).catch((cause) => {
      throw isMissing(cause) ? lostData : cause;
    });
    published = textOf(now);
  }

  function begin(host: Host): void {
    if (ended) return;
    const gone = async () => ((await isLed()) ? lostData : deposed);
    // PostgreSQL would compress a text that repeats.
    const probe = () => publish(randomBytes(PADDING / 2).toString("hex")).catch(reject);
    host.begin((isOver) => new QueueStore(link.jobs, host.options.node, { fail, isOver, gone, probe }).load());
  }

  /** Does what there is to do now. */
  async function work(): Promise<void> {
    if (published !== textOf(news())) await publish();
    const ids = await link.jobs.getRanges(["wait"], 0, -1, true);
    for (const host of hosts) await host.handle(ids);
    // The nodes of a process do not start at the same moment.
    if (performance.now() - began < lockDuration / 2) return;
    const nodes = Array.from(hosts, ({ options }) => prefixOf(options.node));
    for (const id of ids) {
      if (others.has(id) || nodes.some((prefix) => id.startsWith(prefix))) continue;
      const isMeant = isUnfinished(await readLines(link.jobs, id));
      others.add(id);
      if (isMeant) machine.offer();
    }
  }

  for (const host of hosts) begin(host);

  return {
    begin,
    end,
    isOver: () => ended !== undefined,
    work: () => work().catch(reject),
  };
}

export type Term = ReturnType<typeof createTerm>;

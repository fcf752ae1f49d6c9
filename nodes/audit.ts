import { resolve } from "node:path";
import type { Node, NodeAPI } from "node-red";
import type { Audit, AuditOptions } from "../src/audit/audit.js";
import type { Control } from "../src/audit/entries.js";
import type { FindJournals } from "../src/audit/failures.js";
import { mayHaveJournals } from "../src/audit/folder.js";
import type { Result } from "../src/audit/options.js";
import type { Progress } from "../src/audit/progress.js";
import type { Client } from "../src/client.js";
import { invalidParams, type SeoError } from "../src/errors.js";
import type { Existing } from "../src/existing.js";
import { audit as row } from "../src/operations.js";
import { createSequence } from "../src/turns.js";
import { closeCards, controlIn, openCards, registerCards, type Watched } from "./audits.js";
import { chosen, resolved } from "./config.js";
import { SECOND } from "./figures.js";
import { closeIfGone, placeOf, whenRestarted } from "./flows.js";
import { complete, forNodeRed, serviceOf, toError } from "./handler.js";
import { AuditStatus } from "./progress.js";
import type { QueueNode } from "./queue.js";
import { type Config, createSources, type Message, thrownText } from "./sources.js";

const TYPE = "seo-report-audit";
const FOLDER = "seo-reports";

/** A list is not read at once, and has other errors than a parameter. */
const { pages: _, ...params } = row.params;
const settings = { ...row, params };

/** The tools to work on batches; they are loaded with the first message, or if there may be batches. */
interface OpenAudit {
  client: Client;
  audit: Audit;
}

class AuditNode implements Watched {
  readonly #RED: NodeAPI;
  readonly #node: Node & { _alias?: string };
  readonly #config: Config;
  readonly #read: ReturnType<typeof createSources>;
  readonly #status: AuditStatus;
  readonly #folder: string;
  /** The place where the flows say that the batches are, and the name of that place for a person. */
  readonly #place: string;
  readonly #where: string;
  readonly #isGone: () => boolean;
  /** Errors that a Catch node got with a message. */
  readonly #reported = new WeakSet<SeoError>();
  readonly #inOrder = createSequence();
  #tools: Promise<OpenAudit> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #incomplete = 0;
  #closing: Promise<void> | undefined;
  isClosed = false;

  constructor(RED: NodeAPI, node: Node & { _alias?: string }, config: Config) {
    this.#RED = RED;
    this.#node = node;
    this.#config = config;
    this.#read = createSources(RED, node, row, config);
    this.#status = new AuditStatus(RED, node, openCards(node.id, this));
    this.#folder = resolve(RED.settings.userDir ?? ".", String(config.folder ?? "").trim() || FOLDER);
    this.#place = this.#placeNow();
    this.#isGone = closeIfGone(RED, node);
    whenRestarted(RED, node, [config.service, config.queue], () => {
      const closed = this.#tools && this.#stop().catch(() => {});
      this.#tools = undefined;
      this.#begin(closed);
    });
    const queue = RED.nodes.getNode(String(config.queue ?? "")) as Node | null;
    this.#where = queue?.name || queue?.id || this.#folder;
    node.on("input", (msg: Message, _send, done) => void this.#receive(msg, done));
    node.on("close", (_removed: boolean, done: () => void) => {
      this.#closing ??= this.#close().catch((cause) => node.error(thrownText(cause)));
      void this.#closing.then(done);
    });
    if (!this.#begin()) this.#status.batches = this.batches().filter(({ finished }) => finished);
  }

  /** Opens the audit if there may be batches: another machine may have begun one in the queue. `closed`: the end of the audit before. */
  #begin(closed?: Promise<unknown>): boolean {
    const isNeeded = Boolean(closed || this.#config.queue) || mayHaveJournals(this.#folder, this.#node.id);
    if (isNeeded) this.#open(closed).catch((cause) => this.#fail(toError(cause)));
    return isNeeded;
  }

  errors = () => this.#status.errors();
  batches = () => this.#status.batches;

  async #receive(msg: Message, done: (error?: Error) => void): Promise<void> {
    this.#incomplete++;
    const error = await this.#handle(msg).then(() => undefined, toError);
    if (error) {
      if (this.isClosed) return;
      this.#reported.add(error);
      this.#status.failed(error);
    }
    this.#incomplete--;
    complete(this.#node, msg, done, error);
  }

  /** Messages reach the audit in the order in which they were received, although a list takes time to read. */
  async #handle(msg: Message): Promise<void> {
    const how = controlIn(msg);
    const source = msg.batch === undefined || msg.batch === null ? "topic" : "batch";
    const act = await this.#inOrder(() =>
      how ? () => this.control(how, msg[source], `msg.${source}`) : this.#readList(msg),
    );
    await act();
  }

  /** Opens the audit, which continues the batches of an earlier process. */
  #open(closed?: Promise<unknown>): Promise<OpenAudit> {
    const tools = this.#tools ?? this.#load(closed);
    this.#tools = tools;
    tools.catch(() => {
      if (this.#tools === tools) this.#tools = undefined;
    });
    return tools;
  }

  /** The modules of the audit are loaded here. */
  async #load(closed?: Promise<unknown>): Promise<OpenAudit> {
    await closed;
    const service = serviceOf(this.#RED, this.#config);
    resolved(this.#config.folder, "folder");
    const queue = chosen<QueueNode>(this.#RED, this.#config.queue, "queue");
    const [client, { requestsOf }, { readSettings }] = await Promise.all([
      service.client(),
      import("../src/audit/requests.js"),
      import("../src/schema.js"),
    ]);
    const { share } = readSettings(row.options, this.#config, "SEO_CONFIG");
    const most = share === undefined ? Math.max(1, client.concurrency - 1) : Number(share);
    const options = {
      connect: (changed: () => void) => requestsOf(client, most, changed),
      share: most,
      earlier: this.batches(),
      result: (result: Result) => this.#sendResult(result),
      progress: (progress: Progress, all: readonly Progress[]) => this.#sendProgress(progress, all),
      failed: (error: SeoError, batch?: string) => this.#fail(error, batch),
      recovered: (opened: boolean) => {
        if (!this.isClosed) this.#status.succeeded({ opened });
      },
    };
    const audit = queue ? await this.#openShared(queue, options) : await this.#openLocal(options);
    const refresh = async () => this.#status.update(await audit.progress());
    this.#timer = setInterval(() => void refresh().catch(() => {}), SECOND);
    return { client, audit };
  }

  /** An audit whose batches are on this machine. */
  async #openLocal(options: Omit<AuditOptions, "open">): Promise<Audit> {
    const [{ createAudit }, { openFiles }] = await Promise.all([
      import("../src/audit/audit.js"),
      import("../src/audit/files.js"),
    ]);
    return createAudit({ ...options, open: (lost) => openFiles(this.#folder, this.#node.id, lost) });
  }

  /** An audit whose batches are in a queue, for whichever machine leads. */
  async #openShared(queue: QueueNode, options: Omit<AuditOptions, "open">): Promise<Audit> {
    this.#status.connecting();
    const shared = await queue.shared();
    return shared.createAudit({
      ...options,
      node: this.#node.id,
      service: String(this.#config.service),
      standBy: (all, due) => {
        if (this.isClosed) return;
        this.#status.update(all, true);
        // Only the lead's says that a batch has finished, so that a flow acts once.
        for (const progress of due) this.#send({ ...progress, finished: false });
      },
      warn: (sentence) => this.#node.warn(sentence),
    });
  }

  /** Controls a batch, or all. Rejects if there is nothing to control. */
  async control(how: Control, name: unknown, from: string): Promise<void> {
    const { client, audit } = await this.#open();
    const { batch } = client.validate(settings, { batch: name }, { batch: from });
    const count = await audit[how](batch);
    if (count === 0 && batch !== undefined) {
      const name = JSON.stringify(batch);
      const or = how === "retry" ? "no page of it has failed" : "it has finished";
      throw invalidParams({ batch: `There is nothing to ${how}: no batch is named ${name}, or ${or}.` });
    }
    this.#status.succeeded({ reset: how === "reset", batch });
    this.#status.update(await audit.progress());
  }

  /** The journals of this node. The connection of its audit reads those in a queue. */
  async journals(): Promise<FindJournals> {
    const { id } = this.#node;
    const queue = chosen<QueueNode>(this.#RED, this.#config.queue, "queue");
    if (queue) return (await queue.shared()).journals(id, String(this.#config.service));
    const { journalsIn } = await import("../src/audit/failures.js");
    return journalsIn(this.#folder, id);
  }

  /** Reads a list. Returns how to add it. */
  async #readList(msg: Message): Promise<() => Promise<unknown>> {
    const { client } = await this.#open();
    const { readRows } = await import("../src/audit/rows.js");
    const { input, from } = await this.#read(msg);
    const { pages, ...rest } = input;
    const { batch = "default", existing = "regenerate", maxAge, privacy } = client.validate(settings, rest, from);
    const list = {
      batch,
      rows: readRows(pages, String(from.pages)),
      settings: { existing: existing as Existing, maxAge: maxAge === undefined ? undefined : Number(maxAge), privacy },
    };
    return async () => (await this.#open()).audit.add(list);
  }

  #sendResult({ record, input, ...rest }: Result): void {
    if (this.isClosed) return;
    const topic = rest.batch;
    const seo = { operation: TYPE, ...rest };
    try {
      this.#node.send([{ topic, payload: record, seo: { ...seo, input } }, null]);
    } catch (cause) {
      // Node-RED clones messages, which fails if a row is nested too deeply.
      this.#node.error(`A message could not be sent: ${thrownText(cause)}`, { topic, seo });
    }
  }

  #sendProgress(progress: Progress, all: readonly Progress[]): void {
    if (this.isClosed) return;
    this.#status.update(all, false);
    this.#send(progress);
  }

  #send(progress: Progress): void {
    this.#node.send([null, { topic: progress.batch, payload: progress }]);
  }

  /** Reports an error of a batch, or of the whole node. */
  #fail(error: SeoError, batch?: string): void {
    if (this.isClosed) return;
    this.#status.failed(error, batch);
    const named = batch !== undefined && { batch };
    // A message that needs the folder at the same time reports the same error.
    setImmediate(() => {
      if (this.isClosed || this.#reported.has(error)) return;
      const seo = { operation: TYPE, ...named, error: error.toJSON() };
      this.#node.error(forNodeRed(error), { ...(named && { topic: batch }), seo });
    });
  }

  #placeNow(): string {
    return placeOf(this.#RED, this.#node._alias ?? this.#node.id);
  }

  /** Ends the work on batches, also if it is still beginning. Returns how many rows wait. */
  async #stop(): Promise<number> {
    const { audit } = (await this.#tools?.catch(() => undefined)) ?? {};
    clearInterval(this.#timer);
    return (await audit?.close()) ?? 0;
  }

  /**
   * Ends everything, and removes the files if the node was removed. A queue is also that of other machines. If the batches are
   * elsewhere from now on, a warning says what was left behind.
   */
  async #close(): Promise<void> {
    this.isClosed = true;
    const warn = (text: string, values: Record<string, string | number>) =>
      this.#node.warn(this.#RED._(`seo-reports.status.${text}`, values));
    const waiting = await this.#stop().finally(() => {
      if (this.#incomplete > 0) warn("dropped", { count: this.#incomplete });
      this.#status.close();
    });
    // Node-RED says `removed` of a node that is disabled, too, and never of one in a subflow, or that was moved into one.
    const isGone = this.#isGone();
    closeCards(this.#node.id, this, isGone);
    if (!isGone && waiting > 0 && this.#placeNow() !== this.#place)
      warn("pagesLeft", { count: waiting, where: this.#where });
    if (!isGone || !mayHaveJournals(this.#folder, this.#node.id)) return;
    const { removeFiles } = await import("../src/audit/files.js");
    const count = await removeFiles(this.#folder, this.#node.id);
    if (count > 0) warn("pagesDropped", { count });
  }
}

export function registerAudit(RED: NodeAPI): void {
  registerCards(RED);
  RED.nodes.registerType(TYPE, function (this: Node, config: Config) {
    RED.nodes.createNode(this, config);
    new AuditNode(RED, this, config);
  });
}

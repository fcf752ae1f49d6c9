import { resolve } from "node:path";
import type { Node, NodeAPI } from "node-red";
import type { Audit, AuditOptions } from "../src/audit/audit.js";
import { mayHaveJobs } from "../src/audit/folder.js";
import type { Progress } from "../src/audit/progress.js";
import type { readRows } from "../src/audit/rows.js";
import type { Result } from "../src/audit/work.js";
import type { Client } from "../src/client.js";
import { invalidParams, SeoError } from "../src/errors.js";
import type { Existing } from "../src/existing.js";
import { audit as row } from "../src/operations.js";
import { chosen, resolved } from "./config.js";
import { isInFlows, placeOf } from "./flows.js";
import { type Config, forNodeRed, noService, reportOn } from "./handler.js";
import { createProgress } from "./progress.js";
import type { QueueNode } from "./queue.js";
import type { ServiceNode } from "./service.js";
import { createSources, type Message, reasonOf } from "./sources.js";

const TYPE = "seo-report-audit";
const FOLDER = "seo-reports";

const controls = ["pause", "resume", "retry", "reset"] as const;

/** How a message controls a batch: only by `true`, because other nodes leave values, such as the http request node's `retry: 0`. */
const controlIn = (msg: Message) => controls.find((name) => msg[name] === true);

/** A list is not read at once, and has other errors than a parameter. */
const { pages: _, ...params } = row.params;
const settings = { ...row, params };

export function registerAudit(RED: NodeAPI): void {
  RED.nodes.registerType(TYPE, function (this: Node & { _alias?: string }, config: Config) {
    RED.nodes.createNode(this, config);
    const node = this;
    const service = RED.nodes.getNode(String(config.service ?? "")) as ServiceNode | null;
    const read = createSources(RED, node, row, config);
    const status = createProgress(RED, node);
    const folder = resolve(RED.settings.userDir ?? ".", String(config.folder ?? "").trim() || FOLDER);
    const place = placeOf(RED, node._alias ?? node.id);
    /** Errors that a Catch node got with a message. */
    const answered = new WeakSet<SeoError>();
    let tools: Promise<{ client: Client; audit: Audit; readRows: typeof readRows }> | undefined;
    let where = folder;
    let unanswered = 0;
    let closed = false;

    const toError = (cause: unknown) =>
      cause instanceof SeoError
        ? cause
        : new SeoError("SEO_INPUT", `The message could not be processed: ${reasonOf(cause)}`);

    function fail(error: SeoError, batch?: string): void {
      if (closed) return;
      status.failed(error, batch);
      const named = batch !== undefined && { batch };
      // A message that needs the folder at the same time reports the same error.
      setImmediate(() => {
        if (closed || answered.has(error)) return;
        const seo = { operation: TYPE, ...named, error: error.toJSON() };
        node.error(forNodeRed(error), { ...(named && { topic: batch }), seo });
      });
    }

    function tell({ record, input, ...rest }: Result): void {
      if (closed) return;
      const topic = rest.batch;
      const seo = { operation: TYPE, ...rest };
      try {
        node.send([{ topic, payload: record, seo: { ...seo, input } }, null]);
      } catch (cause) {
        // Node-RED clones messages, which fails if a row is nested too deeply.
        node.error(`A message could not be sent: ${reasonOf(cause)}`, { topic, seo });
      }
    }

    const sendProgress = (progress: Progress) => node.send([null, { topic: progress.batch, payload: progress }]);

    /** Opens the audit, which continues the batches of an earlier process. Its modules are loaded here. */
    async function load() {
      if (!service?.client) throw noService;
      resolved(config.folder, "folder");
      const queue = chosen<QueueNode>(RED, config.queue, "queue");
      where = queue?.name || queue?.id || folder;
      const [client, { createAudit }, { openFiles }, { requestsOf }, { readRows }, { readSettings }] =
        await Promise.all([
          service.client(),
          import("../src/audit/audit.js"),
          import("../src/audit/files.js"),
          import("../src/audit/requests.js"),
          import("../src/audit/rows.js"),
          import("../src/schema.js"),
        ]);
      if (queue) status.connecting();
      const { share } = readSettings(row.options, config, "SEO_CONFIG");
      const most = share === undefined ? Math.max(1, client.concurrency - 1) : Number(share);
      const options: Omit<AuditOptions, "open"> = {
        connect: (changed) => requestsOf(client, most, changed),
        share: most,
        result: tell,
        progress(progress) {
          if (closed) return;
          status.update(progress);
          sendProgress(progress);
        },
        failed: fail,
        recovered(opened) {
          if (!closed) status.succeeded({ opened });
        },
      };
      const audit = queue
        ? (await queue.shared()).createAudit({
            ...options,
            node: node.id,
            service: String(config.service),
            standBy(all, changed) {
              if (closed) return;
              status.standBy(all);
              for (const progress of changed) if (!progress.finished) sendProgress(progress);
            },
            warn: (sentence) => node.warn(sentence),
          })
        : createAudit({ ...options, open: (lost) => openFiles(folder, node.id, lost) });
      return { client, audit, readRows };
    }

    function open() {
      tools ??= load().catch((cause) => {
        tools = undefined;
        throw cause;
      });
      return tools;
    }

    async function control(msg: Message, how: (typeof controls)[number]): Promise<void> {
      const { client, audit } = await open();
      const source = msg.batch === undefined || msg.batch === null ? "topic" : "batch";
      const { batch } = client.validate(settings, { batch: msg[source] }, { batch: `msg.${source}` });
      const count = await audit[how](batch);
      if (count === 0 && batch !== undefined) {
        const name = JSON.stringify(batch);
        const or = how === "retry" ? "no page of it has failed" : "it has finished";
        throw invalidParams({ batch: `There is nothing to ${how}: no batch is named ${name}, or ${or}.` });
      }
      status.succeeded({ reset: how === "reset", batch });
      if (!config.queue) for (const progress of await audit.progress()) status.update(progress);
    }

    async function add(msg: Message): Promise<void> {
      const { client, audit, readRows } = await open();
      const { input, from } = await read(msg);
      const { pages, ...rest } = input;
      const { batch = "default", existing = "regenerate", maxAge, privacy } = client.validate(settings, rest, from);
      await audit.add({
        batch,
        rows: readRows(pages, String(from.pages)),
        settings: {
          existing: existing as Existing,
          maxAge: maxAge === undefined ? undefined : Number(maxAge),
          privacy,
        },
      });
    }

    function report(msg: Message, how: () => void): void {
      unanswered--;
      reportOn(node, { _msgid: msg._msgid, seo: msg.seo }, how);
    }

    node.on("input", (msg: Message, _send, done) => {
      unanswered++;
      const how = controlIn(msg);
      (how ? control(msg, how) : add(msg)).then(
        () => report(msg, done),
        (cause) => {
          if (closed) return;
          const error = toError(cause);
          answered.add(error);
          status.failed(error);
          // Of a frozen message it is not set; an assignment would throw.
          Reflect.set(msg, "seo", { operation: TYPE, error: error.toJSON() });
          report(msg, () => done(forNodeRed(error)));
        },
      );
    });

    /**
     * Ends everything, and removes the files if the node was removed. A queue is also that of other machines. If the jobs are
     * kept elsewhere from now on, a warning says what was left behind.
     */
    async function close(): Promise<void> {
      closed = true;
      const { audit } = (await tools?.catch(() => undefined)) ?? {};
      let waiting = 0;
      try {
        waiting = (await audit?.close()) ?? 0;
      } finally {
        if (unanswered > 0) node.warn(RED._("seo-reports.status.dropped", { count: unanswered }));
        status.close();
      }
      // Node-RED says `removed` of a node that is disabled, too, and never of one in a subflow, or that was moved into one.
      const gone = !isInFlows(RED, node.id);
      if (!gone && waiting > 0 && placeOf(RED, node._alias ?? node.id) !== place)
        node.warn(RED._("seo-reports.status.pagesLeft", { count: waiting, where }));
      if (!gone || !mayHaveJobs(folder, node.id)) return;
      const { removeFiles } = await import("../src/audit/files.js");
      const count = await removeFiles(folder, node.id);
      if (count > 0) node.warn(RED._("seo-reports.status.pagesDropped", { count }));
    }

    node.on("close", (_removed: boolean, done: () => void) => {
      void close()
        .catch((cause) => node.error(reasonOf(cause)))
        .then(done);
    });

    // Another machine may have begun a batch in the queue.
    if (config.queue || mayHaveJobs(folder, node.id)) open().catch((cause) => fail(toError(cause)));
  });
}

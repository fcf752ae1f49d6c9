import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Node, NodeAPI } from "node-red";
import type { Audit } from "../src/audit/audit.js";
import type { Progress } from "../src/audit/progress.js";
import type { Requests } from "../src/audit/requests.js";
import type { Result } from "../src/audit/work.js";
import type { Client } from "../src/client.js";
import { type Code, SeoError } from "../src/errors.js";
import type { Existing } from "../src/existing.js";
import { audit as row } from "../src/operations.js";
import type { readPages } from "../src/pages.js";
import type { createLane, createTask } from "../src/queue.js";
import { type Config, forNodeRed } from "./handler.js";
import type { ServiceNode } from "./service.js";
import { createSources, type Message, reasonOf } from "./sources.js";
import { span } from "./status.js";

const TYPE = "seo-report-audit";
/** How long a lost response is looked for if the service node does not say: milliseconds. */
const HORIZON = 300_000;
const FOLDER = "seo-reports";

const controls = ["pause", "resume", "retry", "reset"] as const;

/** What a message asks of a batch by a property of its own, as in Node-RED's own nodes. */
const controlIn = (msg: Message) => controls.find((name) => msg[name] !== undefined && msg[name] !== false);

interface Modules {
  createLane: typeof createLane;
  createTask: typeof createTask;
  readPages: typeof readPages;
}

/** The service as an audit uses it: everything that it sends belongs to one lane, whose end cancels it. */
function requestsOf(client: Client, { createLane, createTask, readPages }: Modules): Requests {
  const lane = createLane();
  const horizon = client.horizon || HORIZON;
  return {
    send: (type, input, options = {}) => client.send(type, input, { ...options, horizon, task: createTask(lane) }),
    async *pages(type, input) {
      const get = (extra: Record<string, string>) => client.send(type, input, { extra, task: createTask(lane) });
      for await (const { records, answer } of readPages(get, { id: "id", limit: 0, ahead: 0 }))
        yield { records, response: answer };
    },
    cancel: () => client.cancel(lane),
  };
}

/** Shows how far the batches of a node are: the sum of all, or why one of them cannot go on. */
function createAuditStatus(RED: NodeAPI, node: Node) {
  const batches = new Map<string, Progress>();
  const troubles = new Map<string, Code>();
  const figure = (value: number) => value.toLocaleString("en-US");

  function show(): void {
    const all = [...batches.values()];
    const sum = (of: (progress: Progress) => number) => figure(all.reduce((total, one) => total + of(one), 0));
    const figures = { done: sum(({ done }) => done), total: sum(({ total }) => total) };
    const [trouble] = troubles.values();
    const waiting = all.filter(({ finished }) => !finished);
    if (trouble) node.status({ fill: "red", shape: "ring", text: `seo-reports.error.${trouble}.status` });
    else if (waiting.length === 0) {
      const text = RED._("seo-reports.status.audited", { done: figures.done });
      node.status({ fill: "green", shape: "dot", text });
    } else if (waiting.every(({ paused }) => paused)) {
      node.status({ fill: "yellow", shape: "ring", text: RED._("seo-reports.status.auditPaused", figures) });
    } else {
      const left = Math.max(...waiting.map(({ secondsLeft }) => secondsLeft ?? Number.NaN));
      const text = Number.isFinite(left)
        ? RED._("seo-reports.status.audit", { ...figures, left: span(left * 1000) })
        : RED._("seo-reports.status.auditing", figures);
      node.status({ fill: "blue", shape: "dot", text });
    }
  }

  return {
    progress(progress: Progress): void {
      // A finished batch is shown until another one begins.
      for (const [name, { finished }] of batches) if (finished) batches.delete(name);
      batches.set(progress.batch, progress);
      if (!progress.paused) troubles.clear();
      show();
    },
    failed(code: Code, batch = ""): void {
      troubles.set(batch, code);
      show();
    },
  };
}

export function registerAudit(RED: NodeAPI): void {
  RED.nodes.registerType(TYPE, function (this: Node, config: Config) {
    RED.nodes.createNode(this, config);
    const node = this;
    const service = RED.nodes.getNode(String(config.service ?? "")) as ServiceNode | null;
    const read = createSources(RED, node, row, config);
    const status = createAuditStatus(RED, node);
    const userDir = RED.settings.userDir ?? ".";
    const folder = resolve(userDir, String(config.folder || FOLDER));
    const own = join(folder, node.id);
    let opened: Promise<Audit> | undefined;
    let closed = false;

    function fail(error: SeoError, batch?: string): void {
      if (closed) return;
      status.failed(error.code, batch);
      const seo = { operation: TYPE, ...(batch !== undefined && { batch }), error: error.toJSON() };
      node.error(forNodeRed(error), { ...(batch !== undefined && { topic: batch }), seo });
    }

    /** Opens the audit, which goes on with what an earlier process left. */
    async function load(): Promise<Audit> {
      if (!service?.client) throw new SeoError("SEO_CONFIG", "No SEO service is selected, or it is disabled.");
      const client = await service.client();
      const [{ createAudit }, { openFiles }, { readSettings }, pages, queue] = await Promise.all([
        import("../src/audit/audit.js"),
        import("../src/audit/files.js"),
        import("../src/schema.js"),
        import("../src/pages.js"),
        import("../src/queue.js"),
      ]);
      const { share } = readSettings(row.options, config, "SEO_CONFIG");
      return createAudit({
        open: (lost) => openFiles(folder, node.id, lost),
        requests: requestsOf(client, { ...pages, ...queue }),
        share: share === undefined ? Math.max(1, client.concurrency - 1) : Number(share),
        result({ record, ...seo }: Result) {
          if (!closed) node.send([{ topic: seo.batch, payload: record, seo: { operation: TYPE, ...seo } }, null]);
        },
        progress(progress) {
          if (closed) return;
          status.progress(progress);
          node.send([null, { topic: progress.batch, payload: progress }]);
        },
        failed: fail,
      });
    }

    const open = () => {
      opened ??= load().catch((error) => {
        opened = undefined;
        throw error;
      });
      return opened;
    };

    async function receive(msg: Message): Promise<void> {
      const audit = await open();
      const control = controlIn(msg);
      if (control) {
        const { batch = msg.topic } = msg;
        const name = batch === undefined || batch === "" ? undefined : String(batch);
        const count = await audit[control](name);
        if (count === 0 && name !== undefined)
          throw new SeoError("SEO_INPUT", `There is no batch ${JSON.stringify(name)}.`);
        return;
      }
      const { validateInput } = await import("../src/input.js");
      const { input, from } = await read(msg);
      const { pages, ...rest } = input;
      const { pages: _, ...params } = row.params;
      const { batch = "default", existing = "create", maxAge, privacy } = validateInput({ ...row, params }, rest, from);
      await audit.add({
        batch,
        pages,
        from: String(from.pages),
        settings: {
          existing: existing as Existing,
          maxAge: maxAge === undefined ? undefined : Number(maxAge),
          privacy,
        },
      });
    }

    node.on("input", (msg: Message, _send, done) => {
      receive(msg).then(
        () => done(),
        (cause) => {
          if (closed) return;
          const error =
            cause instanceof SeoError
              ? cause
              : new SeoError("SEO_INPUT", `The message could not be processed: ${reasonOf(cause)}`);
          status.failed(error.code);
          msg.seo = { operation: TYPE, error: error.toJSON() };
          done(forNodeRed(error));
        },
      );
    });

    node.on("close", (removed: boolean, done: () => void) => {
      const ended = async () => {
        const audit = await opened?.catch(() => undefined);
        if (!removed) return audit?.close();
        const count = (await audit?.remove()) ?? 0;
        await rm(own, { recursive: true, force: true });
        if (count > 0) node.warn(RED._("seo-reports.status.dropped", { count }));
      };
      closed = true;
      ended().then(done, (cause) => {
        node.error(reasonOf(cause));
        done();
      });
    });

    if (existsSync(own)) open().catch((error: SeoError) => fail(error));
  });
}

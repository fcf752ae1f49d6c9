import { setImmediate } from "node:timers/promises";
import type { NodeAPI } from "node-red";
import { SeoError } from "../src/errors.js";
import { findingsOf } from "../src/findings.js";
import { isIdle } from "../src/kinds.js";
import { type ListPage, readShape, type Shape } from "../src/lists.js";
import type { Operation, OutputName } from "../src/operations.js";
import { unwrap } from "../src/records.js";
import type { CallResponse } from "../src/responses.js";
import { submit } from "../src/submit.js";
import type { MessageTask, NodeSettings, Process, StatusText } from "./handler.js";
import { type Metadata, metadata, readAllPages } from "./reading.js";
import type { Message } from "./sources.js";

/** The facts that all messages of a node share. */
interface OutputContext {
  RED: NodeAPI;
  type: string;
  row: Operation;
  target: Target;
}

/** Sends a row's request and what comes of it; resolves with the status of the success. */
type Output = (task: MessageTask, context: OutputContext) => Promise<StatusText>;

const recordCount = (RED: NodeAPI, count: number, total: number | undefined) => () =>
  total === undefined
    ? RED._(`seo-reports.status.${count === 1 ? "record" : "records"}`, { count })
    : RED._("seo-reports.status.of", { count, total });

/** The place where messages get their results, as the option `target` says. */
function createTarget(RED: NodeAPI, target = "payload") {
  const path = RED.util.normalisePropertyExpression(target) as string[];
  const top = String(path[0]);
  return {
    /** Throws SEO_INPUT if the message has a value there that cannot get properties, or cannot be replaced. */
    check(msg: Message): void {
      let holder: unknown = msg;
      for (const [i, key] of path.entries()) {
        if (holder === undefined) return;
        const { writable, set = writable } = Object.getOwnPropertyDescriptor(Object(holder), key) ?? { writable: true };
        if (!Object.isExtensible(holder) || !set) {
          const place = ["msg", ...path.slice(0, i)].join(".");
          const reason = `${place} is not an object, or it is frozen.`;
          throw new SeoError("SEO_INPUT", `The result cannot be set in msg.${target}: ${reason}`);
        }
        holder = (holder as Message)[key];
      }
    },
    set: (msg: Message, result: unknown) => RED.util.setMessageProperty(msg, target, result, true),
    /** The message without what `set` replaces. */
    rest(msg: Message): Message {
      if (path.length > 1) return msg;
      const { [top]: _, ...rest } = msg;
      return rest;
    },
  };
}

type Target = ReturnType<typeof createTarget>;

/** Sends one request. */
const request = (task: MessageTask, type: string): Promise<CallResponse> =>
  submit(task.client, type, task.input, { task, method: task.settings.method });

/** The `msg.seo` of its response. */
function describe(task: MessageTask, type: string, response: CallResponse, shape?: Shape) {
  const duration = task.elapsed();
  // Also before the request: for admission, or for another message of the page.
  const waited = response.waited + duration - response.duration;
  return metadata(type, response, { attempts: response.attempts, duration, waited }, shape);
}

/** One request, one message. */
const single =
  (payload: (body: unknown) => unknown): Output =>
  async (task, { RED, type, row, target }) => {
    const { input, msg } = task;
    const response = await request(task, type);
    const shape = row.list ? readShape(response.body) : undefined;
    const { outcome = "created" } = response;
    task.send(response.attempts, () => {
      target.set(msg, payload(response.body));
      return Object.assign(msg, { seo: describe(task, type, response, shape) });
    });
    if (row.list) return recordCount(RED, shape?.records.length ?? 0, shape?.total);
    const idle = isIdle(row.params, row.effects ?? [], (name) => input[name]);
    const done = outcome === "created" ? row.done : outcome;
    return () => `seo-reports.status.${idle ? "unchanged" : done}`;
  };

/** The records of a response, and what was read so far. */
type Part = Pick<ListPage, "records" | "total"> & { count: number; seo: Metadata };

/** The record of one request, as the only page of a list. */
async function* readRecord(task: MessageTask, type: string): AsyncGenerator<Part> {
  const response = await request(task, type);
  yield { records: [unwrap(response.body)], total: undefined, count: 1, seo: describe(task, type, response) };
}

/** Reads all pages, and sends a message for each part of a page. */
const stream =
  (cut: (page: Part) => unknown[]): Output =>
  async (task, { RED, type, row, target }) => {
    const { parts, ...rest } = target.rest(task.msg);
    // A length above one makes the join node combine parts that are arrays into one array.
    const group = {
      id: RED.util.generateId(),
      type: "array",
      len: cut === wholePage ? 2 : 1,
      ...(parts ? { parts } : {}),
    };
    let index = 0;
    let pending: { payload: unknown; seo: Metadata } | undefined;
    // Each part waits for the next one: the last one has their number.
    const emit = (isLast: boolean) => {
      if (!pending) return;
      const { payload, seo } = pending;
      // Before it is sent, or it would be sent twice if that fails.
      pending = undefined;
      const place = { ...group, index, ...(isLast && { count: index + 1 }) };
      index++;
      task.send(seo.attempts, () => {
        const msg = RED.util.cloneMessage({ ...rest, seo, parts: place });
        target.set(msg, payload);
        return msg;
      });
    };
    let count = 0;
    let total: number | undefined;
    try {
      for await (const page of (row.list ? readAllPages : readRecord)(task, type, row)) {
        for (const payload of cut(page)) {
          emit(false);
          pending = { payload, seo: page.seo };
        }
        // Only the last page says so, and it can have no part.
        if (pending && page.seo.truncated) pending.seo = { ...pending.seo, truncated: true };
        ({ count, total } = page);
        // Lets the flow work on these records while the next page is in flight, so that they do not pile up.
        await setImmediate();
      }
    } catch (cause) {
      emit(false);
      throw cause;
    }
    emit(true);
    return recordCount(RED, count, total);
  };

const wholePage = ({ records }: Part) => (records.length > 0 ? [records] : []);

/** Sends a message for each failed check. */
const issues: Output = async (task, context) => {
  let checks = 0;
  let count = 0;
  const failed = ({ records }: Part) => {
    const findings = records.flatMap(findingsOf);
    const wrong = findings.filter(({ passed }) => !passed);
    checks += findings.length;
    count += wrong.length;
    return wrong.map(({ issue }) => issue());
  };
  await stream(failed)(task, context);
  const text = checks === 0 ? "noChecks" : count === 0 ? "noIssues" : undefined;
  if (text) return () => `seo-reports.status.${text}`;
  return () => context.RED._(`seo-reports.status.${count === 1 ? "issue" : "issues"}`, { count });
};

const outputs: Record<OutputName, Output> = {
  body: single((body) => body),
  data: single(unwrap),
  async all(task, { RED, type, row, target }) {
    const payload: unknown[] = [];
    let seo: Metadata = {};
    let total: number | undefined;
    for await (const page of readAllPages(task, type, row)) {
      for (const record of page.records) payload.push(record);
      ({ seo, total } = page);
    }
    task.send(seo.attempts, () => {
      target.set(task.msg, payload);
      return Object.assign(task.msg, { seo });
    });
    return recordCount(RED, payload.length, total);
  },
  pages: stream(wholePage),
  records: stream(({ records }) => records),
  issues,
};

/** Makes the function with which the node of one row processes a message. */
export function createOutput(RED: NodeAPI, type: string, row: Operation, settings: NodeSettings): Process {
  const context = { RED, type, row, target: createTarget(RED, settings.target) };
  const output = outputs[settings.output as OutputName];
  return (task) => {
    context.target.check(task.msg);
    return output(task, context);
  };
}

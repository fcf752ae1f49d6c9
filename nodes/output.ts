import { setImmediate } from "node:timers/promises";
import type { NodeAPI } from "node-red";
import { SeoError } from "../src/errors.js";
import { findingsOf } from "../src/findings.js";
import { isIdle } from "../src/kinds.js";
import type { Operation, OutputName } from "../src/operations.js";
import { type Page, readShape, type Shape } from "../src/pages.js";
import { unwrap } from "../src/records.js";
import { submit } from "../src/submit.js";
import type { Job, StatusText, Work } from "./handler.js";
import { type Found, metadata, readAllPages } from "./pages.js";
import type { Message } from "./sources.js";

/** Sends a row's request and what comes of it; resolves with the status of the success. */
type Output = (RED: NodeAPI, job: Job, target: Target, type: string, row: Operation) => Promise<StatusText>;

const figures = (RED: NodeAPI, count: number, total: number | undefined) => () =>
  total === undefined
    ? RED._(`seo-reports.status.${count === 1 ? "record" : "records"}`, { count })
    : RED._("seo-reports.status.of", { count, total });

/** Where messages get their results, as the option `target` says. */
interface Target {
  /** Throws SEO_INPUT if the message has a value there that cannot get properties. */
  check(msg: Message): void;
  set(msg: Message, result: unknown): void;
  /** The message without what `set` replaces. */
  rest(msg: Message): Message;
}

function createTarget(RED: NodeAPI, target = "payload"): Target {
  const path = RED.util.normalisePropertyExpression(target) as string[];
  const top = String(path[0]);
  function check(msg: Message): void {
    let holder: unknown = msg;
    for (const [i, key] of path.entries()) {
      if (holder === undefined) return;
      if (!Object.isExtensible(holder)) {
        const place = ["msg", ...path.slice(0, i)].join(".");
        const reason = `${place} is not an object, or it is frozen.`;
        throw new SeoError("SEO_INPUT", `The result cannot be set in msg.${target}: ${reason}`);
      }
      holder = (holder as Message)[key];
    }
  }
  if (path.length === 1) {
    return {
      check,
      set(msg, result) {
        msg[top] = result;
      },
      rest: ({ [top]: _, ...rest }) => rest,
    };
  }
  return {
    check,
    set: (msg, result) => RED.util.setMessageProperty(msg, target, result, true),
    rest: (msg) => msg,
  };
}

/** Sends one request. */
function request(job: Job, type: string, row: Operation): Promise<Found> {
  const { client, input } = job;
  const options = { task: job, method: job.settings.method };
  return row.params.existing ? submit(client, type, input, options) : client.send(type, input, options);
}

/** The `msg.seo` of its response. */
const describe = (job: Job, type: string, answer: Found, shape?: Shape) =>
  metadata(type, answer, answer.attempts, job.elapsed(), job.queued + answer.waited, shape);

/** One request, one message. */
const single =
  (payload: (body: unknown) => unknown): Output =>
  async (RED, job, target, type, row) => {
    const { input, msg } = job;
    const answer = await request(job, type, row);
    const shape = row.list ? readShape(answer.body) : undefined;
    const { outcome = "created" } = answer;
    target.set(msg, payload(answer.body));
    msg.seo = describe(job, type, answer, shape);
    job.send(msg);
    if (shape) return figures(RED, shape.records.length, shape.total);
    const idle = isIdle(row.params, row.effects ?? [], (name) => input[name]);
    const done = outcome === "created" ? row.done : outcome;
    return () => `seo-reports.status.${idle ? "unchanged" : done}`;
  };

/** The records of a response, and what was read so far. */
type Part = Pick<Page, "records" | "total"> & { count: number; seo: object };

/** The record of one request, as the only page of a list. */
async function* readRecord(job: Job, type: string, row: Operation): AsyncGenerator<Part> {
  const answer = await request(job, type, row);
  yield { records: [unwrap(answer.body)], total: undefined, count: 1, seo: describe(job, type, answer) };
}

/** Reads all pages, and sends a message for each part of a page. */
const stream =
  (cut: (page: Part) => unknown[]): Output =>
  async (RED, job, target, type, row) => {
    const { parts, ...rest } = target.rest(job.msg);
    // A length above one makes the join node combine parts that are arrays into one array.
    const group = {
      id: RED.util.generateId(),
      type: "array",
      len: cut === wholePage ? 2 : 1,
      ...(parts ? { parts } : {}),
    };
    let index = 0;
    let held: { payload: unknown; seo: object } | undefined;
    // Each part is held until the next one comes: the last one tells how many there are.
    const emit = (last: boolean) => {
      if (!held) return;
      const place = { ...group, index, ...(last && { count: index + 1 }) };
      index++;
      const msg = RED.util.cloneMessage({ ...rest, seo: held.seo, parts: place });
      target.set(msg, held.payload);
      job.send(msg);
      held = undefined;
    };
    let count = 0;
    let total: number | undefined;
    try {
      for await (const page of (row.list ? readAllPages : readRecord)(job, type, row)) {
        for (const payload of cut(page)) {
          emit(false);
          held = { payload, seo: page.seo };
        }
        ({ count, total } = page);
        // Lets the flow work on these records while the next page is in flight, so that they do not pile up.
        await setImmediate();
      }
    } catch (cause) {
      emit(false);
      throw cause;
    }
    emit(true);
    return figures(RED, count, total);
  };

const wholePage = ({ records }: Part) => (records.length > 0 ? [records] : []);

/** Sends a message for each failed check. */
const issues: Output = async (RED, ...message) => {
  let checks = 0;
  let count = 0;
  const failed = ({ records }: Part) => {
    const findings = records.flatMap(findingsOf);
    const wrong = findings.filter(({ passed }) => !passed);
    checks += findings.length;
    count += wrong.length;
    return wrong.map(({ issue }) => issue());
  };
  await stream(failed)(RED, ...message);
  const text = checks === 0 ? "noChecks" : count === 0 ? "noIssues" : undefined;
  if (text) return () => `seo-reports.status.${text}`;
  return () => RED._(`seo-reports.status.${count === 1 ? "issue" : "issues"}`, { count });
};

const outputs: Record<OutputName, Output> = {
  body: single((body) => body),
  data: single(unwrap),
  async all(RED, job, target, type, row) {
    const payload: unknown[] = [];
    let seo = {};
    let total: number | undefined;
    for await (const page of readAllPages(job, type, row)) {
      for (const record of page.records) payload.push(record);
      ({ seo, total } = page);
    }
    target.set(job.msg, payload);
    job.send(Object.assign(job.msg, { seo }));
    return figures(RED, payload.length, total);
  },
  pages: stream(wholePage),
  records: stream(({ records }) => records),
  issues,
};

/** What the node of one row does with a message. */
export function createWork(RED: NodeAPI, type: string, row: Operation): Work {
  let target: Target | undefined;
  return (job) => {
    target ??= createTarget(RED, job.settings.target);
    target.check(job.msg);
    return outputs[job.settings.output as OutputName](RED, job, target, type, row);
  };
}

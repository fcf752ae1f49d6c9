import { setImmediate } from "node:timers/promises";
import type { NodeAPI } from "node-red";
import { isIdle } from "../src/kinds.js";
import type { Operation } from "../src/operations.js";
import { type Page, readShape } from "../src/pages.js";
import { type Config, handleInput, type Job, type StatusText } from "./handler.js";
import { metadata, readAllPages } from "./pages.js";

/** Sends a row's request and what comes of it; resolves with the status of the success. */
type Output = (RED: NodeAPI, job: Job, type: string, row: Operation) => Promise<StatusText>;

const figures = (RED: NodeAPI, count: number, total: number | undefined) => () =>
  total === undefined
    ? RED._("seo-reports.status.records", { count })
    : RED._("seo-reports.status.of", { count, total });

/** One request, one message. */
const single =
  (payload: (body: unknown) => unknown): Output =>
  async (RED, { client, task, settings, input, msg, queued, elapsed, send }, type, row) => {
    const answer = await client.send(type, input, { task, method: settings.method });
    const shape = row.list ? readShape(answer.body) : undefined;
    msg.payload = payload(answer.body);
    msg.seo = metadata(type, { ...answer, duration: elapsed(), waited: queued + answer.waited }, shape);
    send(msg);
    if (shape) return figures(RED, shape.records.length, shape.total);
    const idle = isIdle(row.params, row.effects ?? [], (name) => input[name]);
    return () => `seo-reports.status.${idle ? "unchanged" : row.done}`;
  };

/** Reads all pages, and sends a message for each part of a page. */
const stream =
  (cut: (page: Page) => unknown[]): Output =>
  async (RED, job, type, row) => {
    const { payload: _, parts, ...rest } = job.msg;
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
      job.send({ ...RED.util.cloneMessage({ ...rest, seo: held.seo, parts: place }), payload: held.payload });
      held = undefined;
    };
    let count = 0;
    let total: number | undefined;
    try {
      for await (const page of readAllPages(job, type, row)) {
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

const wholePage = ({ records }: Page) => (records.length > 0 ? [records] : []);

/** By the values of the option `output` in the table. */
const outputs: Record<string, Output> = {
  body: single((body) => body),
  data: single((body) => (Object.hasOwn(Object(body), "data") ? (body as { data: unknown }).data : body)),
  async all(RED, job, type, row) {
    const payload: unknown[] = [];
    let seo = {};
    let total: number | undefined;
    for await (const page of readAllPages(job, type, row)) {
      for (const record of page.records) payload.push(record);
      ({ seo, total } = page);
    }
    job.send(Object.assign(job.msg, { payload, seo }));
    return figures(RED, payload.length, total);
  },
  pages: stream(wholePage),
  records: stream(({ records }) => records),
};

/** Registers the node of one row. */
export function registerOperation(RED: NodeAPI, type: string, row: Operation): void {
  RED.nodes.registerType(type, function (config: Config) {
    RED.nodes.createNode(this, config);
    handleInput(RED, this, type, row, config, (job) =>
      (outputs[String(job.settings.output)] as Output)(RED, job, type, row),
    );
  });
}

/**
 * How a message travels from a node to the wire and back:
 *
 * 1. The node reads the message's parameters (nodes/handler.ts, nodes/sources.ts), validates them (schema.ts) and calls `admit`.
 * 2. Gate 1, admission (scheduler.ts): the message waits in its node's lane; lanes take turns. Then the node starts its work
 *    (nodes/output.ts), which calls `request` once, or once for each page of a list (lists.ts), or looks for
 *    an existing report first (submit.ts). Each is a call (call.ts), whose steps are 3 to 6.
 * 3. A request that must not be repeated waits for others of its page, and for the newest report to be known (reconcile/).
 *    Gate 2, budget (scheduler.ts, budget.ts): each request acquires a slot, which the concurrency, the rate and pauses limit.
 * 4. http/ builds the request from the operation's row, sends it, and reads the response. Secrets are redacted there,
 *    where the service's words enter; the facts that decide what happens next are the client's own (errors.ts).
 * 5. After an error, retry.ts says whether the client pauses, and the slot is released. If the response of a request that must
 *    not be repeated was lost, reconcile/search.ts finds out what became of it. Then retry.ts says whether the call retries the request.
 * 6. `request` resolves with the response, the node sends its messages, and `end` cancels what the message still has in flight.
 */
import { performance } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";
import { Call, type ClientParts, type RequestOptions } from "./call.js";
import { type ClientOptions, readConfig } from "./config.js";
import { cancelled, oneLine } from "./errors.js";
import { createTransport } from "./http/transport.js";
import { readPages } from "./lists.js";
import { type NodeType, rowOf, service } from "./operations.js";
import { createReconciler } from "./reconcile/reconcile.js";
import type { CallResponse } from "./responses.js";
import { createLane, createTask, type Lane, type Queued, Scheduler, type Task } from "./scheduler.js";
import { subjectOf, validateInput } from "./schema.js";
import { deferred } from "./turns.js";

/** Characters of a page or a record in a log. */
const LONGEST_NAME = 200;

/** Milliseconds for which the lost response of a durable call is looked for if the settings do not say. */
const DURABLE_HORIZON = Number(service.reconcile.initial) * 1000;

/** One account of the service, reached by `createClient`. All calls share one budget. */
export type Client = ReturnType<typeof createClient>;

/** Throws SEO_CONFIG where an option is not usable. */
export function createClient(options: ClientOptions) {
  const { baseUrl: base, apiKey, tls, proxy, ...settings } = readConfig(options);
  const { timeout, concurrency, rate, queue: size, retries, reconcile: horizon } = settings;
  const transport = createTransport(base, apiKey, { connections: concurrency, tls, proxy });
  const scheduler = new Scheduler({ concurrency, rate, size });
  const reconciler = createReconciler(
    { request: (type, input) => request(type, input), pages },
    { now: () => performance.now(), sleep: (ms) => setTimeout(ms, undefined, { ref: false }) },
    horizon > 0,
  );
  const common = createLane();
  const durableHorizon = horizon || DURABLE_HORIZON;
  const limits = { timeout, retries, horizon, durableHorizon };
  const parts: ClientParts = { base, transport, scheduler, reconciler, common, ...limits };

  /**
   * Sends a validated input, and retries it if that cannot take effect twice. Rejects with an SeoError, or as
   * `durable.beforeAttempt` does.
   */
  const request = (type: string, input: Record<string, string>, options: RequestOptions = {}): Promise<CallResponse> =>
    new Call(parts, type, input, options).run();

  /** Reads a list page by page, each only when it is needed. */
  function pages(type: string, input: Record<string, string>, options: RequestOptions = {}) {
    return readPages((extra) => request(type, input, { ...options, extra }), input);
  }

  function cancel(scope: Lane | Task): void {
    scope.closed = true;
    scheduler.cancel(cancelled, scope);
    transport.abort(cancelled, scope);
  }

  return {
    validate: validateInput,
    request,
    pages,

    /** Validates and sends. Rejects with SEO_INPUT before anything is sent, or as `request` does. */
    async call(type: string, input: Record<string, unknown>, options: RequestOptions = {}): Promise<CallResponse> {
      return request(type, validateInput(rowOf(type), input), options);
    },

    /** Does `work` after all earlier work of the same name, a page's key for example. Without a slot while it waits. */
    async inTurn<Value>(name: string, task: Task = createTask(common), work: () => Promise<Value>): Promise<Value> {
      const { promise, resolve } = deferred();
      const before = reconciler.turnOf(name, promise);
      try {
        if (before) await scheduler.wait(task, () => before);
        return await work();
      } finally {
        resolve();
      }
    },

    /** Has a message wait for admission: it is started, and `end` must follow, or it is refused. */
    admit: (message: Queued): void => scheduler.admit(message),

    /** Ends a message that was started, and cancels its requests that nobody waits for any more. */
    end(message: Task): void {
      if (message.pending > 0) cancel(message);
      message.closed = true;
    },

    /** The page or the record that an input is about, as a log can show it. */
    nameOf: (row: NodeType, input: Record<string, string>) =>
      oneLine(transport.redact(subjectOf(row, input))).slice(0, LONGEST_NAME),

    /** The place of the service: origin and path. */
    base: base.origin + base.prefix,

    /** Says which reports an earlier process got, so that none of them counts as the effect of a lost request. */
    claim: (ids: readonly string[], age: number) => reconciler.claim(ids, durableHorizon - age),

    /** Says that an audit will claim reports. Returns what says that it has. */
    announceClaims: reconciler.announceClaims,

    /** How many requests can be in flight. */
    concurrency,

    /** Milliseconds that a lane has to wait because of a pause, the rate, or a failed attempt. */
    waitingFor: (lane: Lane) => Math.max(scheduler.blockedFor(), lane.until - performance.now()),

    /** Ends what a lane or a task has in flight or waiting, with SEO_CANCELLED; `attempts` is 0 for what was never sent. */
    cancel,

    /** Ends everything, and the connections. */
    async close(): Promise<void> {
      scheduler.close();
      transport.abort(cancelled);
      await transport.destroy();
    },
  };
}

/**
 * How a message travels from a node to the wire and back:
 *
 * 1. The node reads and validates the message's parameters (nodes/handler.ts, input.ts) and calls `admit`.
 * 2. Gate 1, admission (queue.ts): the message waits in its node's lane; lanes take turns. Then the node starts its work,
 *    which calls `send` once, or once for each page of a list (pages.ts).
 * 3. Gate 2, budget (queue.ts, budget.ts): each request acquires a slot, which the concurrency, the rate and pauses limit.
 * 4. http/ builds the request from the operation's row, sends it, and reads the response. Secrets are redacted there,
 *    where the service's words enter; the facts that decide what happens next are the client's own (errors.ts).
 * 5. The slot is released. If the response of a request that must not be repeated was lost, reconcile/ finds out what became
 *    of it. After an error, `decide` (retry.ts) says whether the service pauses and whether `send` tries again.
 * 6. `send` resolves with the response, the node sends its messages, and `end` cancels what the message still has in flight.
 */
import { performance } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";
import { type ClientOptions, readConfig } from "./config.js";
import { cancelled, oneLine, SeoError } from "./errors.js";
import { buildRequest } from "./http/request.js";
import { createTransport, type Response } from "./http/transport.js";
import { subjectOf, validateInput } from "./input.js";
import { type NodeType, rowOf } from "./operations.js";
import { readPages } from "./pages.js";
import { createLane, createQueue, createTask, type Lane, type Message, type Task } from "./queue.js";
import type { Intent } from "./reconcile/look.js";
import { createReconciler, type Ticket } from "./reconcile/reconcile.js";
import { decide } from "./retry.js";
import { createTurns, deferred } from "./turns.js";

/** A response, and what it took to get it. */
export interface Answer extends Response {
  attempts: number;
  /** Milliseconds from the call to the response, and those of them without a request in flight. */
  duration: number;
  waited: number;
  /** The response was lost, and the outcome was found out: looks that it took, and milliseconds since the request was sent. */
  reconciled?: { looks: number; after: number };
  /** A delete found nothing to delete after an attempt whose outcome was unknown. */
  alreadyDeleted?: true;
}

export interface SendOptions {
  /** The message that it is sent for; without one, the call is on its own. */
  task?: Task;
  /** Replaces the row's method. */
  method?: string | undefined;
  /** Milliseconds after sending within which the service may still work on the request; replaces the setting `reconcile`. */
  horizon?: number;
  /** Called before each attempt, with a slot. If it rejects, nothing is sent. */
  sending?: (intent: Intent) => Promise<void>;
  /** A request that another process was sending: it is looked for first. */
  intent?: Intent | undefined;
  /** When the report was generated, of an update. */
  generatedAt?: string | undefined;
  /** Query parameters that are not in the interface's document: the page, the cursor. */
  extra?: Record<string, string> | undefined;
}

/** Seconds that an attempt can take, unless the row or the settings say otherwise. */
const USUAL_TIMEOUT = 30;
/** Characters of a page or a record in a log. */
const LONGEST_NAME = 200;
/** The error of a request that was sent before this call. It is not SEO_CANCELLED, which says that this client was closed. */
const interrupted = new SeoError("SEO_NETWORK", "The response to an earlier request was not received.", {
  uncertain: true,
  transient: true,
});

/** One account of the service, reached by `createClient`. All calls share one budget. */
export type Client = ReturnType<typeof createClient>;

/** Throws SEO_CONFIG where an option is not usable. */
export function createClient(options: ClientOptions) {
  const { base, apiKey, timeout, concurrency, rate, size, retries, reconcile, tls, proxy } = readConfig(options);
  const transport = createTransport(base, apiKey, { connections: concurrency, tls, proxy });
  const queue = createQueue({ concurrency, rate, size });
  const common = createLane();
  const reconciler = createReconciler(
    { request: (type, input) => send(type, input), pages },
    { now: () => performance.now(), sleep: (ms) => setTimeout(ms, undefined, { ref: false }) },
  );
  let reconciles = reconcile > 0;
  const turns = createTurns();

  /**
   * Sends a validated input, and tries again where that cannot take effect twice. Rejects with an SeoError, or as
   * `sending` does.
   */
  async function send(
    type: string,
    input: Record<string, string>,
    { task = createTask(common), method, extra, horizon = reconcile, sending, intent, generatedAt }: SendOptions = {},
  ): Promise<Answer> {
    const row = rowOf(type);
    const request = buildRequest(row, input, base, { method, extra });
    const ms = (timeout ?? row.timeout ?? USUAL_TIMEOUT) * 1000;
    const once = row.once?.(input) ?? false;
    const ticket =
      once && row.lookup && horizon > 0 ? reconciler.open(row.lookup, input, intent ?? { generatedAt }) : undefined;
    if (ticket) reconciles = true;
    const called = performance.now();
    let attempts = 0;
    let busy = 0;
    // Until it is found out, for which no slot is needed: a limit does not end it, but a cancellation can.
    let uncertain = Boolean(intent && ticket);
    let reconciled: Answer["reconciled"];
    const toAnswer = ({ statusCode, headers, body }: Response): Answer => {
      const duration = performance.now() - called;
      const waited = Math.round(duration - busy);
      return { statusCode, headers, body, attempts, duration: Math.round(duration), waited };
    };

    /** One request, with a slot. */
    async function attempt(): Promise<Response | SeoError> {
      const slot = queue.acquire(task);
      if (slot) await slot;
      try {
        const sent = ticket?.sending();
        if (sending) await sending(sent ?? {});
        if (queue.isOver(task)) throw cancelled;
        attempts++;
        const started = performance.now();
        const result = await transport.send(row, input, request, ms, task);
        busy += performance.now() - started;
        // Before the slot is released, or it would start the next request of a service that asked for a pause.
        if (result instanceof SeoError) {
          const { pause } = decide(result, { attempts, retries, once });
          if (pause === Number.POSITIVE_INFINITY) queue.cancel(result);
          else if (pause !== undefined) queue.pause(pause);
        } else if (row.deletes) reconciler.forget(String(input.reportId));
        else if (reconciles) reconciler.observe(result);
        ticket?.received(result);
        return result;
      } finally {
        queue.release(task);
      }
    }

    /** Finds out what became of an attempt: the response, or the error with what is certain now. */
    async function findOut(result: Response | SeoError, ticket: Ticket): Promise<Response | SeoError> {
      if (!(result instanceof SeoError) || !result.details.uncertain) return result;
      uncertain = true;
      const { lane } = task;
      lane.reconciling++;
      task.isLost = true;
      const outcome = await queue
        .wait(task, () => ticket.lost(result, horizon), uncertain)
        .finally(() => {
          lane.reconciling--;
          task.isLost = false;
        });
      if (outcome.was === "undecided") return result.with({ candidates: outcome.candidates });
      uncertain = false;
      if (outcome.was === "not carried out")
        return result.with({ uncertain: false, transient: outcome.again && result.details.transient });
      ({ reconciled } = outcome);
      return outcome.response;
    }

    task.pending++;
    try {
      const turn = ticket?.turn();
      if (turn) await queue.wait(task, () => turn, uncertain);
      const newest = ticket?.newest();
      if (newest) await queue.hold(task, newest, uncertain);
      let ended: Response | SeoError = intent && ticket ? interrupted : await attempt();
      for (; ; ended = await attempt()) {
        const result = ticket ? await findOut(ended, ticket) : ended;
        if (!(result instanceof SeoError)) {
          const answer: Answer = toAnswer(result);
          if (reconciled) answer.reconciled = reconciled;
          return answer;
        }
        if (row.deletes && uncertain && result.details.missing) {
          reconciler.forget(String(input.reportId));
          const body = { ...row.deletes(input), deleted: true, status: 200 };
          return { ...toAnswer({ statusCode: 404, headers: {}, body }), alreadyDeleted: true };
        }
        uncertain ||= row.method !== "GET" && result.details.uncertain === true;
        const { retryIn } = decide(result, { attempts, retries, once });
        if (retryIn === undefined) throw result;
        if (retryIn > 0) await queue.sleep(task, retryIn);
      }
    } catch (cause) {
      throw cause instanceof SeoError ? cause.with({ attempts, uncertain }) : cause;
    } finally {
      task.pending--;
      ticket?.end();
    }
  }

  /** Lists reports, a page at a time, each only when it is needed. */
  async function* pages(type: string, input: Record<string, string>, options: SendOptions = {}) {
    const get = (extra: Record<string, string>) => send(type, input, { ...options, extra });
    for await (const { records, total, answer } of readPages(get)) yield { records, total, response: answer };
  }

  function cancel(scope: Lane | Task): void {
    scope.closed = true;
    queue.cancel(cancelled, scope);
    transport.abort(cancelled, scope);
  }

  return {
    validate: validateInput,
    send,
    pages,

    /** Validates and sends. Rejects with SEO_INPUT before anything is sent, or as `send` does. */
    async call(type: string, input: Record<string, unknown>, options: SendOptions = {}): Promise<Answer> {
      return send(type, validateInput(rowOf(type), input), options);
    },

    /** Does `work` after all earlier work of the same name. Without a slot while it waits. */
    async inTurn<Value>(name: string, task: Task = createTask(common), work: () => Promise<Value>): Promise<Value> {
      const { promise, resolve } = deferred();
      try {
        const before = turns.take(name, promise);
        if (before) await queue.wait(task, () => before);
        return await work();
      } finally {
        resolve();
      }
    },

    /** Has a message wait for admission: it is started, and `end` must follow, or refused. */
    admit: queue.admit,

    /** Ends a message that was started, and cancels its requests that nobody waits for any more. */
    end(message: Message): void {
      if (message.pending > 0) cancel(message);
      message.closed = true;
      queue.end(message);
    },

    /** The page or the record that an input is about, as a log can show it. */
    nameOf: (row: NodeType, input: Record<string, string>) =>
      oneLine(transport.redact(subjectOf(row, input))).slice(0, LONGEST_NAME),

    /** Where the service is: origin and path. */
    base: base.origin + base.prefix,

    /** Says which reports an earlier process got, so that none of them counts as the effect of a lost request. */
    claim: reconciler.claim,

    /** How many requests can be in flight. */
    concurrency,

    /** Milliseconds for which a lost response is looked for; 0 is never. */
    horizon: reconcile,

    /** Milliseconds that a lane has to wait because of a pause, the rate, or a failed attempt. */
    waitingFor: (lane: Lane) => Math.max(queue.blockedFor(), lane.until - performance.now()),

    /** Ends what a lane or a task has in flight or waiting, with SEO_CANCELLED; `attempts` is 0 for what was never sent. */
    cancel,

    /** Ends everything, and the connections. */
    async close(): Promise<void> {
      queue.close();
      transport.abort(cancelled);
      await transport.destroy();
    },
  };
}

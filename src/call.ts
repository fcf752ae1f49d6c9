import { performance } from "node:perf_hooks";
import type { Base } from "./config.js";
import { cancelled, SeoError, sentenceOf } from "./errors.js";
import { buildRequest, type Request } from "./http/request.js";
import { messageIn } from "./http/response.js";
import type { createTransport } from "./http/transport.js";
import { rowOf } from "./operations.js";
import type { Reconciler, Ticket } from "./reconcile/reconcile.js";
import { isRejection } from "./reconcile/search.js";
import type { Intent } from "./reconcile/watermark.js";
import { reportIn } from "./records.js";
import type { CallResponse, Response } from "./responses.js";
import { pauseAfter, retryIn } from "./retry.js";
import { createTask, type Lane, type Scheduler, type Task } from "./scheduler.js";

/** How a request outlives its process: an audit saves it before it is sent, and the next process finds out what became of it. */
export interface Durable {
  /** Awaited before each attempt, with a slot. If it rejects, nothing is sent. */
  beforeAttempt?(intent: Intent): Promise<void>;
  /** A request that an earlier process sent: its effect is looked for first, and it is sent only if it has none. */
  intent?: Intent | undefined;
  /** When the report was generated, if it is updated. The client may know a later time. */
  generatedAt?: string | undefined;
}

export interface RequestOptions {
  /** The message that it is sent for; without one, the call is on its own. */
  task?: Task;
  /** Replaces the row's method. */
  method?: string | undefined;
  /** Query parameters that no row has: the page, the cursor. */
  extra?: Record<string, string> | undefined;
  /** The message has the turn of its page already (`client.inTurn`). */
  hasTurn?: boolean;
  durable?: Durable;
}

/** The parts of a client that its calls share. */
export interface ClientParts {
  base: Base;
  scheduler: Scheduler;
  transport: ReturnType<typeof createTransport>;
  reconciler: Reconciler;
  /** Seconds that an attempt can take; undefined: the row's own time. */
  timeout: number | undefined;
  retries: number;
  /** The lane of calls that are not sent for a message. */
  common: Lane;
  /** Milliseconds for which a lost response is looked for; 0 is never. */
  horizon: number;
  /** The same for durable calls, whose lost responses are always looked for. */
  durableHorizon: number;
}

/** Seconds that an attempt can take, unless the row or the settings say otherwise. */
const USUAL_TIMEOUT = 30;
/** The error of a request that was sent before this call. It is not SEO_CANCELLED, which says that this client was closed. */
const interrupted = new SeoError("SEO_NETWORK", "The response to an earlier request was not received.", {
  uncertain: true,
  transient: true,
});

/** A response without a report, such as a gateway's page, does not say what the service has done. If that can be looked up, it counts as lost. */
function withReport(result: Response | SeoError): Response | SeoError {
  if (result instanceof SeoError || reportIn(result.body)) return result;
  const { statusCode, body } = result;
  const said = messageIn(body);
  const sentence = `The service returned ${statusCode}, but the response contains no report with an id`;
  return new SeoError("SEO_RESPONSE", sentenceOf(said ? `${sentence}: ${said}` : sentence), {
    statusCode,
    body,
    uncertain: true,
    transient: true,
  });
}

/** One call of the service: a request with its retries and, if its response is lost, the search for its outcome. */
export class Call {
  readonly #parts: ClientParts;
  /** With the row and the input that it is made from. */
  readonly #request: Request;
  readonly #task: Task;
  readonly #durable: Durable | undefined;
  readonly #horizon: number;
  /** Set if sending the request twice has another effect than sending it once, which can be looked up. */
  readonly #ticket: Ticket | undefined;
  readonly #hasTurn: boolean;
  readonly #calledAt = performance.now();
  #attempts = 0;
  /** Milliseconds with a request in flight. */
  #busy = 0;
  /** An attempt may have taken effect. Until that is known, a limit of the service does not end the call, but a cancellation can. */
  #uncertain = false;
  #reconciled: CallResponse["reconciled"];

  constructor(parts: ClientParts, type: string, input: Record<string, string>, options: RequestOptions) {
    const row = rowOf(type);
    const { task = createTask(parts.common), durable, hasTurn = false } = options;
    this.#parts = parts;
    this.#task = task;
    this.#request = buildRequest(row, input, parts.base, options);
    this.#durable = durable;
    this.#horizon = durable ? parts.durableHorizon : parts.horizon;
    this.#hasTurn = hasTurn;
    if (!row.lookup || !row.once?.(input)) return;
    const intent = durable?.intent;
    this.#ticket = parts.reconciler.track(row.lookup, input, intent ?? { generatedAt: durable?.generatedAt });
    this.#uncertain = Boolean(intent);
  }

  /** Sends the request, and retries it if that cannot take effect twice. Rejects with an SeoError, or as `durable.beforeAttempt` does. */
  async run(): Promise<CallResponse> {
    const { scheduler, reconciler, retries } = this.#parts;
    const { row, input } = this.#request;
    const ticket = this.#ticket;
    const looks = this.#horizon > 0 ? ticket : undefined;
    this.#task.pending++;
    try {
      const turn = this.#hasTurn ? undefined : ticket?.turn();
      // A page of an audit can wait for one that was reset, for minutes: it gives its place to another page.
      const how = this.#uncertain ? "exempt" : "usual";
      if (turn && reconciler.isNeeded()) await scheduler.wait(this.#task, () => turn, this.#durable ? "lost" : how);
      const newest = looks?.newest();
      if (newest) await scheduler.wait(this.#task, () => newest, how);
      for (let isSent = this.#uncertain; ; isSent = false) {
        const attempt = isSent ? interrupted : await this.#attempt();
        const result = looks ? await this.#findOut(withReport(attempt), looks) : attempt;
        if (!(result instanceof SeoError)) return this.#toResponse(result);
        if (this.#isGone(result)) return this.#toDeleted();
        this.#uncertain ||= row.method !== "GET" && result.details.uncertain === true;
        const delay = retryIn(result, { attempts: this.#attempts, retries, once: row.once?.(input) ?? false });
        if (delay === undefined) throw result;
        if (delay > 0) await scheduler.sleep(this.#task, delay);
      }
    } catch (cause) {
      if (!(cause instanceof SeoError)) throw cause;
      throw cause.with({ attempts: this.#attempts, uncertain: this.#uncertain });
    } finally {
      this.#task.pending--;
      ticket?.end();
    }
  }

  /** Sends one request, with a slot. */
  async #attempt(): Promise<Response | SeoError> {
    const { scheduler, transport, timeout = this.#request.row.timeout ?? USUAL_TIMEOUT } = this.#parts;
    const slot = scheduler.acquire(this.#task);
    if (slot) await slot;
    try {
      const intent = this.#ticket?.beforeAttempt();
      if (this.#durable?.beforeAttempt) await this.#durable.beforeAttempt(intent ?? {});
      if (scheduler.isOver(this.#task)) throw cancelled;
      this.#attempts++;
      this.#ticket?.sent();
      const sentAt = performance.now();
      const result = await transport.exchange(this.#request, timeout * 1000, this.#task);
      this.#busy += performance.now() - sentAt;
      // Before the slot is released, or it would start the next request of a service that asked for a pause.
      this.#learn(result);
      return result;
    } finally {
      scheduler.release(this.#task);
    }
  }

  /** Applies what an attempt says about the service and its reports. */
  #learn(result: Response | SeoError): void {
    const { scheduler, reconciler } = this.#parts;
    const { row, input } = this.#request;
    if (result instanceof SeoError) {
      const pause = pauseAfter(result, this.#attempts);
      // Whatever waits has had no effect.
      if (pause === Number.POSITIVE_INFINITY) scheduler.cancel(result.with({ uncertain: false }));
      else if (pause !== undefined) scheduler.pause(pause);
    } else if (row.deletes) reconciler.forget(input.reportId);
    else if (row.record === "report") reconciler.observe(result);
    this.#ticket?.afterAttempt(result);
  }

  /** Finds out what became of an attempt whose response was lost: the response, or the error with what is certain now. */
  async #findOut(result: Response | SeoError, ticket: Ticket): Promise<Response | SeoError> {
    if (!(result instanceof SeoError) || !result.details.uncertain) return result;
    this.#uncertain = true;
    // A rejection is looked up within seconds: nothing else need go on meanwhile.
    const how = isRejection(result) ? "exempt" : "lost";
    const fate = await this.#parts.scheduler.wait(this.#task, () => ticket.lost(result, this.#horizon), how);
    if (fate.was === "undecided") return result.with({ candidates: fate.candidates });
    this.#uncertain = false;
    if (fate.was === "not carried out")
      return result.with({ uncertain: false, transient: fate.again && result.details.transient });
    this.#reconciled = fate.reconciled;
    return fate.response;
  }

  #toResponse({ statusCode, headers, body }: Response): CallResponse {
    const duration = performance.now() - this.#calledAt;
    const response: CallResponse = {
      statusCode,
      headers,
      body,
      attempts: this.#attempts,
      duration: Math.round(duration),
      waited: Math.round(duration - this.#busy),
    };
    if (this.#reconciled) response.reconciled = this.#reconciled;
    return response;
  }

  /** A delete that is retried finds nothing if the attempt before took effect. */
  #isGone({ details: { missing } }: SeoError): boolean {
    return this.#request.row.deletes !== undefined && this.#uncertain && missing === true;
  }

  #toDeleted(): CallResponse {
    const { row, input } = this.#request;
    this.#parts.reconciler.forget(input.reportId);
    const body = { ...row.deletes?.(input), deleted: true, status: 200 };
    return { ...this.#toResponse({ statusCode: 404, headers: {}, body }), alreadyDeleted: true };
  }
}

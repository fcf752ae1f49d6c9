import { cancelled, SeoError } from "./errors.js";
import type { TlsOptions } from "./http/dispatcher.js";
import type { ProxyOptions } from "./http/proxy.js";
import { forFlows, LONGEST_WAIT } from "./http/redact.js";
import { buildRequest, parseBase, parseKey } from "./http/request.js";
import type { Headers } from "./http/response.js";
import { createTransport } from "./http/transport.js";
import { checkInput, secretsOf } from "./input.js";
import { type Operation, operations, service } from "./operations.js";
import { createLane, createQueue, type Lane, type Turn } from "./queue.js";
import { readSettings } from "./schema.js";

/** Where and as whom to ask; the rest are the settings of the table, as text or numbers, blank for their defaults. */
export interface ClientOptions {
  baseUrl: unknown;
  apiKey: unknown;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
  [setting: string]: unknown;
}

export interface Answer {
  /** The answer's JSON, checked; null where the service sent nothing. */
  body: unknown;
  statusCode: number;
  headers: Headers;
  attempts: number;
  /** Milliseconds from the call to the answer, and those of them in which nothing was under way. */
  duration: number;
  waited: number;
  /** A delete found nothing to delete after an attempt whose outcome was unknown. */
  alreadyDeleted?: true;
}

/** The place in the queue of a message that has had its turn. Its first request takes it, and others wait for one of their own. */
export interface Place extends Pick<Turn, "lane" | "since"> {
  used: boolean;
}

export interface SendOptions {
  lane?: Lane | undefined;
  place?: Place | undefined;
  /** In place of the row's method. */
  method?: string | undefined;
  /** Query parameters that are not of the document: the page, the cursor. */
  extra?: Record<string, string>;
}

export interface CallOptions extends SendOptions {
  /** Where each value of the input came from, for messages: `msg.payload.privacy`. */
  from?: Record<string, string>;
}

const RETRY_FIRST = 500;
const RETRY_MOST = 10_000;
const LONGEST_TIMER = 2 ** 31 - 1;

const numbers = (settings: Record<string, string>): Record<string, number | undefined> =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, Number(value)]));

/** Full jitter: up to half a second after the first attempt, and up to twice as long after each further one. */
const backoff = (attempts: number) => Math.random() * Math.min(RETRY_MOST, RETRY_FIRST * 2 ** (attempts - 1));

function rowOf(type: string): Operation {
  const row = operations[type];
  if (!row) throw new SeoError("SEO_INPUT", `Unknown operation: ${type}.`);
  return row;
}

/** One account of the service, reached by `createClient`. All calls share one budget; each lane has its turn. */
export type Client = ReturnType<typeof createClient>;

/** Throws SEO_CONFIG where an option is not usable. */
export function createClient(options: ClientOptions) {
  const apiKey = parseKey(options.apiKey);
  const settings = readSettings(service, options, "SEO_CONFIG");
  const base = parseBase(String(settings.baseUrl));
  const { timeout, concurrency = 1, rate = Number.POSITIVE_INFINITY, queue: size = 0, retries = 0 } = numbers(settings);
  const transport = createTransport(base, { apiKey, connections: concurrency, tls: options.tls, proxy: options.proxy });
  const queue = createQueue({ concurrency, rate, size });
  const common = createLane();
  let closed = false;

  /** Milliseconds until the next attempt, or undefined where there must be none. Slows all the others down, too, when told to. */
  function retryDelay(error: SeoError, attempts: number, once: boolean): number | undefined {
    const { transient, uncertain, retryAfter } = error.details;
    if ((retryAfter ?? 0) > LONGEST_WAIT) {
      queue.refuse(error);
      return undefined;
    }
    const delay = retryAfter === undefined ? backoff(attempts) : retryAfter * 1000;
    const told = retryAfter !== undefined || error.code === "SEO_RATE_LIMITED";
    if (told) queue.pause(delay);
    if (!transient || (once && uncertain) || attempts > retries) return undefined;
    return told ? 0 : delay;
  }

  const turn = (lane: Lane, since: number, delay?: number) =>
    new Promise<void>((start, refuse) => queue.enter({ lane, since, start, refuse }, delay));

  /** Sends an input that is checked, again where that cannot do twice what was asked for once. Rejects with an SeoError. */
  async function send(
    type: string,
    checked: Record<string, string>,
    { lane = common, place, method, extra = {} }: SendOptions = {},
  ): Promise<Answer> {
    const row = rowOf(type);
    const request = buildRequest(row, checked, base, { method, extra });
    const ms = Math.min((timeout ?? row.timeout ?? 30) * 1000, LONGEST_TIMER);
    const once = row.once?.(checked) ?? false;
    const began = place?.used === false ? place.since : performance.now();
    let busy = 0;
    let uncertain = false;
    // A message that had its turn goes on before those that came later, and is not refused for want of room.
    let delay = place?.used ? 0 : undefined;
    for (let attempts = 1; ; attempts++) {
      if (closed || lane.closed) throw cancelled.with({ attempts: attempts - 1, uncertain });
      if (place?.used === false) place.used = true;
      else
        await turn(lane, place?.since ?? began, delay).catch((error: SeoError) => {
          throw error.with({ attempts: attempts - 1, uncertain });
        });
      const started = performance.now();
      const figures = () => {
        const ended = performance.now();
        busy += ended - started;
        return { attempts, duration: Math.round(ended - began), waited: Math.round(ended - began - busy) };
      };
      try {
        const { statusCode, headers, body } = await transport.send(row, request, ms, lane);
        const { duration, waited } = figures();
        return { statusCode, headers, body, attempts, duration, waited };
      } catch (cause) {
        const error = forFlows(cause as SeoError, [apiKey, ...secretsOf(row, checked)]);
        if (row.deletes && uncertain && error.code === "SEO_NOT_FOUND") {
          return { body: null, statusCode: 404, headers: {}, ...figures(), alreadyDeleted: true };
        }
        figures();
        uncertain ||= row.method !== "GET" && error.details.uncertain === true;
        delay = retryDelay(error, attempts, once);
        if (delay === undefined) throw error.with({ attempts, uncertain });
      } finally {
        queue.leave(lane);
      }
    }
  }

  return {
    check: checkInput,
    send,

    /** Checks and sends. Rejects with SEO_INPUT before anything is sent, or as `send` does. */
    async call(
      type: string,
      input: Record<string, unknown>,
      { from = {}, ...options }: CallOptions = {},
    ): Promise<Answer> {
      return send(type, checkInput(rowOf(type), input, from), options);
    },

    /** Has a message wait for its turn. From its start on it holds a place, which its first request takes; `end` must follow. */
    enter(turn: Turn): void {
      if (closed || turn.lane.closed) turn.refuse(cancelled);
      else queue.enter(turn);
    },

    /** Ends a message that had its turn; a place that no request has taken is given up. */
    end(place: Place): void {
      if (!place.used) queue.leave(place.lane);
      place.used = true;
      queue.end(place.lane);
    },

    /** Where it asks: origin and path. */
    base: base.origin + base.prefix,

    /** How many requests run at a time. */
    concurrency,

    /** Milliseconds that a lane has to wait, because the service asked for it or an attempt failed. */
    waitingFor: (lane: Lane) => Math.max(queue.pausedFor(), lane.until - performance.now()),

    /** Ends what a lane runs and what of it waits, with SEO_CANCELLED; `attempts` is 0 for what was never sent. */
    cancel(lane: Lane): void {
      lane.closed = true;
      queue.refuse(cancelled, lane);
      transport.abort(cancelled, lane);
    },

    /** Ends everything, and the connections. */
    async close(): Promise<void> {
      closed = true;
      queue.refuse(cancelled);
      transport.abort(cancelled);
      await transport.destroy();
    },
  };
}

export type Response = Answer;

import { createRequire } from "node:module";
import { setImmediate } from "node:timers/promises";
import type { Dispatcher } from "undici";
import type { Base, ProxyOptions, TlsOptions } from "../config.js";
import { fromCause, SeoError } from "../errors.js";
import { secretsOf } from "../input.js";
import type { Operation } from "../operations.js";
import type { Lane, Task } from "../queue.js";
import { createDispatcher } from "./dispatcher.js";
import { Exchange } from "./exchange.js";
import { createRedactor, unencoded } from "./redact.js";
import type { Request } from "./request.js";
import { acceptEncoding, type Headers, readResponse } from "./response.js";

const { name, version } = createRequire(import.meta.url)("../../../package.json") as { name: string; version: string };

/** Bytes of a body that takes long enough to parse that others notice. */
const LARGE = 16 << 10;
/** Keys that are shorter are not redacted in successes, because they could match ordinary words. */
const SHORTEST_KEY = 8;

export interface TransportOptions {
  apiKey: string;
  connections: number;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
}

/** A success as a flow sees it. */
export interface Response {
  statusCode: number;
  headers: Headers;
  /** The response's JSON; null where the service sent nothing. */
  body: unknown;
}

/** Sends single requests to one origin, each with the key, and ends those that take too long or are cancelled. */
export function createTransport({ origin }: Base, { apiKey, ...connection }: TransportOptions) {
  const dispatcher = createDispatcher({ origin, ...connection });
  // No Map: one whose entries come and go with each request keeps them from the collector of young objects.
  const inFlight: Exchange[] = [];
  const headers = {
    authorization: `Bearer ${apiKey}`,
    accept: "application/json",
    "accept-encoding": acceptEncoding,
    "user-agent": `${name}/${version}`,
  };
  const formHeaders = { ...headers, "content-type": "application/x-www-form-urlencoded" };

  const core = unencoded(apiKey);
  const keyRedactor = createRedactor([apiKey]);
  /** A service that echoes its caller's key must not put it into a flow. */
  const redactKey = <T>(value: T, texts: unknown[]): T =>
    apiKey.length >= SHORTEST_KEY && texts.some((text) => String(text).includes(core)) ? keyRedactor(value) : value;

  /** One timer for all that is in flight, because most of it ends long before: it rings when the first can be overdue. */
  let timer: NodeJS.Timeout | undefined;
  let ringsAt = Number.POSITIVE_INFINITY;
  function watch({ due }: Exchange): void {
    if (due >= ringsAt) return;
    clearTimeout(timer);
    ringsAt = due;
    timer = setTimeout(abortOverdue, due - performance.now()).unref();
  }
  function abortOverdue(): void {
    ringsAt = Number.POSITIVE_INFINITY;
    for (const exchange of inFlight) {
      if (exchange.due > performance.now()) watch(exchange);
      else {
        const sentence = `The service at ${origin} did not respond within ${exchange.timeout / 1000} s.`;
        exchange.abort(new SeoError("SEO_TIMEOUT", sentence, { transient: true, stage: "time" }));
      }
    }
  }

  return {
    /** Sends the request of a validated input, which can take `timeout` ms. Resolves with the response, or an error that holds no secret. */
    async send(
      row: Operation,
      input: Record<string, string>,
      { method, path, body, subject }: Request,
      timeout: number,
      task: Task,
    ): Promise<Response | SeoError> {
      const exchange = new Exchange(task, timeout);
      inFlight.push(exchange);
      watch(exchange);
      try {
        (row.idempotent ? dispatcher.oneShot : dispatcher.keepAlive).dispatch(
          {
            origin,
            path,
            method: method as Dispatcher.HttpMethod,
            headers: body === undefined ? headers : formHeaders,
            body: body ?? null,
          },
          exchange,
        );
        const received = await exchange.received;
        // Let pending socket data arrive before parsing blocks; otherwise 1,000 pages take 25% longer.
        if (received.bytes.length > LARGE) await setImmediate();
        const redactor = () => createRedactor([apiKey, ...secretsOf(row, input)]);
        const read = readResponse(row, received, redactor, subject);
        return {
          statusCode: received.statusCode,
          headers: redactKey(received.headers, Object.values(received.headers)),
          body: redactKey(read.body, [read.text]),
        };
      } catch (cause) {
        return fromCause(cause, origin);
      } finally {
        inFlight.splice(inFlight.indexOf(exchange), 1);
      }
    },

    /** Ends what is in flight, of one lane or task or of all, with `reason`. */
    abort(reason: SeoError, scope?: Lane | Task): void {
      for (const exchange of inFlight)
        if (scope === undefined || exchange.task === scope || exchange.task.lane === scope) exchange.abort(reason);
    },

    destroy() {
      clearTimeout(timer);
      return dispatcher.destroy();
    },
  };
}

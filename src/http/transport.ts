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
  const inFlight = new Map<Exchange, Task>();
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

  return {
    /** Sends the request of a validated input, which can take `timeout` ms. Rejects with an SeoError that holds no secret. */
    async send(
      row: Operation,
      input: Record<string, string>,
      { method, path, body, subject }: Request,
      timeout: number,
      task: Task,
    ): Promise<Response> {
      const exchange = new Exchange();
      const timer = setTimeout(() => {
        const sentence = `The service at ${origin} did not respond within ${timeout / 1000} s.`;
        exchange.abort(new SeoError("SEO_TIMEOUT", sentence, { transient: true, stage: "time" }));
      }, timeout);
      inFlight.set(exchange, task);
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
        await setImmediate();
        const redactor = () => createRedactor([apiKey, ...secretsOf(row, input)]);
        const read = await readResponse(row, received, redactor, subject);
        return {
          statusCode: received.statusCode,
          headers: redactKey(received.headers, Object.values(received.headers)),
          body: redactKey(read.body, [read.text]),
        };
      } catch (cause) {
        throw fromCause(cause, origin);
      } finally {
        clearTimeout(timer);
        inFlight.delete(exchange);
      }
    },

    /** Ends what is in flight, of one lane or task or of all, with `reason`. */
    abort(reason: SeoError, scope?: Lane | Task): void {
      for (const [exchange, task] of inFlight)
        if (scope === undefined || task === scope || task.lane === scope) exchange.abort(reason);
    },

    destroy: () => dispatcher.destroy(),
  };
}

import { createRequire } from "node:module";
import { setImmediate } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { fromCause, SeoError } from "../errors.js";
import type { Operation } from "../operations.js";
import type { Lane } from "../queue.js";
import { createDispatcher, type TlsOptions } from "./dispatcher.js";
import { Exchange } from "./exchange.js";
import type { ProxyOptions } from "./proxy.js";
import { redact } from "./redact.js";
import type { Base, Request } from "./request.js";
import { acceptEncoding, readAnswer } from "./response.js";

const { name, version } = createRequire(import.meta.url)("../../../package.json") as { name: string; version: string };

export interface TransportOptions {
  apiKey: string;
  connections: number;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
}

/** Sends single requests to one origin, each with the key, and ends those that take too long or are not wanted any more. */
export function createTransport({ origin }: Base, { apiKey, ...connection }: TransportOptions) {
  const dispatcher = createDispatcher({ origin, ...connection });
  const running = new Map<Exchange, Lane>();
  const sent = {
    authorization: `Bearer ${apiKey}`,
    accept: "application/json",
    "accept-encoding": acceptEncoding,
    "user-agent": `${name}/${version}`,
  };
  const sentWithForm = { ...sent, "content-type": "application/x-www-form-urlencoded" };

  /** Stays as it is in every form that the key may have in an answer. */
  const [core = ""] = (apiKey.match(/[A-Za-z0-9]+/g) ?? []).sort((a, b) => b.length - a.length);
  /** A service that echoes its caller's key must not put it into a flow; a short one would blot out mere words. */
  const withoutKey = <T>(value: T, texts: unknown[]): T =>
    apiKey.length >= 8 && texts.some((text) => String(text).includes(core)) ? redact(value, [apiKey]) : value;

  /** Sends one request, which may take at most `ms`. */
  async function send(row: Operation, { method, path, body }: Request, ms: number, lane: Lane) {
    const pool = row.idempotent ? dispatcher.fresh : dispatcher.kept;
    const exchange = new Exchange();
    const late = { transient: true, stage: "time" } as const;
    const timer = setTimeout(() => {
      exchange.abort(
        new SeoError("SEO_TIMEOUT", `The service at ${origin} did not respond within ${ms / 1000} s.`, late),
      );
    }, ms);
    running.set(exchange, lane);
    try {
      pool.dispatch(
        {
          origin,
          path,
          method: method as Dispatcher.HttpMethod,
          headers: body === undefined ? sent : sentWithForm,
          body: body ?? null,
        },
        exchange,
      );
      const { statusCode, headers, text } = await exchange.received;
      // First whatever else has come is taken in: reading takes the processor, and 1 000 pages took a quarter longer.
      await setImmediate();
      return {
        statusCode,
        headers: withoutKey(headers, Object.values(headers)),
        body: withoutKey(readAnswer(row, statusCode, headers, text), [text]),
      };
    } catch (cause) {
      throw fromCause(cause, origin);
    } finally {
      clearTimeout(timer);
      running.delete(exchange);
    }
  }

  return {
    send,

    /** Ends what runs, of one lane or of all, with `reason`. */
    abort(reason: SeoError, only?: Lane): void {
      for (const [exchange, lane] of running) if (only === undefined || lane === only) exchange.abort(reason);
    },

    destroy: () => dispatcher.destroy(),
  };
}

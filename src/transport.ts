import { createRequire } from "node:module";
import type { Dispatcher } from "undici";
import { createDispatcher, type ProxyOptions, type TlsOptions } from "./dispatcher.js";
import { fromCause, SeoError } from "./errors.js";
import type { Operation } from "./operations.js";
import type { Lane } from "./queue.js";
import { redact } from "./redact.js";
import type { Base, Request } from "./request.js";
import { acceptEncoding, decode, readAnswer } from "./response.js";

const { name, version } = createRequire(import.meta.url)("../../package.json") as { name: string; version: string };

export interface TransportOptions {
  apiKey: string;
  connections: number;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
}

/** Sends single requests to one origin, each with the key, and ends those that take too long or are not wanted any more. */
export function createTransport({ origin }: Base, { apiKey, ...connection }: TransportOptions) {
  const dispatcher = createDispatcher(connection);
  const running = new Map<AbortController, Lane>();
  const headers = {
    authorization: `Bearer ${apiKey}`,
    accept: "application/json",
    "accept-encoding": acceptEncoding,
    "user-agent": `${name}/${version}`,
  };

  /** A service that echoes its caller's key must not put it into a flow; a short one would blot out mere words. */
  const withoutKey = <T>(value: T, holder: string): T =>
    apiKey.length >= 8 && holder.includes(apiKey) ? redact(value, [apiKey]) : value;

  async function exchange(row: Operation, request: Request, signal: AbortSignal) {
    const pool = row.once ? dispatcher.fresh : dispatcher.kept;
    const answer = await pool.request({
      origin: origin,
      path: request.path,
      method: request.method as Dispatcher.HttpMethod,
      headers:
        request.body === undefined ? headers : { ...headers, "content-type": "application/x-www-form-urlencoded" },
      body: request.body ?? null,
      signal,
    });
    const { statusCode } = answer;
    const text = await decode(await answer.body.arrayBuffer(), answer.headers);
    const body = withoutKey(readAnswer(row, statusCode, answer.headers, text), text);
    return { statusCode, headers: withoutKey(answer.headers, Object.values(answer.headers).join()), body };
  }

  /** An exchange of at most `ms`. undici forgets an abort while it connects, hence the race. */
  async function send(row: Operation, request: Request, ms: number, lane: Lane) {
    const controller = new AbortController();
    const { signal } = controller;
    const late = { transient: true, uncertain: true, stage: "time" } as const;
    const timer = setTimeout(() => {
      controller.abort(
        new SeoError("SEO_TIMEOUT", `The service at ${origin} did not answer within ${ms / 1000} s.`, late),
      );
    }, ms);
    running.set(controller, lane);
    try {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      return await Promise.race([exchange(row, request, signal), aborted]);
    } catch (cause) {
      throw fromCause(cause, origin);
    } finally {
      clearTimeout(timer);
      running.delete(controller);
    }
  }

  return {
    send,

    /** Ends what runs, of one lane or of all, with `reason`. */
    abort(reason: SeoError, only?: Lane): void {
      for (const [controller, lane] of running) if (only === undefined || lane === only) controller.abort(reason);
    },

    destroy: () => dispatcher.destroy(),
  };
}

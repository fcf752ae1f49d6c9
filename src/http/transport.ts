import { createRequire } from "node:module";
import { performance } from "node:perf_hooks";
import { setImmediate } from "node:timers/promises";
import type { ConnectionOptions as TlsConnectOptions } from "node:tls";
import { buildConnector, type Dispatcher, Pool } from "undici";
import type { Base, ProxyOptions, TlsOptions } from "../config.js";
import { fromCause, SeoError } from "../errors.js";
import type { Headers, Response } from "../responses.js";
import type { Lane, Task } from "../scheduler.js";
import { secretsOf } from "../schema.js";
import { Exchange } from "./exchange.js";
import { skippingInterim } from "./interim.js";
import { type Connections, proxyFor, throughProxy } from "./proxy.js";
import { createRedactor, unencoded } from "./redact.js";
import type { Request } from "./request.js";
import { acceptEncoding, readResponse } from "./response.js";

const { name, version } = createRequire(import.meta.url)("../../../package.json") as { name: string; version: string };

const MAX_WIRE = 16 << 20;
const CONNECT_TIMEOUT = 10_000;
/** Bytes of a body that takes long enough to parse that others notice. */
const LARGE = 16 << 10;
/** Milliseconds by which a timeout can be late. */
const PRECISION = 50;
/** Secrets that are shorter are not redacted in successes, because they could match ordinary words. */
const SHORTEST_SECRET = 8;

interface ConnectionOptions {
  /** How many there can be. */
  connections: number;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
}

/**
 * The connections to one service. `keepAlive` reuses them; `oneShot` opens one for each request, because a reused one that
 * the server closes at that moment loses the request, and nobody knows whether it took effect. Throws SEO_CONFIG.
 */
function connect(origin: string, { connections, tls = {}, proxy: chosen }: ConnectionOptions) {
  // Node's types name Buffer, but any bytes are accepted.
  const connect = { timeout: CONNECT_TIMEOUT, ...(tls as Pick<TlsConnectOptions, keyof TlsOptions>) };
  const limits = { connections, maxResponseSize: MAX_WIRE, headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  const proxy = proxyFor(origin, chosen);
  const direct = skippingInterim(buildConnector(connect));
  const create = (pipelining: number): Connections =>
    proxy
      ? throughProxy(proxy, { ...limits, pipelining, connect })
      : new Pool(origin, { ...limits, pipelining, connect: direct });
  return { keepAlive: create(1), oneShot: create(0) };
}

/** Sends single requests to one origin, each with the key, and ends those that take too long or are cancelled. */
export function createTransport({ origin }: Base, apiKey: string, options: ConnectionOptions) {
  const { keepAlive, oneShot } = connect(origin, options);
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
  /** A service that echoes a secret must not put it into a flow. */
  const echoes = (text: string, secret: string, part = unencoded(secret)) =>
    secret.length >= SHORTEST_SECRET && text.includes(part);
  function redactHeaders(headers: Headers): Headers {
    for (const name in headers) if (echoes(String(headers[name]), apiKey, core)) return keyRedactor(headers);
    return headers;
  }

  /** One timer for all: most of what is in flight has ended long before it is overdue. */
  let timer: NodeJS.Timeout | undefined;
  function watch(): void {
    timer = undefined;
    for (const exchange of inFlight) if (performance.now() >= exchange.due) exchange.abort(overdue(exchange.timeout));
    if (inFlight.length > 0) timer = setTimeout(watch, PRECISION).unref();
  }
  const overdue = (timeout: number) =>
    new SeoError("SEO_TIMEOUT", `The service at ${origin} did not respond within ${timeout / 1000} s.`, {
      transient: true,
      stage: "time",
    });

  return {
    /** Removes the key from a text. */
    redact: keyRedactor,

    /** Sends a request, which can take `timeout` ms. Resolves with the response, or an error that holds no secret. */
    async exchange(
      { row, input, method, path, body, subject }: Request,
      timeout: number,
      task: Task,
    ): Promise<Response | SeoError> {
      const exchange = new Exchange(task, timeout);
      inFlight.push(exchange);
      timer ??= setTimeout(watch, PRECISION).unref();
      try {
        // Whatever its input: an operation that may be repeated only sometimes.
        (row.once ? oneShot : keepAlive).dispatch(
          {
            origin,
            path,
            method: method as Dispatcher.HttpMethod,
            headers: body === undefined ? headers : formHeaders,
            body: body ?? null,
          },
          exchange,
        );
        const raw = await exchange.response;
        // Let pending socket data arrive before parsing blocks; otherwise 1,000 pages take 25% longer.
        if (raw.bytes.length > LARGE) await setImmediate();
        const passwords = secretsOf(row, input);
        const redactor = () => createRedactor([apiKey, ...passwords]);
        const read = readResponse(row, raw, redactor, subject);
        // Escapes hide a secret.
        const text = read.text.includes("\\u") ? JSON.stringify(read.body) : read.text;
        const hasSecret = echoes(text, apiKey, core) || passwords.some((password) => echoes(text, password));
        return {
          statusCode: raw.statusCode,
          headers: redactHeaders(raw.headers),
          body: hasSecret ? redactor()(read.body) : read.body,
        };
      } catch (cause) {
        return fromCause(cause, origin, exchange.begun);
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
      return Promise.all([keepAlive.destroy(), oneShot.destroy()]);
    },
  };
}

import type { ConnectionOptions as NodeOptions } from "node:tls";
import { buildConnector, Pool } from "undici";
import type { ProxyOptions, TlsOptions } from "../config.js";
import { skippingInterim } from "./interim.js";
import { type Connections, proxyFor, throughProxy } from "./proxy.js";

const MAX_WIRE = 16 << 20;
const CONNECT_TIMEOUT = 10_000;

export interface ConnectionOptions {
  /** How many there can be. */
  connections: number;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
}

/**
 * The connections to one service. `keepAlive` reuses them; `oneShot` opens one for each request, because a reused one that
 * the server closes at that moment loses the request, and nobody knows whether it took effect. Throws SEO_CONFIG.
 */
export function createDispatcher(origin: string, { connections, tls = {}, proxy: chosen }: ConnectionOptions) {
  // Node's types name Buffer, but any bytes are accepted.
  const connect = { timeout: CONNECT_TIMEOUT, ...(tls as Pick<NodeOptions, keyof TlsOptions>) };
  const limits = { maxResponseSize: MAX_WIRE, headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  const proxy = proxyFor(origin, chosen);
  const direct = skippingInterim(buildConnector(connect));
  const create = (pipelining: number): Connections => {
    const options = { connections, pipelining, ...limits };
    return proxy ? throughProxy(proxy, { ...options, connect }) : new Pool(origin, { ...options, connect: direct });
  };
  const keepAlive = create(1);
  const oneShot = create(0);
  return { keepAlive, oneShot, destroy: () => Promise.all([keepAlive.destroy(), oneShot.destroy()]) };
}

import { Pool } from "undici";
import { SeoError } from "../errors.js";
import { type Connections, hasProxy, type ProxyOptions, throughProxy } from "./proxy.js";

/** What undici's connections take of a TLS configuration, as Node's `tls.connect` names it. */
export interface TlsOptions {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  passphrase?: string;
  servername?: string;
  rejectUnauthorized?: boolean;
}

const MAX_WIRE = 16 << 20;
const CONNECT_TIMEOUT = 10_000;

/**
 * The connections to one service. `kept` reuses them; `fresh` opens one for each request, because a kept one that the
 * server closes at that moment loses the request, and whether it was carried out is then unknown.
 * Without `proxy`, HTTP_PROXY, HTTPS_PROXY and NO_PROXY count. Throws SEO_CONFIG.
 */
export function createDispatcher({
  origin,
  connections,
  tls = {},
  proxy,
}: {
  origin: string;
  connections: number;
  tls?: TlsOptions | undefined;
  proxy?: ProxyOptions | undefined;
}) {
  const connect = { timeout: CONNECT_TIMEOUT, ...tls };
  const limits = { maxResponseSize: MAX_WIRE, headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  const create = (pipelining: number): Connections => {
    const options = { connections, pipelining, connect, ...limits };
    // The proxy's agent parses the origin and reads the environment for each request.
    return proxy || hasProxy() ? throughProxy(origin, options, CONNECT_TIMEOUT, proxy) : new Pool(origin, options);
  };
  try {
    const kept = create(1);
    const fresh = create(0);
    return { kept, fresh, destroy: () => Promise.all([kept.destroy(), fresh.destroy()]) };
  } catch {
    // Built anew: the cause quotes the proxy's URL, with its password.
    throw new SeoError("SEO_CONFIG", `The proxy URL${proxy ? "" : " in HTTP_PROXY or HTTPS_PROXY"} is not valid.`, {
      stage: "proxy",
    });
  }
}

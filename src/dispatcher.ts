import { type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import { SeoError } from "./errors.js";

/** What undici's connections take of a TLS configuration, as Node's `tls.connect` names it. */
export interface TlsOptions {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  passphrase?: string;
  servername?: string;
  rejectUnauthorized?: boolean;
}

/** A proxy's URL, with its user name and password if it wants them, and the hosts that are asked without it. */
export interface ProxyOptions {
  url: string;
  except: string[];
}

const MAX_WIRE = 16 << 20;
const CONNECT_TIMEOUT = 10_000;
/** The environment's proxies; they count as they are when the connections are made. */
const PROXIES = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"];

/**
 * The pool that asks the proxy for tunnels. Without it undici 7 asks for ever, thousands of times a second, when
 * the proxy closes the connection instead of answering, since it takes an error of that code for an idle socket's end.
 */
function tunnels(url: URL, options: object): Dispatcher {
  const pool = new Pool(url, options);
  const connect = pool.connect.bind(pool) as (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData>;
  const fault = () => Object.assign(new Error("no tunnel"), { code: "UND_ERR_PRX_CONN" });
  return Object.assign(pool, {
    async connect(options: Dispatcher.ConnectOptions) {
      const answer = await connect(options).catch(() => {
        throw fault();
      });
      if (answer.statusCode === 200) return answer;
      answer.socket.on("error", () => {}).destroy();
      throw fault();
    },
  });
}

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
  const create = (pipelining: number): Dispatcher => {
    const options = { connections, pipelining, connect, ...limits };
    // The proxy's agent parses the origin and reads the environment for each request.
    if (!proxy && !PROXIES.some((name) => process.env[name])) return new Pool(origin, options);
    return new EnvHttpProxyAgent({
      ...options,
      requestTls: connect,
      proxyTls: { timeout: CONNECT_TIMEOUT },
      clientFactory: tunnels,
      ...(proxy && { httpProxy: proxy.url, httpsProxy: proxy.url, noProxy: proxy.except.join(",") }),
    });
  };
  try {
    const kept = create(1);
    const fresh = create(0);
    return { kept, fresh, destroy: () => Promise.all([kept.destroy(), fresh.destroy()]) };
  } catch {
    // Built anew: the cause quotes the proxy's URL, with its password.
    throw new SeoError("SEO_CONFIG", `The proxy's URL${proxy ? "" : " in HTTP_PROXY or HTTPS_PROXY"} is not a URL.`, {
      stage: "proxy",
    });
  }
}

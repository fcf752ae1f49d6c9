import { type buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import { type ProxyOptions, parseProxy } from "../config.js";

export type Connections = Pick<Dispatcher, "dispatch" | "destroy">;

type Connect = (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData>;

const VARIABLES = {
  "http:": ["http_proxy", "HTTP_PROXY"],
  "https:": ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"],
};

/** The proxy of the environment for an origin, in the order of undici's EnvHttpProxyAgent. Throws SEO_CONFIG where it is not usable. */
function environmentProxy(origin: string): URL | undefined {
  const names = VARIABLES[origin.startsWith("https:") ? "https:" : "http:"];
  const name = names.find((one) => process.env[one] !== undefined);
  const text = name && process.env[name];
  return text ? parseProxy(text, name) : undefined;
}

/** The proxy for an origin: the chosen one, else that of the environment. Throws SEO_CONFIG where it is not usable. */
export const proxyFor = (origin: string, chosen?: ProxyOptions) =>
  chosen ? parseProxy(chosen.url) : environmentProxy(origin);

const unreachable = () => Object.assign(new Error(), { code: "UND_ERR_PRX_CONN" });

/** The Basic credentials in a URL; the password can be blank. */
function credentialsIn({ username, password }: URL): { token: string } | undefined {
  if (!username && !password) return undefined;
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { token: `Basic ${Buffer.from(text).toString("base64")}` };
}

/** Connections through a proxy: as curl does, it forwards `http:` requests and tunnels `https:`. */
export function throughProxy(
  proxy: URL,
  { connect, ...limits }: Pool.Options & { connect: buildConnector.BuildOptions & { timeout: number } },
  except?: string[],
): Connections {
  const { timeout } = connect;

  /** Reports a proxy that cannot be reached as such, and not as the service. */
  const reaching =
    (reach: buildConnector.connector): buildConnector.connector =>
    (options, done) =>
      reach(options, (...[cause, socket]) => (cause ? done(unreachable(), null) : done(null, socket)));

  /** The pool that asks the proxy for tunnels. undici 7 asks again for ever if the proxy closes the connection (issue 5441). */
  function clientFactory(url: URL, options: object): Dispatcher {
    const pool = new Pool(url, { ...limits, ...options, headersTimeout: timeout });
    const connectThrough = pool.connect.bind(pool) as Connect;
    return Object.assign(pool, {
      async connect(options: Dispatcher.ConnectOptions) {
        const response = await connectThrough(options).catch(() => {
          throw unreachable();
        });
        if (response.statusCode === 200) return response;
        response.socket.on("error", () => {}).destroy();
        throw unreachable();
      },
    });
  }

  /** undici gives a pool that forwards only its `connect`, and one through a tunnel everything. */
  function factory(url: string | URL, options: Pool.Options): Dispatcher {
    const forwards = String(url) === proxy.href;
    const reach = options.connect as buildConnector.connector;
    return new Pool(url as URL, { ...limits, ...options, ...(forwards && { connect: reaching(reach) }) });
  }

  return new EnvHttpProxyAgent({
    ...limits,
    connect,
    requestTls: connect,
    proxyTls: { timeout },
    proxyTunnel: false,
    clientFactory,
    factory,
    httpProxy: proxy.href,
    httpsProxy: proxy.href,
    ...credentialsIn(proxy),
    ...(except && { noProxy: except.join(",") }),
  });
}

import { type buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";

/** A proxy's URL, with its user name and password if it wants them, and the hosts that are asked without it. */
export interface ProxyOptions {
  url: string;
  except: string[];
}

export type Connections = Pick<Dispatcher, "dispatch" | "destroy">;

type Coded = Error & { code?: string };
type Connect = (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData>;

/** The environment's proxies; they count as they are when the connections are made. */
const VARIABLES = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"];
export const hasProxy = () => VARIABLES.some((name) => process.env[name]);

const NO_TUNNEL = "UND_ERR_PRX_CONN";
const noTunnel = () => Object.assign(new Error(), { code: NO_TUNNEL });
/** What a proxy answers that makes tunnels, but wants a password first or cannot reach the service. */
const MAKES_TUNNELS = new Set([407, 500, 502, 503, 504]);

/**
 * The connections to `origin` through `proxy`, or through the environment's: by tunnels. A proxy that makes none for
 * plain http, and many make them for port 443 only, is handed the requests themselves. Each fault on the way to the
 * proxy is a NO_TUNNEL. Throws where the proxy's URL is none.
 */
export function throughProxy(
  origin: string,
  { connect, ...limits }: Pool.Options & { connect: buildConnector.BuildOptions },
  timeout: number,
  proxy?: ProxyOptions,
): Connections {
  let forward: Dispatcher["dispatch"] | undefined;

  function clientFactory(url: URL, { connect: reach }: { connect: buildConnector.connector }): Dispatcher {
    const pool = new Pool(url, {
      ...limits,
      headersTimeout: timeout,
      connect: (options, done) =>
        reach(options, (cause, socket) =>
          cause ? done(noTunnel(), null) : done(null, socket as NonNullable<typeof socket>),
        ),
    });

    function refused({ headers }: Dispatcher.ConnectOptions): void {
      if (!origin.startsWith("http:")) return;
      const authorization = (headers as Record<string, string>)["proxy-authorization"];
      const own = { host: new URL(origin).host, ...(authorization && { "proxy-authorization": authorization }) };
      forward = ({ path, headers, ...rest }, handler) =>
        pool.dispatch({ ...rest, path: origin + path, headers: { ...headers, ...own }, headersTimeout: 0 }, handler);
    }

    const ask = pool.connect.bind(pool) as Connect;
    return Object.assign(pool, {
      // undici 7 asks again for ever, thousands of times a second, where the proxy ends the connection instead of answering.
      async connect(options: Dispatcher.ConnectOptions) {
        const answer = await ask(options).catch(({ code }: Coded) => {
          if (code !== NO_TUNNEL && code !== "UND_ERR_HEADERS_TIMEOUT") refused(options);
          throw noTunnel();
        });
        if (answer.statusCode === 200) return answer;
        answer.socket.on("error", () => {}).destroy();
        if (!MAKES_TUNNELS.has(answer.statusCode)) refused(options);
        throw noTunnel();
      },
    });
  }

  const agent = new EnvHttpProxyAgent({
    ...limits,
    connect,
    requestTls: connect,
    proxyTls: { timeout },
    clientFactory: clientFactory as never,
    ...(proxy && { httpProxy: proxy.url, httpsProxy: proxy.url, noProxy: proxy.except.join(",") }),
  });

  return {
    dispatch(options, handler) {
      if (forward) return forward(options, handler);
      const fail = handler.onResponseError?.bind(handler);
      handler.onResponseError = (controller, cause: Coded) => {
        if (forward && cause.code === NO_TUNNEL) forward(options, Object.assign(handler, { onResponseError: fail }));
        else fail?.(controller, cause);
      };
      return agent.dispatch(options, handler);
    },
    destroy: () => agent.destroy(),
  };
}

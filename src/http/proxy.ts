import { type buildConnector, type Dispatcher, Pool, ProxyAgent } from "undici";
import type { ProxyOptions } from "../config.js";
import { SeoError } from "../errors.js";
import { parseUrl } from "../url.js";
import { skippingInterim } from "./interim.js";

export type Connections = Pick<Dispatcher, "dispatch" | "destroy">;

type Connect = (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData>;

const VARIABLES = {
  "http:": ["http_proxy", "HTTP_PROXY"],
  "https:": ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"],
};

/** The rules of undici's EnvHttpProxyAgent: hosts with their subdomains, with a port if one is given, or `*` alone. */
function isExcepted(origin: string, except: string): boolean {
  const { protocol, hostname, port } = new URL(origin);
  const ports = [0, Number(port) || (protocol === "https:" ? 443 : 80)];
  return (
    except === "*" ||
    except
      .split(/[,\s]/)
      .filter(Boolean)
      .some((entry) => {
        const [, host = entry, only = 0] = /^(\[.+\]|[^:]+):(\d+)$/.exec(entry) ?? [];
        const typed = /^[^[]*:.*:/.test(host) ? `[${host}]` : host.replace(/^\*?\./, "");
        const name = parseUrl(`http://${typed}`)?.hostname ?? typed.toLowerCase();
        return ports.includes(Number(only)) && `.${hostname}`.endsWith(`.${name}`);
      })
  );
}

/** Reads a proxy's URL; `source` says where it is set. Throws SEO_CONFIG, which does not quote it: it can hold a password. */
export function parseProxy(text: string, source = ""): URL {
  const refuse = (why: string) =>
    new SeoError("SEO_CONFIG", `The proxy URL${source && ` in ${source}`} ${why}.`, { stage: "proxy" });
  if (!/^https?:\/\//i.test(text)) throw refuse("must begin with http:// or https://");
  const url = parseUrl(text);
  if (!url) throw refuse("is not valid");
  try {
    decodeURIComponent(`${url.username}:${url.password}`);
  } catch {
    throw refuse("has a user name or password with a percent sign that must be written as %25");
  }
  return url;
}

/** The proxy for an origin: the chosen one, else that of the environment. Throws SEO_CONFIG if it is needed and not usable. */
export function proxyFor(origin: string, chosen?: ProxyOptions): URL | undefined {
  const { env } = process;
  if (isExcepted(origin, chosen ? [chosen.except ?? []].flat().join() : (env.no_proxy ?? env.NO_PROXY ?? "")))
    return undefined;
  if (chosen) return parseProxy(chosen.url);
  const names = VARIABLES[origin.startsWith("https:") ? "https:" : "http:"];
  const name = names.find((one) => env[one] !== undefined);
  const text = name && env[name];
  return text ? parseProxy(text, name) : undefined;
}

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
    const reach = skippingInterim(options.connect as buildConnector.connector);
    const connect = String(url) === proxy.href ? reaching(reach) : reach;
    return new Pool(url as URL, { ...limits, ...options, connect });
  }

  return new ProxyAgent({
    uri: proxy.href,
    ...limits,
    requestTls: connect,
    proxyTls: { timeout },
    proxyTunnel: false,
    clientFactory,
    factory,
    ...credentialsIn(proxy),
  });
}

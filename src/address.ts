import { domainToUnicode } from "node:url";
import { parseUrl } from "./url.js";

/** A scheme and its slashes. A host can have a port: `localhost:8080` has no scheme. */
const SCHEME = /^[a-z][a-z0-9+.-]*:(?!\d)[\\/]*/i;

/** A page's URL as it was typed, without the parts that the service can leave out: the scheme, a user name, `www.` and a fragment. */
export const bareUrl = (url: string): string =>
  url
    .trim()
    .replace(SCHEME, "")
    .replace(/^[^/?#\\]*@/, "")
    .replace(/^(?:www\.)+/i, "")
    .replace(/#.*/s, "");

/** Reads the URL as a browser does, with or without a scheme. */
const parse = (url: string): URL | undefined => parseUrl(`http://${url.trim().replace(SCHEME, "")}`);

/** A name, an IPv4 address, or an IPv6 address in brackets, as a URL parser writes it. */
const HOST = /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[.*\])$/;

/** Whether a text can be the URL of a web page. A word without a scheme, a dot or a port is none, nor are several URLs. */
export function isPage(text: string): boolean {
  const page = text.trim();
  const start = SCHEME.test(page) ? /^https?:\/\/[^/\\]/i : /^[^/?#\\]+[.:]/;
  return start.test(page) && !/\shttps?:\/\//i.test(page) && HOST.test(parse(page)?.hostname ?? "");
}

/** The URLs that `isPage` accepts, as the end of a sentence. */
export const allowedPage = "must be the address of a web page, such as https://example.org/page";

/** The URL as a WHATWG parser writes it, without the scheme, a port that is usual, `www.`, a fragment, a lone `?`, and the slash of a bare host. */
function normalized(url: string): string {
  const parsed = parse(url);
  if (!parsed) return bareUrl(url);
  const { host, pathname, search } = parsed;
  const path = pathname + search;
  return host.replace(/^(?:www\.)+(?=.)/, "").replace(/:443$/, "") + (path === "/" ? "" : path);
}

/** Writes anew what is escaped in a URL, and what can be; in capitals what is no text. */
const reencoded = (url: string, write: (bytes: string) => string) =>
  url.replace(/%[0-7][\da-f]|(?:%[89a-f][\da-f])+|["<>\\^`{|}]/gi, (bytes) => {
    try {
      return write(bytes);
    } catch {
      return bytes.toUpperCase();
    }
  });

/**
 * Equal for two texts that mean the same page: normalized, and with the same characters escaped (RFC 3986, section 6.2.2). Services
 * write URLs back in different ways, so both sides are normalized.
 */
export const pageKey = (url: string): string =>
  reencoded(normalized(url), (bytes) => encodeURIComponent(decodeURIComponent(bytes)));

/** The texts as which services can have written a page's URL: normalized, readable, or as it was typed. The first is most likely. */
export function spellingsOf(url: string): string[] {
  const [whole, key] = [normalized(url), pageKey(url)];
  const path = whole.search(/\/|$/);
  const host = whole.slice(0, path);
  const hosts = [host, host.replace(/^[^:[]+/, (name) => domainToUnicode(name) || name)];
  const readings = [
    reencoded(whole.slice(path), decodeURI),
    // As browsers copy it.
    reencoded(whole.slice(path), (bytes) => (/^%(?:[89a-f]|20)/i.test(bytes) ? decodeURI(bytes) : bytes)),
  ];
  const readable = hosts.flatMap((host) => readings.map((reading) => host + reading));
  const all = [whole.replace("/?", "?"), key, ...readable, bareUrl(url)];
  const isLikely = (one: string) => pageKey(one) === key && one !== `${whole}/` && !/\p{Cc}/u.test(one);
  return [whole, ...new Set(all.filter((one) => one !== whole && isLikely(one)))];
}

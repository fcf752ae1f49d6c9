export type Address = { url: string; project: string };

/** A page's address as the service keeps it: no scheme, no `www.`, no slash after a bare host; undefined if it is none. */
export function readAddress(text: string): Address | undefined {
  const hasScheme = /^https?:\/\//i.test(text);
  const whole = hasScheme ? text : `http://${text}`;
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(whole)) return undefined;
  const { host, hostname, pathname, search, username, password } = new URL(whole);
  if (username || password || (!hasScheme && !/[^.]\.[^.]/.test(hostname))) return undefined;
  const bare = pathname === "/" && search === "";
  return { url: withoutWww(host) + (bare ? "" : pathname + search), project: withoutWww(hostname) };
}

const withoutWww = (host: string): string => host.replace(/^www\./, "");

/** A web page's address, as far as it distinguishes two pages. */
export interface Address {
  /** Equal for two texts that mean the same page. */
  key: string;
  host: string;
}

/**
 * Reads a page's URL as the service writes it back: without the scheme, `www.`, a fragment and the slash of a bare host,
 * the host in lower case; path and query as they are.
 */
export function readAddress(url: string): Address {
  const bare = url
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, "")
    .replace(/#.*/s, "");
  const end = bare.search(/[/?]|$/);
  const typed = bare.slice(0, end).toLowerCase();
  const whole = `http://${typed}`;
  const isPlain = /^[a-z0-9.-]+\.[a-z-]+$/.test(typed);
  const host = (!isPlain && URL.canParse(whole) ? new URL(whole).host : typed)
    .replace(/^www\./, "")
    .replace(/:443$/, "");
  const rest = bare.slice(end).replace(/[^\0-\x7f]+/gu, (text) => encodeURIComponent(Buffer.from(text).toString()));
  return { host, key: host + (rest === "/" ? "" : rest) };
}

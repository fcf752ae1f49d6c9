/** Reads a URL. Not by `URL.canParse`: once Node.js 20 or 22 has compiled it, it rejects URLs with letters such as ü. */
export function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** A secret of a few letters is hidden only where it stands alone, or every text would be full of holes. */
const SHORT = 6;

const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const pattern = (secret: string) =>
  secret.length < SHORT ? `(?<![\\p{L}\\p{N}])${literal(secret)}(?![\\p{L}\\p{N}])` : literal(secret);

/** A copy of a JSON value in which no string, and no property's name, holds one of the secrets. */
export function redact<T>(value: T, secrets: string[]): T {
  const texts = secrets.filter((secret) => secret !== "").flatMap((secret) => [secret, encodeURIComponent(secret)]);
  if (texts.length === 0) return value;
  const found = new RegExp(texts.map(pattern).join("|"), "gu");
  const clean = (part: unknown): unknown => {
    if (typeof part === "string") return part.replace(found, "***");
    if (Array.isArray(part)) return part.map(clean);
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [clean(name), clean(inner)]));
  };
  return clean(value) as T;
}

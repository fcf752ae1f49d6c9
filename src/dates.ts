/** Whatever follows the time, but AM and PM. */
const zone = /\d:\d\d(?::\d\d(?:\.\d+)?)?(?:\s*[ap]m)?\s*(?![ap]m\b)[^\s:.\d]/i;

/** A date with the year first, or the month as a word. Otherwise, the first of two numbers can be the day or the month. */
const clear = /^\D*\d{4}|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)/i;

/** Whether a date says in which time zone it is. */
export const hasZone = (date: unknown): boolean => zone.test(String(date));

/**
 * A date of the service in milliseconds. Without a time zone it is UTC, wherever this computer is. NaN for what is no date,
 * such as "3 days ago", or not a clear one, such as "11.01.2026": `Date.parse` accepts both.
 */
export function parseDate(date: unknown): number {
  if (typeof date !== "string" || !/\d{4}/.test(date) || !clear.test(date)) return Number.NaN;
  if (hasZone(date)) return Date.parse(date.replace(/[+-]\d\d$/, "$&:00"));
  return Date.parse(`${date}${/\dT\d/.test(date) ? "Z" : " UTC"}`);
}

/** The later of two dates; the other one if that cannot be said. */
export const later = (one: string | undefined, other: string | undefined): string | undefined =>
  other === undefined || parseDate(one) > parseDate(other) ? one : other;

/** The service's time when it sent a response; this computer's if the response does not say. */
export function clockOf(headers: Record<string, unknown>): number {
  const date = parseDate(headers.date);
  return Number.isNaN(date) ? Date.now() : date;
}
